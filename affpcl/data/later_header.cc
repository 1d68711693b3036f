#include "affpcl/data/later_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/table.h"

namespace affpcl {

std::string later_header(const std::string& path, std::string_view name,
                         const ReadOptions& options) {
  constexpr int kLines = 20;
  std::error_code none;  // a table in memory is no file
  if (!std::filesystem::is_regular_file(path, none) || !is_csv(path)) return "";
  for (int more = 1; more <= kLines; ++more) {
    ReadOptions later = options;
    later.skip += more;
    try {
      const CsvReader reader(path, later);
      if (std::count(reader.header().begin(), reader.header().end(), name) > 0)
        return fmt::format("; `skip {}` leaves out what stands before its names", later.skip);
    } catch (const BadInput&) {  // no header there
    }
  }
  return "";
}

}  // namespace affpcl
