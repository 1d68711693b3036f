// One field of a table as text: is it a number, is it missing, and how a complaint names it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affpcl {

// A finite number that fills all of `field` (spaces around it and a leading + are fine), else none.
std::optional<double> parse_number(std::string_view field);

// Blank, NA, NaN or ?, in any case.
bool is_missing(std::string_view field);

std::string_view trimmed(std::string_view field);  // without spaces and tabs around it

// As much of a value as a sentence can hold, on one line.
std::string shown(std::string_view value);

// "PATH, line 7, column 'age': 'x' is not a number", where `place` is "line 7" and `what` is what
// follows the value.
std::string complaint(const std::string& path, std::string_view place, std::string_view column,
                      std::string_view value, std::string_view what);

// The names of columns in "a, b". `key` is what holds the list, for where one is blank or twice.
std::vector<std::string> names_in(std::string_view list, std::string_view key);

// "PATH has no column 'agnet'; did you mean 'agent'?"
std::string lacks_column(const std::string& path, std::string_view name,
                         std::span<const std::string> names);

}  // namespace affpcl
