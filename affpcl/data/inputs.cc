#include "affpcl/data/inputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/data/arrow.h"
#include "affpcl/data/unpack.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::size_t kCheck = std::size_t{1} << 24;  // bytes between two looks at the disk
constexpr double kLeastFree = 0.05;                   // share of the disk that stays free
constexpr int kPatience = 100;                        // ms between two looks at the stop

thread_local InputScope* g_scope = nullptr;

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

int unnamed_file() {
  const std::string folder = temporary_folder();
  int fd = -1;
#ifdef O_TMPFILE
  fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
  if (fd < 0) {
    std::string name = folder + "/affpcl-XXXXXX";
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) unlink(name.c_str());
  }
  if (fd < 0)
    throw Failure(fmt::format("no file can be made in {}: {}", folder, std::strerror(errno)));
  return fd;
}

struct Descriptor {
  int fd;
  explicit Descriptor(int open_fd) : fd(open_fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(fd); }
};

std::string opening_of(int fd) {
  std::string bytes(8, '\0');
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

std::shared_ptr<Spool> take_all(const std::string& path, int fd) {
  auto spool = std::make_shared<Spool>();
  std::vector<char> block(kBlock);
  while (const std::size_t got = read_waiting(fd, block.data(), block.size(), path))
    spool->write(path, block.data(), got);
  return spool;
}

// What the bytes at `place` unpack to; null where they are what they are.
std::shared_ptr<Spool> unpacked(const std::string& path, const std::string& place, int fd) {
  const std::string opening = opening_of(fd);
  const Packing packing = packing_of(opening);
  if (packing == Packing::kNone && !is_arrow(opening)) return nullptr;
  auto spool = std::make_shared<Spool>();
  const auto write = [&](const char* from, std::size_t bytes) { spool->write(path, from, bytes); };
  if (packing == Packing::kNone) {
    arrow_to_csv(path, place, write);
  } else {
    const auto read = [&](char* to, std::size_t bytes) {
      return read_waiting(fd, to, bytes, path);
    };
    unpack(path, packing, read, write);
  }
  return spool;
}

// A descriptor number that a child process can open too.
std::string place_of(int fd) { return fmt::format("/proc/{}/fd/{}", getpid(), fd); }

}  // namespace

Spool::Spool() : fd_(unnamed_file()) {}
Spool::~Spool() { close(fd_); }
std::string Spool::place() const { return place_of(fd_); }

void Spool::write(const std::string& path, const char* from, std::size_t bytes) {
  unchecked_ += bytes;
  if (unchecked_ >= kCheck) {
    unchecked_ = 0;
    struct statvfs disk {};
    if (fstatvfs(fd_, &disk) == 0 &&
        static_cast<double>(disk.f_bavail) < kLeastFree * static_cast<double>(disk.f_blocks))
      throw BadInput(fmt::format("{} holds more than {} has room for; TMPDIR names another folder",
                                 path, temporary_folder()));
  }
  while (bytes > 0) {
    const ssize_t put = ::write(fd_, from, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      throw Failure(fmt::format("{} cannot be put into {}: {}", path, temporary_folder(),
                                std::strerror(errno)));
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

InputScope::InputScope(const std::atomic<bool>* stop) : outer_(g_scope), stop_(stop) {
  if (outer_ != nullptr && stop_ == nullptr) stop_ = outer_->stop_;
  g_scope = this;
}

InputScope::~InputScope() { g_scope = outer_; }

void stop_if_asked() {
  if (g_scope != nullptr && g_scope->stop_ != nullptr && *g_scope->stop_) throw Interrupted();
}

std::size_t read_waiting(int fd, char* to, std::size_t bytes, const std::string& path) {
  for (;;) {
    stop_if_asked();
    struct pollfd ready {
      fd, POLLIN, 0
    };
    const int count = poll(&ready, 1, kPatience);
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(fd, to, bytes);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      throw BadInput(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
}

std::shared_ptr<Spool> spooled(const std::string& path) {
  InputScope* keeper = g_scope;  // the outermost scope keeps what is read
  while (keeper != nullptr && keeper->outer_ != nullptr) keeper = keeper->outer_;
  if (keeper != nullptr)
    if (const auto known = keeper->spools_.find(path); known != keeper->spools_.end())
      return known->second;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return nullptr;
  const bool plain = S_ISREG(status.st_mode);
  // A pipe is opened without waiting for its writer: that is done where an interruption is seen.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | (plain ? 0 : O_NONBLOCK));
  if (fd < 0) return nullptr;  // whoever opens it next says why
  const Descriptor input(fd);
  std::shared_ptr<Spool> spool;
  if (plain) {
    spool = unpacked(path, path, fd);
  } else {
    spool = take_all(path, fd);
  }
  for (int layers = 0; spool && layers < 2; ++layers) {  // a packed file may come through a pipe
    const std::string place = spool->place();
    const Descriptor inside(open(place.c_str(), O_RDONLY | O_CLOEXEC));
    std::shared_ptr<Spool> next = unpacked(path, place, inside.fd);
    if (!next) break;
    spool = std::move(next);
  }
  if (spool && keeper != nullptr) keeper->spools_[path] = spool;
  return spool;
}

}  // namespace affpcl
