#define XXH_INLINE_ALL

#include "affpcl/federation/message.h"

#include <xxhash.h>

#include <cstring>

#include "affpcl/base/archive.h"
#include "affpcl/base/error.h"

namespace affpcl {
namespace {

constexpr Archive::Integer kVersion = 1;
constexpr std::string_view kKind = "affpcl federation message";
constexpr Archive::Integer kMostRounds = 1'000'000'000;

void put_list(Archive& archive, std::string_view name, std::vector<std::string>& list) {
  archive(name, list, [](Archive& a, std::string& s) { a("", s); });
}

template <class Enum>
void put_enum(Archive& archive, std::string_view name, Enum& value) {
  auto number = static_cast<Archive::Integer>(value);
  archive(name, number, 0, std::ssize(EnumNames<Enum>::all) - 1);
  value = static_cast<Enum>(number);
}

void put(Archive& archive, SiteMessage& m) {
  put_enum(archive, "kind", m.kind);
  archive("job", m.job);
  archive("attempt", m.attempt, 0, kMostRounds);
  archive("round", m.round, 0, kMostRounds);
  archive("secure", m.secure);
  archive("restart", m.restart);
  archive("leave", m.leave);
  archive("progress", m.progress);
  archive("purpose", m.purpose);
  put_enum(archive, "collective", m.collective);
  archive("bytes", m.bytes);
  archive("text", m.text);
  put_list(archive, "names", m.names);
  put_list(archive, "keys", m.keys);
  put_list(archive, "totals", m.totals);
  put_list(archive, "sealed", m.sealed);
}

}  // namespace

std::string SiteMessage::encoded() const {
  Archive archive(kKind, kVersion);
  SiteMessage copy = *this;
  put(archive, copy);
  const std::vector<std::byte> content = archive.take();
  const XXH64_hash_t check = XXH3_64bits(content.data(), content.size());
  std::string all(sizeof check + content.size(), '\0');
  std::memcpy(all.data(), &check, sizeof check);
  std::memcpy(all.data() + sizeof check, content.data(), content.size());
  return all;
}

SiteMessage SiteMessage::decoded(std::string_view bytes) {
  XXH64_hash_t check = 0;
  if (bytes.size() < sizeof check) throw BadInput("a message of the federation is too short");
  std::memcpy(&check, bytes.data(), sizeof check);
  bytes.remove_prefix(sizeof check);
  if (XXH3_64bits(bytes.data(), bytes.size()) != check)
    throw BadInput("a message of the federation is damaged: its checksum differs");
  try {
    Archive archive(kKind, kVersion, std::as_bytes(std::span(bytes)));
    SiteMessage m;
    put(archive, m);
    archive.finish();
    return m;
  } catch (const BadInput& e) {
    throw BadInput(std::string("a message of the federation cannot be read: ") + e.what());
  }
}

std::string bytes_of(std::span<const Fixed> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::vector<Fixed> fixed_of(std::string_view bytes) {
  if (bytes.size() % sizeof(Fixed) != 0)
    throw BadInput("a message of the federation does not hold whole numbers");
  std::vector<Fixed> numbers(bytes.size() / sizeof(Fixed));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace affpcl
