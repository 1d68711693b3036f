// The one release of a private fit: the moments of all agents' rows as integers, with noise on each.
// A row belongs to one agent, so all of them together have one sensitivity (privacy.h). Whatever is
// computed from a release says no more of a row than the release does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/random/discrete_gaussian.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/privacy.h"

namespace affpcl {

struct Release {
  std::vector<std::string> agents;
  std::size_t width = 0;  // of z = (1, x, y)
  std::vector<std::int64_t> numbers =
      {};  // [agent][j][k <= j]: sums of z_j z_k, in units of kUnit^2

  std::size_t moments() const { return width * (width + 1) / 2; }        // of an agent
  double moment(std::size_t agent, std::size_t j, std::size_t k) const;  // of z
};

// The moments of a frame's rows; what lies outside the bounds is clipped to them.
Release exact_moments(const Frame& frame);
// Adds the noise. BadInput where there are so many numbers that discrete noise could be told from
// continuous one, which the accounting is exact for.
void add_noise(const PrivacyTerms& terms, RandomBits& bits, Release& release);

// The release of these rows that `file` holds, if it is of the same job; else a new one, which is in the
// file before this returns. A second release of other rows, or on other terms, in the same job is
// refused: it would cost privacy again. Without a file every release is new.
Release released_once(const std::string& file, const std::string& job, const PrivacyTerms& terms,
                      const Frame& frame, RandomBits& bits);

}  // namespace affpcl
