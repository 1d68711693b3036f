#include "affpcl/federation/shamir.h"

#include <algorithm>

namespace affpcl {
namespace {

// The product in GF(256), modulo x^8 + x^4 + x^3 + x + 1. No branch and no table.
std::uint8_t times(std::uint8_t a, std::uint8_t b) {
  unsigned u = a, v = b, product = 0;
  for (int bit = 0; bit < 8; ++bit) {
    product ^= u & (0U - (v & 1U));
    u = (u << 1 ^ (0x11bU & (0U - (u >> 7 & 1U)))) & 0xffU;
    v >>= 1;
  }
  return static_cast<std::uint8_t>(product);
}

std::uint8_t inverse(std::uint8_t a) {  // a^254
  std::uint8_t power = a, product = 1;
  for (int k = 1; k < 8; ++k) {
    power = times(power, power);
    product = times(product, power);
  }
  return product;
}

std::byte scaled(std::byte v, std::uint8_t factor) {
  return std::byte{times(static_cast<std::uint8_t>(v), factor)};
}

}  // namespace

void shamir_share(std::span<const std::byte> secret, std::span<const std::byte> random,
                  std::uint8_t x, std::span<std::byte> share) {
  const std::size_t size = secret.size();
  std::fill(share.begin(), share.end(), std::byte{0});
  // Horner: `random` holds the coefficients from the highest down, the secret is the value at 0.
  for (std::size_t k = 0; k < random.size(); k += size)
    for (std::size_t i = 0; i < size; ++i) share[i] = scaled(share[i] ^ random[k + i], x);
  for (std::size_t i = 0; i < size; ++i) share[i] ^= secret[i];
}

void shamir_secret(std::span<const std::uint8_t> x, std::span<const std::byte> shares,
                   std::span<std::byte> secret) {
  const std::size_t size = secret.size();
  std::fill(secret.begin(), secret.end(), std::byte{0});
  for (std::size_t k = 0; k < x.size(); ++k) {
    std::uint8_t weight = 1;  // Lagrange's at 0; minus is plus in this field
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto gap = static_cast<std::uint8_t>(x[j] ^ x[k]);
      if (j != k) weight = times(weight, times(x[j], inverse(gap)));
    }
    for (std::size_t i = 0; i < size; ++i) secret[i] ^= scaled(shares[k * size + i], weight);
  }
}

}  // namespace affpcl
