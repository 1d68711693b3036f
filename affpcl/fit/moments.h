// What an agent's rows say of a linear model, once and for all: X'X, X'y, y'y and the number of
// rows. Everything that is fitted exactly is fitted from these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace affpcl {

struct Moments {
  Moments() = default;
  Moments(std::size_t agents, std::size_t dim)
      : n(agents), d(dim), A(n * d * d), b(n * d), yy(n), rows(n) {}

  // A row of agent i.
  void add(std::size_t i, std::span<const double> x, double y);
  double total_rows() const;

  std::size_t n = 0, d = 0;
  std::vector<double> A;  // [n][d][d], symmetric
  std::vector<double> b;  // [n][d]
  std::vector<double> yy, rows;
};

}  // namespace affpcl
