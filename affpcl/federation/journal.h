// The totals of a federated job so far, in a file: from it a centre that was killed goes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace affpcl {

struct Journal {
  std::int64_t attempt = 0;         // the last one
  std::vector<std::string> totals;  // by round
};

// Nothing where there is no such file. BadInput where it is of another job or other sites. Where the
// job went on with some of these sites, only the attempt: all start again. A record that was cut off
// at the end is left out.
Journal read_journal(const std::string& path, const std::string& job,
                     const std::vector<std::string>& sites);
void start_journal(const std::string& path, const std::string& job,
                   const std::vector<std::string>& sites, std::int64_t attempt);
void note_attempt(const std::string& path, std::int64_t attempt);
void append_total(const std::string& path, std::string_view total);

}  // namespace affpcl
