// Replays fuzz/corpus through its readers:  replay fuzz/corpus
// A folder there has the name of its target; folders without one here are passed over and counted.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/targets.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) return std::fprintf(stderr, "usage: replay FOLDER\n"), 2;
  int files = 0, passed_over = 0;
  for (const fs::directory_entry& folder : fs::directory_iterator(argv[1])) {
    if (!folder.is_directory()) continue;
    const affpcl::fuzz::Target* target =
        affpcl::fuzz::find_target(folder.path().filename().string());
    if (target == nullptr) {
      ++passed_over;
      continue;
    }
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      std::printf("%s\n", file.path().c_str());  // the last line names the one that crashed
      std::fflush(stdout);
      target->read(bytes);
      ++files;
    }
  }
  std::printf("%d files read, %d folders passed over\n", files, passed_over);
  return files > 0 ? 0 : 1;
}
