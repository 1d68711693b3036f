// Writing results so that nothing half-written is ever seen, and nothing existing is lost by
// accident.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affpcl {

// Writes to a temporary name beside `path`, then renames. Failure names the file and the reason.
void write_file(const std::string& path, std::string_view content);

// BadInput if write_file(path) is bound to fail; leaves nothing behind.
void refuse_unwritable(const std::string& path);

// `text` quoted for CSV where it needs to be.
std::string csv_field(std::string_view text);

// A file descriptor, closed at the end.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  OwnedFile(const std::string& path, int flags);  // Failure names the file and the reason
  OwnedFile(OwnedFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~OwnedFile();
  int get() const { return file_; }

 private:
  int file_;
};

// A folder that appears under its name only when it is whole: files are written to a temporary
// folder beside it, which commit() renames. Without commit() nothing remains; what a killed process
// left is removed by the next one that writes there. Files of the user's in a folder that is replaced
// are kept.
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
  OwnedFile lock_;                 // tells others that this process lives
  std::vector<std::string> made_;  // parents that did not exist, innermost first
  bool force_, committed_ = false;
};

}  // namespace affpcl
