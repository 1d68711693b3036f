#include "fuzz/targets.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace affpcl::fuzz {
namespace {

namespace fs = std::filesystem;

struct Scratch {  // removed at the end of the process
  Scratch() { fs::create_directories(folder); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  const fs::path folder = fs::temp_directory_path() / ("affpcl_fuzz_" + std::to_string(getpid()));
};

}  // namespace

std::string scratch_file(const std::string& name, std::string_view bytes) {
  static const Scratch scratch;
  const std::string path = (scratch.folder / name).string();
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::vector<Target> targets() {
  std::vector<Target> all(table_targets().begin(), table_targets().end());
#ifndef AFFPCL_FUZZ_TABLES_ONLY
  for (const std::span<const Target> more : {study_targets(), use_targets()})
    all.insert(all.end(), more.begin(), more.end());
#endif
  return all;
}

const Target* find_target(std::string_view name) {
  static const std::vector<Target> all = targets();
  for (const Target& target : all)
    if (target.name == name) return &target;
  return nullptr;
}

}  // namespace affpcl::fuzz
