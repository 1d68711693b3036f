// One field of a table as text: is it a number, is it missing, and how a complaint names it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/read_options.h"

namespace affpcl {

// A finite number that fills all of `field` (spaces around it and a leading + are fine), else none.
// Groups of three digits are fine where they cannot be mistaken: 1,234,567 or 1,234.5, and with a
// decimal comma 1.234.567 or 1.234,5.
std::optional<double> parse_number(std::string_view field, char decimal = '.');
// Digits alone, and more than a double can hold exactly: an id, not a quantity.
bool beyond_double(std::string_view field);
// Why a text is no number, as the end of a sentence: "is not a number", or more where more can be
// said.
std::string no_number(std::string_view field, char decimal = '.');

// The words that stand for a missing value, in any case; a blank field always does.
class MissingWords {
 public:
  explicit MissingWords(std::string_view list = kUsualMissing);  // "NA,-99"
  bool has(std::string_view field) const;
  bool holds_numbers() const { return holds_numbers_; }  // such as -99

 private:
  std::vector<std::string> words_;    // in lower case
  std::array<bool, 256> first_ = {};  // which bytes a word begins with
  bool holds_numbers_ = false;
};
const MissingWords& usual_missing();
bool is_missing(std::string_view field);  // by the usual words

std::string_view trimmed(std::string_view field);  // without spaces and tabs around it

// As much of a value as a sentence can hold, on one line.
std::string shown(std::string_view value);

// "PATH, line 7, column 'age': 'x' is not a number", where `place` is "line 7" and `what` is what
// follows the value.
std::string complaint(const std::string& path, std::string_view place, std::string_view column,
                      std::string_view value, std::string_view what);

// The names of columns in "a, b". A name with a comma is quoted: "a,b" (a quote inside is doubled).
// `key` is what holds the list, for where one is blank or twice.
std::vector<std::string> names_in(std::string_view list, std::string_view key);

// One sentence as it is; of several the first ten, a line each, under how many there are.
std::string several(std::span<const std::string> sentences);

// The list that names_in() reads back.
std::string joined_names(std::span<const std::string> names);

// "PATH has no column 'agnet'; did you mean 'agent'?"
std::string lacks_column(const std::string& path, std::string_view name,
                         std::span<const std::string> names);

}  // namespace affpcl
