#include "cli/site.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "cli/terminal.h"

namespace affpcl::cli {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;  // of a message

class Pipes final : public Channel {
 public:
  Pipes() : out_(::dup(STDOUT_FILENO)) {
    if (out_.get() < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      throw Failure("standard output cannot be used for messages");
  }

  std::string receive() override {
    std::uint64_t size = 0;
    read(&size, sizeof size);
    if (size > kMostBytes) throw BadInput("a message of the federation is longer than 4 GiB");
    std::string message(size, '\0');
    read(message.data(), size);
    return message;
  }

  void send(std::string_view message) override {
    const std::uint64_t size = message.size();
    write({reinterpret_cast<const char*>(&size), sizeof size});
    write(message);
  }

 private:
  static void read(void* to, std::size_t bytes) {
    for (auto* at = static_cast<char*>(to); bytes > 0;) {
      constexpr int kMilliseconds = 200;  // until the next look for Ctrl-C
      pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      const int found = ::poll(&ready, 1, kMilliseconds);
      if (interruption()) throw Interrupted();
      if (found == 0 || (found < 0 && errno == EINTR)) continue;
      const ssize_t got = ::read(STDIN_FILENO, at, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Failure("the federation's messages ended before the job");
      at += got, bytes -= static_cast<std::size_t>(got);
    }
  }
  void write(std::string_view rest) const {
    while (!rest.empty()) {
      const ssize_t written = ::write(out_.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR && !interruption()) continue;
      if (interruption()) throw Interrupted();
      if (written <= 0) throw Failure("the federation takes no more messages");
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  OwnedFile out_;
};

}  // namespace

void add_site(Verb& verb, SiteOfJob& site) {
  verb.option("--site", &site.name, "NAME",
              "take part in a federation as this site, with messages on standard input and output; "
              "`affpcl federate` starts it so");
  verb.option("--job", &site.job, "HASH", "--site: of what all sites agreed to");
  verb.flag("--may-leave", &site.may_leave,
            "--site: the others may go on without this site, and then learn the sums of its rows");
  verb.flag("--unmasked", &site.unmasked,
            "--site: answer also where sums are not masked, so that the centre can read each "
            "site's part");
}

std::string kept_beside(const std::string& out, const SiteOfJob& site, std::string_view what) {
  return (std::filesystem::absolute(out).parent_path() /
          fmt::format("{}.{}.{}", site.name, site.job, what))
      .string();
}

void at_site(const SiteOfJob& of, const std::function<std::string(SiteProcesses&)>& work,
             const std::function<void(const SiteProcesses&)>& done) {
  Pipes pipes;
  SiteProcesses site({.name = of.name,
                      .job = of.job,
                      .leave = of.may_leave,
                      .unmasked = of.unmasked,
                      .sent = of.sent,
                      .rows = of.rows},
                     pipes);
  for (;;) {
    try {
      site.finish(work(site));
      return done(site);
    } catch (const SiteRestart&) {
      site.restart();
    } catch (const BadInput&) {
      site.refuse();
      throw;
    } catch (const Failure&) {
      site.refuse();
      throw;
    }
  }
}

}  // namespace affpcl::cli
