// What a person sees: the table of a result, and progress with time left.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "affpcl/study/study.h"

namespace affpcl::cli {

// Methods by setting: error, interval, ratio to learning alone; the best marked, diverged runs
// named.
std::string results_table(const StudyResult& result);

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

// Turns true on Ctrl-C (or SIGTERM); a second one ends the program at once.
const std::atomic<bool>& interruption();

}  // namespace affpcl::cli
