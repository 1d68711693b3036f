#include "affpcl/base/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "affpcl/base/error.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

void write_plain(const std::string& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) throw Failure(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

std::string temporary_name(const std::string& path) {
  return fmt::format("{}.{}.part", path, getpid());
}

// DIR/ and DIR are the same folder.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void write_file(const std::string& path, std::string_view content) {
  const std::string part = temporary_name(path);
  std::error_code error;
  try {
    write_plain(part, content);
  } catch (...) {
    fs::remove(part, error);
    throw;
  }
  fs::rename(part, path, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(part, error);
    throw Failure(fmt::format("cannot write {}: {}", path, why));
  }
}

void refuse_unwritable(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw BadInput(fmt::format("cannot write {}: it is a folder", path));
  const std::string part = temporary_name(path);
  try {
    write_plain(part, "");
  } catch (const Failure&) {
    throw BadInput(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
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
  fs::create_directories(temporary_, error);
  if (error) {
    const std::string why = error.message();
    give_up();
    throw BadInput(fmt::format("cannot write to {}: {}", path_, why));
  }
}

ResultFolder::~ResultFolder() {
  if (!committed_) give_up();
}

void ResultFolder::give_up() const {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  for (const std::string& parent : made_) fs::remove(parent, ignored);  // only if nobody used it
}

void ResultFolder::add(const std::string& name, std::string_view content) {
  write_plain((fs::path(temporary_) / name).string(), content);
}

void ResultFolder::commit() {
  std::error_code error;
  const std::string old = temporary_name(path_ + ".old");
  const bool replaces = fs::exists(path_);
  if (replaces) fs::rename(path_, old, error);
  if (!error) fs::rename(temporary_, path_, error);
  if (error) throw Failure(fmt::format("cannot write {}: {}", path_, error.message()));
  committed_ = true;
  if (replaces) fs::remove_all(old, error);
}

}  // namespace affpcl
