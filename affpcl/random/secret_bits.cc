#include "affpcl/random/secret_bits.h"

#include <sodium.h>

#include <cstring>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

constexpr std::size_t kBytes = 4096;  // at a time

}  // namespace

SecretBits::SecretBits() : bytes_(kBytes), used_(kBytes) {
  if (sodium_init() < 0) throw Failure("libsodium cannot be started");
}

SecretBits::~SecretBits() { sodium_memzero(bytes_.data(), bytes_.size()); }

std::uint64_t SecretBits::take(int bits) {
  std::uint64_t word = 0;
  const auto count = static_cast<std::size_t>((bits + 7) / 8);
  if (used_ + count > bytes_.size()) {
    randombytes_buf(bytes_.data(), bytes_.size());
    used_ = 0;
  }
  std::memcpy(&word, bytes_.data() + used_, count);
  used_ += count;
  return bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace affpcl
