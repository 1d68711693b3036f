// The discrete Gaussian by the exact sampler of Canonne, Kamath and Steinke (2020): integers whose
// probabilities are proportional to exp(-x^2 / 2 sigma^2), without a floating-point number on the way.
#pragma once

#include <cstdint>

namespace affpcl {

// Fair coins. Noise that protects anything takes them from SecretBits (secret_bits.h).
class RandomBits {
 public:
  virtual ~RandomBits() = default;
  virtual std::uint64_t take(int bits) = 0;  // 1 to 64 of them; the others are 0
};

__extension__ using Uint128 = unsigned __int128;

inline constexpr std::int64_t kMostSigma = std::int64_t{1} << 45;

// 1 <= sigma <= kMostSigma.
std::int64_t discrete_gaussian(std::int64_t sigma, RandomBits& bits);

// What it is made of: true with probability exp(-over / under), and the discrete Laplace distribution
// with probabilities proportional to exp(-|x| / scale).
bool bernoulli_exp(Uint128 over, Uint128 under, RandomBits& bits);
std::int64_t discrete_laplace(std::int64_t scale, RandomBits& bits);

}  // namespace affpcl
