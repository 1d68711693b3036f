// The separator and the decimal mark of a text table, found together in its first lines: a reader
// that takes one without the other makes categories of 1,5 and 2,5.
#pragma once

#include <string>
#include <string_view>

#include "affpcl/data/read_options.h"

namespace affpcl {

struct Dialect {
  char separator = ',';
  char decimal = '.';
  // Not empty: a value such as 1,234 that can be 1.234 or 1234, and the column that holds it.
  std::string unclear = {}, unclear_column = {};
};

// `opening` begins with the names of the columns; `whole`: it is all there is. What the options
// say is taken as said. Among comma, semicolon, tab and | the separator is the one by which the
// most rows have as many fields as there are names; then the one that gives the most numbers.
Dialect find_dialect(std::string_view opening, bool whole, const ReadOptions& options);

// How many fields the first record has.
std::size_t count_fields(std::string_view text, char separator);

}  // namespace affpcl
