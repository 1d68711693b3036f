// What a person sees: the table of a result, and progress with time left.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "affpcl/study/study.h"

namespace affpcl::cli {

// How much a table may use: a terminal has a width, colours and bars; a pipe or a file has none of
// them, and lines of any length.
struct Style {
  std::size_t width = 0;  // in characters; 0: not a terminal
  bool colour = false;
};
Style output_style();  // of standard output; colours unless NO_COLOR is set or TERM is dumb

// Methods by setting: error, interval, ratio to learning alone; the best marked, diverged runs
// named; last what it means in a sentence.
std::string results_table(const StudyResult& result, const Style& style);

// A sentence in lines that fit the width.
std::string wrapped(const std::string& sentence, const Style& style);

// The sentence of a result, wrapped, and bold where there is colour.
std::string headline_text(const std::string& sentence, const Style& style);

// How many places a text takes, and its first ones with … for what is cut off.
std::size_t places(std::string_view text);
std::string clipped(std::string_view text, std::size_t most);

// A ratio as a bar of blocks that ends at 1, with an arrow for more: "██▌      │", "█████████▶".
std::string ratio_bar(double ratio, std::size_t most);

// A line on standard error that rewrites itself; silent where that is not a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  void operator()(double share);

 private:
  bool active_;
  std::chrono::steady_clock::time_point start_, shown_;
};

// Turns true on Ctrl-C (or SIGTERM, SIGUSR1); a second one ends the program at once. Work that does
// not stop by itself within 1.5 s of Ctrl-C or SIGTERM is ended with exit code 130, which loses
// nothing that is on the disk.
const std::atomic<bool>& interruption();
// The work has stopped: what was done may take longer than that to be written, or others to end.
void take_time_to_write();

}  // namespace affpcl::cli
