#include "affpcl/federation/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/federation/message.h"

namespace affpcl {
namespace {

// A record: its length, then an encoded message, which has a checksum of its own.
std::string record(const SiteMessage& message) {
  const std::string bytes = message.encoded();
  const std::uint64_t size = bytes.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + bytes;
}

void append(const std::string& path, const std::string& bytes) {
  const OwnedFile file(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw Failure(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) != 0)
    throw Failure(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace

Journal read_journal(const std::string& path, const std::string& job,
                     const std::vector<std::string>& sites) {
  Journal journal;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return journal;
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Failure(fmt::format("{}: cannot be read", path));
  std::size_t whole = 0;  // bytes of records that are whole
  bool others = false;    // totals are of some of these sites only: all start again
  for (std::string_view rest = all; rest.size() >= sizeof(std::uint64_t);) {
    std::uint64_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    if (size > rest.size()) break;
    SiteMessage m;
    try {
      m = SiteMessage::decoded(rest.substr(0, size));
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", path, e.what()));
    }
    rest.remove_prefix(size);
    whole = all.size() - rest.size();
    if (m.kind == MessageKind::kOpen) {
      const bool names_sites = !m.names.empty();
      const auto known = [&](const std::string& name) {
        return std::find(sites.begin(), sites.end(), name) != sites.end();
      };
      if (names_sites && (m.job != job || !std::all_of(m.names.begin(), m.names.end(), known)))
        throw BadInput(
            fmt::format("{}: it is the journal of another job, or its data have changed; remove it "
                        "to start again",
                        path));
      if (names_sites) others = m.names != sites;
      journal.attempt = m.attempt;
    } else if (!others) {
      journal.totals.push_back(std::move(m.bytes));
    }
  }
  // The first record is written whole or not at all.
  if (whole == 0) throw BadInput(fmt::format("{}: it is no journal of a federation", path));
  if (whole < all.size()) std::filesystem::resize_file(path, whole, error);
  if (error) throw Failure(fmt::format("{}: cannot be written: {}", path, error.message()));
  return journal;
}

void start_journal(const std::string& path, const std::string& job,
                   const std::vector<std::string>& sites, std::int64_t attempt) {
  SiteMessage m;
  m.job = job, m.names = sites, m.attempt = attempt;
  write_file(path, record(m));
}

void note_attempt(const std::string& path, std::int64_t attempt) {
  SiteMessage m;
  m.attempt = attempt;
  append(path, record(m));
}

void append_total(const std::string& path, std::string_view total) {
  SiteMessage m;
  m.kind = MessageKind::kTotal;
  m.bytes = total;
  append(path, record(m));
}

}  // namespace affpcl
