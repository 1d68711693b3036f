// The verbs of the program and their options as plain values, and the reader of the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "affpcl/base/params.h"

namespace affpcl::cli {

// An entry of a map, which is set if the option is given.
struct MapEntry {
  std::map<std::string, Value>* values;
  std::string key;
  Value value;  // the default, whose type is the option's type; then what is read
};

// Where the value of an option goes. A bool is a flag.
using Target = std::variant<bool*, int*, std::int64_t*, double*, std::string*,
                            std::vector<std::string>*, MapEntry>;

// Which values an option takes.
struct Rules {
  bool required = false;
  bool commas = false;                    // a list may be written A,B
  int most = 0;                           // positional values; 0: any number
  std::vector<std::string> choices = {};  // texts must be one of these, if any are given
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();  // numbers must lie in [lo, hi]
};

struct Option {
  std::string name;  // "--seed"; without dashes the option is positional
  Target to;
  std::string type;  // how the help writes the value: DIR
  std::string doc;
  Rules rules;
  std::string group;      // its heading in the help, if it has one
  std::size_t given = 0;  // how often the command line has it
};

struct Verb {
  std::string name;
  std::string doc;
  std::string examples = {};  // the end of the help
  std::function<int(const Verb&)> action = {};
  bool many_processes = false;  // under mpirun all of them act, not the first alone
  std::vector<Option> options = {};
  std::string group = {};  // the heading of the options that are added next

  // A list takes one value each time its option is given; a positional list takes all that follow.
  void option(const std::string& option_name, Target to, const std::string& type,
              const std::string& text, const Rules& rules = {});
  // The option --some-name of the parameter some_name. Its value goes to values["some_name"].
  // Values(params, values) then checks what is not checked here: `above`, and lists.
  void option(const Param& param, std::map<std::string, Value>& values);
  void flag(const std::string& option_name, bool* to, const std::string& text);
  bool given(std::string_view option_name) const;
};

struct Program {
  std::string doc;
  std::string version;
  std::string footer;  // the end of the help
  std::vector<Verb> verbs;
};

// What a command line asks for: a verb, or a text (--help, --version) where verb is nullptr.
struct Request {
  const Verb* verb = nullptr;
  std::string text = {};
};

// Sets the values of the options. BadInput where the command line is wrong.
Request read_command_line(int argc, char** argv, Program& program);

}  // namespace affpcl::cli
