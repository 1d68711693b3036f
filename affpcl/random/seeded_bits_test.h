// Coins from a seed, for tests only: whoever knows the seed knows the noise.
#pragma once

#include <cstdint>

#include "affpcl/random/discrete_gaussian.h"

namespace affpcl {

class SeededBits final : public RandomBits {
 public:
  explicit SeededBits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t take(int bits) override { return next() >> (64 - bits); }

 private:
  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace affpcl
