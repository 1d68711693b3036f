// What the library throws. It never prints and never aborts: the command line and the Python
// package talk to people.
#pragma once

#include <stdexcept>
#include <string>

namespace affpcl {

// The caller gave something that cannot be used. The message is one sentence that names the file,
// line or key, the value, and what is allowed. The command line turns it into exit code 2.
class BadInput : public std::runtime_error {
 public:
  explicit BadInput(const std::string& sentence) : std::runtime_error(sentence) {}
};

// The work itself failed (a disk that is full, a system without a solution). Exit code 1.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& sentence) : std::runtime_error(sentence) {}
};

}  // namespace affpcl
