#include "affpcl/data/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "affpcl/base/error.h"

namespace affpcl {

InputFile::InputFile(const std::string& path)
    : path_(path), spool_(spooled(path)), file_(std::fopen(place().c_str(), "re")) {
  if (!file_) throw BadInput(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  struct stat status {};
  if (fstat(fileno(file_.get()), &status) == 0 && S_ISDIR(status.st_mode))
    throw BadInput(fmt::format("cannot read {}: it is a folder", path_));
}

std::int64_t InputFile::size() const {
  struct stat status {};
  return fstat(fileno(file_.get()), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

std::size_t InputFile::read(char* to, std::size_t bytes) {
  stop_if_asked();
  std::size_t got = 0;
  while (got < bytes && std::feof(file_.get()) == 0) {
    got += std::fread(to + got, 1, bytes - got, file_.get());
    if (std::ferror(file_.get()) == 0) continue;
    if (errno != EINTR)
      throw BadInput(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    std::clearerr(file_.get());
  }
  return got;
}

bool InputFile::seek(std::int64_t at) { return fseeko(file_.get(), at, SEEK_SET) == 0; }

}  // namespace affpcl
