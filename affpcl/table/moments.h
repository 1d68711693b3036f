// The sufficient statistics of agents' rows for linear models: X'X, X'y, y'y and the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/math/sum_tree.h"

namespace affpcl {

struct Moments {
  Moments() = default;
  Moments(std::size_t agents, std::size_t dim)
      : Moments(agents, dim, {0, static_cast<std::int64_t>(agents)}) {}
  // The run of agents that one of several processes holds.
  Moments(std::size_t agents, std::size_t dim, Leaves run)
      : n(agents),
        d(dim),
        first(static_cast<std::size_t>(run.first)),
        A(static_cast<std::size_t>(run.count()) * d * d),
        b(static_cast<std::size_t>(run.count()) * d),
        yy(static_cast<std::size_t>(run.count())),
        rows(yy.size()),
        wide(yy.size(), 1.0) {}

  // A row of agent i.
  void add(std::size_t i, std::span<const double> x, double y);
  double total_rows() const;                                         // of those held
  std::size_t at(std::size_t agent) const { return agent - first; }  // where it is held
  std::size_t held() const { return rows.size(); }

  std::size_t n = 0, d = 0;
  std::size_t first = 0;  // agent held
  std::vector<double> A;  // [held][d][d], symmetric
  std::vector<double> b;  // [held][d]
  std::vector<double> yy, rows;
  // Factor of the random-effects covariance: above 1 for an outlying agent (mixed/agent_law.h).
  std::vector<double> wide;
};

}  // namespace affpcl
