#include "affpcl/random/discrete_gaussian.h"

#include <bit>
#include <cstdlib>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

using Wide = Uint128;

int width(Wide value) {
  const auto high = static_cast<std::uint64_t>(value >> 64),
             low = static_cast<std::uint64_t>(value);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
}

// Uniform on 0, ..., below - 1, by rejection.
Wide uniform_below(Wide below, RandomBits& bits) {
  const int count = width(below - 1);
  for (;;) {
    Wide value = count > 64 ? bits.take(count - 64) : 0;
    if (count > 0) value = value << 64 | bits.take(count > 64 ? 64 : count);
    if (value < below) return value;
  }
}

// exp(-over / under) for over <= under: the parity of a run of trials with probabilities
// over / (under k), k = 1, 2, ... (von Neumann).
bool bernoulli_exp_small(Wide over, Wide under, RandomBits& bits) {
  constexpr Wide kMost = ~Wide{0} / 4;
  for (Wide k = 1;; ++k) {
    if (under > kMost / k) throw Failure("a discrete Gaussian needs more than 128 bits");
    if (uniform_below(under * k, bits) >= over) return k % 2 == 1;
  }
}

}  // namespace

bool bernoulli_exp(Wide over, Wide under, RandomBits& bits) {
  for (; over > under; over -= under)
    if (!bernoulli_exp_small(1, 1, bits)) return false;
  return bernoulli_exp_small(over, under, bits);
}

std::int64_t discrete_laplace(std::int64_t scale, RandomBits& bits) {
  const auto t = static_cast<Wide>(scale);
  for (;;) {
    const Wide rest = uniform_below(t, bits);
    if (!bernoulli_exp(rest, t, bits)) continue;
    Wide whole = 0;
    while (bernoulli_exp(1, 1, bits)) ++whole;
    const auto size = static_cast<std::int64_t>(rest + t * whole);
    const bool negative = bits.take(1) == 1;
    if (negative && size == 0) continue;  // 0 has one sign
    return negative ? -size : size;
  }
}

// A discrete Laplace number of scale sigma is taken with probability exp(-(|x| - sigma)^2 / 2 sigma^2).
std::int64_t discrete_gaussian(std::int64_t sigma, RandomBits& bits) {
  const auto under = 2 * static_cast<Wide>(sigma) * static_cast<Wide>(sigma);
  for (;;) {
    const std::int64_t x = discrete_laplace(sigma, bits);
    const auto apart = static_cast<Wide>(std::abs(std::abs(x) - sigma));
    if (bernoulli_exp(apart * apart, under, bits)) return x;
  }
}

}  // namespace affpcl
