// A file to read from. Whatever goes wrong is a BadInput that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace affpcl {

class InputFile {
 public:
  explicit InputFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::int64_t size() const;                      // bytes; 0 where there is no telling (a pipe)
  std::size_t read(char* to, std::size_t bytes);  // fewer than asked for at the end only
  bool seek(std::int64_t at);                     // false where that cannot be done (a pipe)
  std::FILE* get() const { return file_.get(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace affpcl
