#include "affpcl/base/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

extern char** environ;  // POSIX

namespace affpcl {

std::vector<std::string> pythons() {
  namespace fs = std::filesystem;
  std::vector<std::string> all;
  if (const char* named = std::getenv("AFFPCL_PYTHON"); named != nullptr && *named != '\0')
    all.emplace_back(named);
  if (const char* active = std::getenv("VIRTUAL_ENV"); active != nullptr && *active != '\0')
    all.push_back(std::string(active) + "/bin/python");
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  // A wheel's program is five folders below its environment, a package's one.
  for (fs::path above = own.parent_path(); !error && above != above.root_path();
       above = above.parent_path())
    if (const fs::path python = above / "bin" / "python3"; fs::exists(python, error))
      all.push_back(python.string());
  all.emplace_back("python3");
  all.emplace_back("/usr/bin/python3");
  return all;
}

int run_python(const std::string& python, const std::vector<std::string>& words, bool quiet) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (int fd = 1; fd <= 2 && quiet; ++fd)
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> all = {python};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& w : all) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace affpcl
