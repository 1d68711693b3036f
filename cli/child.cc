#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "affpcl/base/error.h"
#include "cli/terminal.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace affpcl::cli {
namespace {

constexpr int kLook = 200;  // milliseconds between looks for Ctrl-C
constexpr auto kPatience =
    std::chrono::seconds(15);  // until a process that was asked to end is killed
constexpr std::size_t kMostTail = 4096;

std::array<OwnedFile, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Failure(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  return {OwnedFile(ends[0]), OwnedFile(ends[1])};
}

// To end the other processes, and to say how to go on, may take longer than one that works may take.
void stop_if_interrupted() {
  if (!interruption()) return;
  take_time_to_write();
  throw Interrupted();
}

OwnedFile nameless_file() {
  std::string path = "/tmp/affpcl-XXXXXX";
  OwnedFile file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0)
    throw Failure(fmt::format("/tmp cannot be written to: {}", std::strerror(errno)));
  ::unlink(path.c_str());
  return file;
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const std::string& log)
    : errors_(log.empty() ? nameless_file()
                          : OwnedFile(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC)) {
  std::signal(SIGPIPE, SIG_IGN);  // writing to a process that has ended fails instead
  auto [in, to] = make_pipe();
  auto [from, out] = make_pipe();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors_.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int error = ::posix_spawnp(&process_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    process_ = -1;
    throw Failure(fmt::format("{} cannot be started: {}", words[0], std::strerror(error)));
  }
  to_ = std::move(to), from_ = std::move(from);
}

Child::~Child() { stop(); }

bool Child::write(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(to_.get(), rest.data(), rest.size());
    stop_if_interrupted();
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::size_t Child::some(char* to, std::size_t most) {
  for (;;) {
    pollfd ready{.fd = from_.get(), .events = POLLIN, .revents = 0};
    const int found = ::poll(&ready, 1, kLook);
    stop_if_interrupted();
    if (found == 0 || (found < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(from_.get(), to, most);
    if (got < 0 && errno == EINTR) continue;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
}

bool Child::read(char* to, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t got = some(to, bytes);
    if (got == 0) return false;
    to += got, bytes -= got;
  }
  return true;
}

bool Child::read_line(std::string& line) {
  std::array<char, 4096> buffer{};
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return true;
    }
    const std::size_t got = some(buffer.data(), buffer.size());
    if (got == 0) return false;
    read_.append(buffer.data(), got);
  }
}

int Child::wait() {
  while (process_ > 0) {
    if (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) continue;
    process_ = -1;
  }
  return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
}

void Child::ask_to_end() {
  to_ = OwnedFile();
  if (process_ > 0) ::kill(process_, SIGTERM);
}

void Child::stop() {
  if (process_ <= 0) return;
  ask_to_end();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(process_, &status_, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      ::kill(process_, SIGKILL);
      wait();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  process_ = -1;
}

std::string Child::last_words() const {
  const off_t size = ::lseek(errors_.get(), 0, SEEK_END);
  std::string tail(std::min(static_cast<std::size_t>(std::max<off_t>(size, 0)), kMostTail), '\0');
  const ssize_t got =
      ::pread(errors_.get(), tail.data(), tail.size(), size - static_cast<off_t>(tail.size()));
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  std::string line = tail.substr(tail.find_last_of('\n') + 1);
  constexpr std::string_view kOurs = "affpcl: ";
  return line.starts_with(kOurs) ? line.substr(kOurs.size()) : line;
}

}  // namespace affpcl::cli
