// A file to read from; pipes and packed files look like plain ones. Whatever goes wrong is a
// BadInput that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "affpcl/data/inputs.h"

namespace affpcl {

class InputFile {
 public:
  explicit InputFile(const std::string& path);
  const std::string& path() const { return path_; }
  std::string place() const { return spool_ ? spool_->place() : path_; }  // of its plain bytes
  bool plain() const { return spool_ == nullptr; }  // other processes see the same bytes
  std::int64_t size() const;                        // bytes
  std::size_t read(char* to, std::size_t bytes);    // fewer than asked for at the end only
  bool seek(std::int64_t at);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::shared_ptr<Spool> spool_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace affpcl
