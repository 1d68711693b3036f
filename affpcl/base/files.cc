#include "affpcl/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "affpcl/base/error.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

// What affpcl writes into result folders; everything else there is the user's.
constexpr std::array<std::string_view, 12> kResultFiles = {
    "summary.json", "curves.csv",  "agents.csv",  "solutions.csv",
    "model.json",   "centre.json", "ledger.json", "claims.json",
    "affinity.csv", "matrix.csv",  "report.html", "benchmark.json"};

[[noreturn]] void cannot_write(const std::string& path, int code) {
  throw Failure(fmt::format("cannot write {}: {}", path, std::strerror(code)));
}

// Writes all of it, to the disk.
void write_all(int file, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) cannot_write(path, written == 0 ? EIO : errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) cannot_write(path, errno);
}

void write_plain(const std::string& path, std::string_view content) {
  const OwnedFile file(path, O_WRONLY | O_CREAT | O_TRUNC);
  write_all(file.get(), content, path);
}

std::string temporary_name(const std::string& path) {
  return fmt::format("{}.{}.part", path, getpid());
}

// Whether `name` is what temporary_name() gives for `path` in some process.
bool is_temporary(std::string_view name, const std::string& path) {
  constexpr std::string_view kEnd = ".part";
  if (!name.starts_with(path + ".") || !name.ends_with(kEnd)) return false;
  name.remove_prefix(path.size() + 1);
  if (name.size() <= kEnd.size()) return false;
  name.remove_suffix(kEnd.size());
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

int rename_to(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// What the user put into a result folder moves to the one that replaces it.
void keep_foreign(const std::string& from, const std::string& to) {
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const fs::path place = fs::path(to) / name;
    std::error_code ignored;
    if (std::find(kResultFiles.begin(), kResultFiles.end(), name) == kResultFiles.end() &&
        !fs::exists(place, ignored))
      rename_to(entry->path().string(), place.string());
  }
}

// Removes what killed processes left of `path`. Its owner holds a lock as long as it lives.
void remove_abandoned(const std::string& path) {
  std::error_code error;
  const fs::path parent = fs::absolute(path, error).parent_path();
  const std::string name = fs::path(path).filename().string();
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_temporary(entry->path().filename().string(), name)) continue;
    const OwnedFile lock(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    std::error_code ignored;
    if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // One that was killed as it replaced a folder had not moved the user's files yet.
    if (fs::is_directory(path, ignored)) keep_foreign(entry->path().string(), path);
    fs::remove_all(entry->path(), ignored);
  }
}

// Opens and locks `path`, again where another process took it for abandoned meanwhile. Returns 0, or
// why not.
template <class Open>
int own(const std::string& path, Open open, OwnedFile& file) {
  constexpr int kAttempts = 100;
  for (int k = 0; k < kAttempts; ++k) {
    file = OwnedFile(open());
    struct stat here = {}, there = {};
    if (file.get() < 0) return errno;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(file.get(), &here) == 0 &&
        ::stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino)
      return 0;
  }
  return EBUSY;
}

void sync_folder(const std::string& path) {  // so that a name is as durable as its content
  const OwnedFile folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}
std::string parent_of(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error).parent_path().string();
}

// Two folders change names. Returns 0, or why not; then both have the names they had.
int exchange_names(const std::string& a, const std::string& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  const std::string aside = b + ".old";
  if (const int code = rename_to(b, aside); code != 0) return code;
  if (const int code = rename_to(a, b); code != 0) {
    rename_to(aside, b);
    return code;
  }
  return rename_to(aside, a);
}

// DIR/ and DIR are the same folder.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

OwnedFile::OwnedFile(const std::string& path, int flags)
    : file_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (file_ < 0) cannot_write(path, errno);
}
OwnedFile::~OwnedFile() {
  if (file_ >= 0) ::close(file_);
}

void write_file(const std::string& path, std::string_view content) {
  remove_abandoned(path);
  const std::string part = temporary_name(path);
  std::error_code error;
  try {
    OwnedFile file;
    const auto open = [&] {
      return ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    };
    if (const int code = own(part, open, file); code != 0) cannot_write(path, code);
    write_all(file.get(), content, path);
    if (std::rename(part.c_str(), path.c_str()) != 0) cannot_write(path, errno);
  } catch (...) {
    fs::remove(part, error);
    throw;
  }
  sync_folder(parent_of(path));
}

void refuse_unwritable(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw BadInput(fmt::format("cannot write {}: it is a folder", path));
  const std::string part = temporary_name(path);
  const OwnedFile file(::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0)
    throw BadInput(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  fs::remove(part, ignored);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

ResultFolder::ResultFolder(const std::string& path, bool force)
    : path_(without_slash(path)), temporary_(temporary_name(path_)), force_(force) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    if (!force_)
      throw BadInput(fmt::format(
          "{} exists already; choose another `out`, or replace it with `force`", path_));
    if (!fs::is_directory(path_) ||
        (!fs::is_empty(path_) && !fs::exists(fs::path(path_) / "summary.json")))
      throw BadInput(fmt::format(
          "{} exists and is not a result folder; `force` replaces only result folders", path_));
  }
  for (fs::path parent = fs::absolute(path_).parent_path(); !fs::exists(parent, error);
       parent = parent.parent_path())
    made_.push_back(parent.string());
  remove_abandoned(path_);
  const auto open = [&] {
    std::error_code made;
    fs::create_directories(temporary_, made);
    if (made) return errno = made.value(), -1;
    return ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  };
  if (const int code = own(temporary_, open, lock_); code != 0) {
    give_up();
    throw BadInput(fmt::format("cannot write to {}: {}", path_, std::strerror(code)));
  }
}

ResultFolder::~ResultFolder() {
  if (!committed_) give_up();
}

void ResultFolder::give_up() const {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  for (const std::string& parent : made_) fs::remove(parent, ignored);  // only if it is empty
}

void ResultFolder::add(const std::string& name, std::string_view content) {
  write_plain((fs::path(temporary_) / name).string(), content);
}

void ResultFolder::commit() {
  sync_folder(temporary_);
  // In one step, where the file system can: at no time is there no result under the name.
  const bool replaces = fs::exists(path_);
  const int code = replaces ? exchange_names(temporary_, path_) : rename_to(temporary_, path_);
  if (code != 0) cannot_write(path_, code);
  committed_ = true;
  sync_folder(parent_of(path_));
  if (!replaces) return;
  keep_foreign(temporary_, path_);
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

}  // namespace affpcl
