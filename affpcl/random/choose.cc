#include "affpcl/random/choose.h"

#include <algorithm>

namespace affpcl {

void choose(const Key& key, Purpose purpose, std::int64_t n, std::int64_t m,
            std::span<std::uint64_t> bits, std::int64_t stream) {
  std::fill(bits.begin(), bits.end(), 0);
  for (std::int64_t j = n - m, k = 0; j < n; ++j, ++k) {
    const double u = uniform(key, stream, purpose, static_cast<std::uint32_t>(k));
    const auto drawn = std::min(j, static_cast<std::int64_t>(u * static_cast<double>(j + 1)));
    const auto word = [&](std::int64_t i) -> std::uint64_t& {
      return bits[static_cast<std::size_t>(i / 64)];
    };
    const bool taken = (word(drawn) >> (drawn % 64) & 1) != 0;
    const std::int64_t chosen = taken ? j : drawn;
    word(chosen) |= std::uint64_t{1} << (chosen % 64);
  }
}

}  // namespace affpcl
