// Shamir's secret sharing over GF(256), byte by byte: any `threshold` shares give the secret, fewer
// say nothing about it. Time does not depend on the bytes of secrets and shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace affpcl {

// The share with number `x` (1 to 255) of `secret`. `random` holds (threshold - 1) * secret.size()
// uniform bytes, the same for all shares of one secret.
void shamir_share(std::span<const std::byte> secret, std::span<const std::byte> random,
                  std::uint8_t x, std::span<std::byte> share);

// The secret from the shares with numbers x: as many as the threshold, or more. Their bytes lie in
// `shares` one behind the other.
void shamir_secret(std::span<const std::uint8_t> x, std::span<const std::byte> shares,
                   std::span<std::byte> secret);

}  // namespace affpcl
