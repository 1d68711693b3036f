#include "affpcl/base/archive.h"

#include <fmt/format.h>

#include <cstring>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

// A field: the length of its name, its type, the bytes of its value; then the name and the value.
struct Head {
  std::uint32_t name;
  std::uint32_t type;
  std::uint64_t bytes;
};

}  // namespace

Archive::Archive(std::string_view kind, Integer version) : reading_(false) {
  std::string name(kind);
  (*this)("kind", name);
  (*this)("version", version);
}

Archive::Archive(std::string_view kind, Integer version, std::span<const std::byte> bytes)
    : reading_(true), rest_(bytes) {
  std::string theirs;
  (*this)("kind", theirs);
  if (theirs != kind)
    throw BadInput(fmt::format("it holds a '{:.40}' where a '{}' is expected", theirs, kind));
  Integer found = 0;
  (*this)("version", found);
  if (found != version)
    throw BadInput(fmt::format("its {} has version {}, and this affpcl reads version {}", kind,
                               found, version));
}

void Archive::operator()(std::string_view name, bool& x) {
  std::uint8_t byte = x ? 1 : 0;
  fixed(name, Type::kBool, &byte, sizeof byte);
  if (byte > 1) refuse(name, "is neither true nor false");
  x = byte == 1;
}

void Archive::operator()(std::string_view name, Integer& x, Integer least, Integer most) {
  fixed(name, Type::kInteger, &x, sizeof x);
  if (reading_ && (x < least || x > most))
    refuse(name, fmt::format("is {}, not between {} and {}", x, least, most));
}

void Archive::operator()(std::string_view name, double& x) {
  fixed(name, Type::kNumber, &x, sizeof x);
}

void Archive::operator()(std::string_view name, std::string& x) {
  std::uint64_t bytes = x.size();
  head(name, Type::kString, bytes);
  if (reading_) x.resize(bytes);
  reading_ ? get(x.data(), bytes) : put(x.data(), bytes);
}

void Archive::operator()(std::string_view name, std::vector<double>& x) {
  std::uint64_t bytes = x.size() * sizeof(double);
  head(name, Type::kNumbers, bytes);
  if (bytes % sizeof(double) != 0) refuse(name, "is no list of numbers");
  if (reading_) x.resize(bytes / sizeof(double));
  reading_ ? get(x.data(), bytes) : put(x.data(), bytes);
}

void Archive::finish() const {
  if (!rest_.empty())
    throw BadInput(fmt::format("{} bytes follow where it should end", rest_.size()));
}

void Archive::fixed(std::string_view name, Type type, void* value, std::uint64_t bytes) {
  std::uint64_t found = bytes;
  head(name, type, found);
  if (found != bytes) refuse(name, fmt::format("has {} bytes, not {}", found, bytes));
  reading_ ? get(value, bytes) : put(value, bytes);
}

// An item has at least one field, so the bytes that are left bound the number of items.
void Archive::list(std::string_view name, Integer& count) {
  fixed(name, Type::kList, &count, sizeof count);
  if (reading_ && (count < 0 || static_cast<std::uint64_t>(count) > rest_.size() / sizeof(Head)))
    refuse(name, fmt::format("has {} items, more than there are bytes for", count));
}

void Archive::head(std::string_view name, Type type, std::uint64_t& bytes) {
  Head h{static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(type), bytes};
  if (!reading_) {
    put(&h, sizeof h);
    return put(name.data(), name.size());
  }
  if (rest_.size() < sizeof h) refuse(name, "is missing: it ends too soon");
  get(&h, sizeof h);
  if (h.name != name.size() || rest_.size() < h.name ||
      std::memcmp(rest_.data(), name.data(), name.size()) != 0)
    refuse(name, "is expected where another one stands");
  rest_ = rest_.subspan(h.name);
  if (h.type != static_cast<std::uint32_t>(type)) refuse(name, "has another type");
  if (h.bytes > rest_.size()) refuse(name, "ends too soon");
  bytes = h.bytes;
}

void Archive::put(const void* from, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  written_.insert(written_.end(), first, first + bytes);
}

void Archive::get(void* to, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
  rest_ = rest_.subspan(bytes);
}

void Archive::refuse(std::string_view name, std::string_view why) {
  throw BadInput(fmt::format("its field '{}' {}", name, why));
}

}  // namespace affpcl
