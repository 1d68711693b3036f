#include "affpcl/runtime/processes.h"

#include <algorithm>
#include <vector>

namespace affpcl {

void Processes::all_gather(ConstBytes mine, Counts, Bytes all) {
  std::copy(mine.begin(), mine.end(), all.begin());
}

void Processes::all_to_all(ConstBytes mine, Counts, Counts, Bytes all) {
  std::copy(mine.begin(), mine.end(), all.begin());
}

void Processes::sum(std::span<Fixed> numbers) {
  const auto ranks = static_cast<std::size_t>(count());
  if (ranks == 1) return;
  std::vector<Fixed> all(ranks * numbers.size());
  const std::vector<std::size_t> counts(ranks, numbers.size_bytes());
  all_gather(std::as_bytes(numbers), counts, std::as_writable_bytes(std::span(all)));
  std::fill(numbers.begin(), numbers.end(), Fixed{});
  for (std::size_t i = 0; i < all.size(); ++i) numbers[i % numbers.size()] += all[i];
}

Processes& this_process() {
  static Processes alone;
  return alone;
}

}  // namespace affpcl
