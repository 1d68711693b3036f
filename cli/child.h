// A process that this one starts, with pipes to its standard input and output. What it prints to
// standard error is kept.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/files.h"

namespace affpcl::cli {

class Child {
 public:
  // Failure where the program cannot be started. It is looked for on the PATH. `log`: a file for its
  // standard error; empty: one without a name.
  explicit Child(const std::vector<std::string>& words, const std::string& log = "");
  ~Child();  // ends it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False where it no longer reads. Interrupted on Ctrl-C.
  bool write(std::string_view bytes);
  // Exactly so many bytes; false where it ends before.
  bool read(char* to, std::size_t bytes);
  // A line without its end; false at the end of its output.
  bool read_line(std::string& line);
  void close_input() { to_ = OwnedFile(); }

  // Waits until it has ended. Its exit code, or minus the signal that ended it.
  int wait();
  void ask_to_end();               // SIGTERM
  void stop();                     // the same, and SIGKILL where it goes on for seconds
  std::string last_words() const;  // the last line on standard error

 private:
  std::size_t some(char* to, std::size_t most);  // 0 at the end

  OwnedFile to_, from_, errors_;
  std::string read_;  // and not yet returned
  pid_t process_ = -1;
  int status_ = 0;
};

}  // namespace affpcl::cli
