#include "affpcl/affinity/seriation.h"

#include <algorithm>
#include <limits>

namespace affpcl {

std::vector<std::size_t> seriate(std::span<const double> distance, std::size_t n) {
  std::vector<std::vector<std::size_t>> chains(n);
  for (std::size_t i = 0; i < n; ++i) chains[i] = {i};
  std::vector<double> between(distance.begin(), distance.end());
  std::vector<std::size_t> alive(n);
  for (std::size_t i = 0; i < n; ++i) alive[i] = i;
  while (alive.size() > 1) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t a = alive[0], b = alive[1];
    for (std::size_t p = 0; p < alive.size(); ++p)
      for (std::size_t q = p + 1; q < alive.size(); ++q)
        if (const double v = between[alive[p] * n + alive[q]]; v < least)
          least = v, a = alive[p], b = alive[q];
    std::vector<std::size_t>&first = chains[a], &second = chains[b];
    const auto apart = [&](std::size_t i, std::size_t j) { return distance[i * n + j]; };
    const double nearest =
        std::min({apart(first.back(), second.front()), apart(first.back(), second.back()),
                  apart(first.front(), second.front()), apart(first.front(), second.back())});
    const bool at_front =
        std::min(apart(first.back(), second.front()), apart(first.back(), second.back())) > nearest;
    if (at_front) std::reverse(first.begin(), first.end());
    if (apart(first.back(), second.back()) < apart(first.back(), second.front()))
      std::reverse(second.begin(), second.end());
    const auto size_a = static_cast<double>(first.size()),
               size_b = static_cast<double>(second.size());
    for (std::size_t k : alive) {
      const double mixed =
          (size_a * between[a * n + k] + size_b * between[b * n + k]) / (size_a + size_b);
      between[a * n + k] = between[k * n + a] = mixed;
    }
    first.insert(first.end(), second.begin(), second.end());
    second.clear();
    alive.erase(std::find(alive.begin(), alive.end(), b));
  }
  return n == 0 ? std::vector<std::size_t>{} : chains[alive[0]];
}

}  // namespace affpcl
