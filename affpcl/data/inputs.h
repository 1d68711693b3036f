// Inputs that are no plain files: standard input and pipes, files packed by gzip, zstd or xz, and
// Parquet or Arrow files. What they hold is put once into a file without a name, and is read from
// there as often as it takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace affpcl {

// Bytes in a file without a name, gone with this object.
class Spool {
 public:
  Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();
  // Refuses `path`, whose bytes these are, where they would fill the disk.
  void write(const std::string& path, const char* from, std::size_t bytes);
  std::string place() const;  // where it can be opened, again and again

 private:
  int fd_ = -1;
  std::size_t unchecked_ = 0;  // bytes written since the disk was looked at
};

// As long as one of these lives, a pipe or a packed file is read once on this thread, however often
// it is opened. One inside another shares its inputs. Reading stops with Interrupted once `stop` is
// true.
class InputScope {
 public:
  explicit InputScope(const std::atomic<bool>* stop = nullptr);
  InputScope(const InputScope&) = delete;
  InputScope& operator=(const InputScope&) = delete;
  ~InputScope();

 private:
  friend std::shared_ptr<Spool> spooled(const std::string& path);
  friend void stop_if_asked();
  InputScope* outer_;
  const std::atomic<bool>* stop_;
  std::map<std::string, std::shared_ptr<Spool>> spools_;
};

// What `path` holds, where that is not in a plain file; null where it is.
std::shared_ptr<Spool> spooled(const std::string& path);

void stop_if_asked();  // throws Interrupted

// Bytes from a pipe, 0 at its end. It waits, but not beyond an interruption.
std::size_t read_waiting(int fd, char* to, std::size_t bytes, const std::string& path);

}  // namespace affpcl
