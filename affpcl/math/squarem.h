// EM in fewer steps: SQUAREM (Varadhan and Roland 2008, scheme S3). Every two steps of EM are
// followed by a jump along the path that they took.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace affpcl {

// Replaces x by a fixed point of next(x), up to `still` in every number; returns the number of calls.
// A jump is shortened until allowed(x), at least to where two steps of EM lead.
template <class Next, class Allowed>
int squarem(std::vector<double>& x, int most, double still, Next next, Allowed allowed) {
  for (int calls = 0; calls < most;) {
    const std::vector<double> one = next(x);
    double moved = 0, first = 0, second = 0;
    for (std::size_t k = 0; k < x.size(); ++k) moved = std::max(moved, std::abs(one[k] - x[k]));
    if (++calls == most || moved < still) {
      x = one;
      return calls;
    }
    const std::vector<double> two = next(one);
    ++calls;
    for (std::size_t k = 0; k < x.size(); ++k) {
      first += std::pow(one[k] - x[k], 2);
      second += std::pow(two[k] - 2 * one[k] + x[k], 2);
    }
    for (double a = second > 0 ? std::max(1.0, std::sqrt(first / second)) : 1;; a = (a + 1) / 2) {
      std::vector<double> to(x.size());
      for (std::size_t k = 0; k < x.size(); ++k)
        to[k] = x[k] + 2 * a * (one[k] - x[k]) + a * a * (two[k] - 2 * one[k] + x[k]);
      if (a < 1.01) to = two;
      if (a < 1.01 || allowed(to)) {
        x = std::move(to);
        break;
      }
    }
  }
  return most;
}

}  // namespace affpcl
