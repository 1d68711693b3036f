// Which agents look alike: an order in which neighbours do.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace affpcl {

// By hierarchical clustering with average linkage; clusters are laid end to end so that the two
// ends that meet are the nearest. distance: [n][n], symmetric. Time n^3 at worst.
std::vector<std::size_t> seriate(std::span<const double> distance, std::size_t n);

}  // namespace affpcl
