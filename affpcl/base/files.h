// Writing results so that nothing half-written is ever seen, and nothing existing is lost by
// accident.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace affpcl {

// Writes to a temporary name beside `path`, then renames. Failure names the file and the reason.
void write_file(const std::string& path, std::string_view content);

// BadInput if write_file(path) is bound to fail; leaves nothing behind.
void refuse_unwritable(const std::string& path);

// `text` quoted for CSV where it needs to be.
std::string csv_field(std::string_view text);

// A folder that appears under its name only when it is whole: files are written to a temporary
// folder beside it, which commit() renames. Without commit() nothing remains.
class ResultFolder {
 public:
  // BadInput if `path` exists and `force` is false, or its parent cannot be written to.
  ResultFolder(const std::string& path, bool force);
  ~ResultFolder();
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;
  void add(const std::string& name, std::string_view content);
  void commit();

 private:
  void give_up() const;  // leaves nothing behind
  std::string path_, temporary_;
  std::vector<std::string> made_;  // parents that did not exist, innermost first
  bool force_, committed_ = false;
};

}  // namespace affpcl
