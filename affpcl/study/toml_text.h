// What a TOML text must be before the parser sees it: UTF-8, outside strings and comments ASCII
// without control characters, and a name behind the [ of a table, as TOML 1.0 asks. toml++ 3.3 has
// undefined behaviour where it is not.
#pragma once

#include <string>
#include <string_view>

namespace affpcl {

struct TomlFault {
  std::size_t line = 0;  // from 1; 0: there is no fault
  std::string what;
};
TomlFault toml_fault(std::string_view text);

}  // namespace affpcl
