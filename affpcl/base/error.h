// What the library throws. It never prints and never aborts: the command line and the Python
// package talk to people.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace affpcl {

// The library names an option by its key between backticks, with a value where it has one:
// "`channels` needs `weights`", "`missing drop` leaves such rows out". A front end spells it as its
// users write it.
enum class OptionStyle {
  kKey,          // channels, missing = drop
  kCommandLine,  // --channels, --missing drop
  kPython        // channels=, missing='drop'
};
std::string spell_options(std::string_view text, OptionStyle style);
std::vector<std::string> spell_options(std::vector<std::string> texts, OptionStyle style);

// The caller gave something that cannot be used. One sentence names the file, line or key, the
// value, and what is allowed: "place: `option` what; remedy". The command line turns it into exit
// code 2, Python into ValueError.
class BadInput : public std::runtime_error {
 public:
  struct Fields {
    std::string option = {};  // a key: "channels"
    std::string place = {};   // a file, with line or key where there is one
    std::string what;         // "names one column, 'x'"
    std::string remedy = {};  // "weighing needs two or more"
  };
  explicit BadInput(const Fields& fields);
  // A whole sentence.
  explicit BadInput(const std::string& sentence) : BadInput(Fields{.what = sentence}) {}

  const Fields& fields() const { return fields_; }
  std::string sentence(OptionStyle style) const;  // what() spells options as kKey
  // The sentence with its backticks: for a message that contains this one.
  std::string marked() const;

 private:
  Fields fields_;
};

// The work itself failed (a disk that is full, a system without a solution). Exit code 1.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& sentence) : std::runtime_error(sentence) {}
};

// The caller asked to stop (Ctrl-C) before there was a result. Exit code 130.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace affpcl
