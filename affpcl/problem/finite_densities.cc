#include "affpcl/problem/finite_densities.h"

#include <cmath>

namespace affpcl {

FiniteDensities::FiniteDensities(int cells, std::vector<double> mu, int cell_row)
    : cells_(cells), cell_row_(cell_row), mu_(std::move(mu)) {
  const auto S = static_cast<std::size_t>(cells);
  const std::size_t agents = mu_.size() / S;
  const auto n = static_cast<double>(agents);
  mu0_.assign(S, 0.0);
  cumulative_.reserve(mu_.size());
  rho_.reserve(mu_.size());
  for (std::size_t j = 0; j < mu_.size(); ++j) {
    cumulative_.push_back(mu_[j] + (j % S == 0 ? 0 : cumulative_.back()));
    mu0_[j % S] += mu_[j] / n;
  }
  for (std::size_t j = 0; j < mu_.size(); ++j)
    rho_.push_back(mu_[j] == 0 ? 0 : mu_[j] / mu0_[j % S]);  // 0/0 = 0, as in lem:vd-fed
}

int FiniteDensities::pick(std::int64_t agent, double u) const {
  return categorical({cumulative_.data() + index(agent, 0), static_cast<std::size_t>(cells_)}, u);
}

void FiniteDensities::accumulate(Lanes lanes, In s, In g, Scratch&, double* M) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < g.rows; ++r) M[cell_of(s, l) * g.rows + r] += g.at(r, l);
}

void FiniteDensities::correct(Lanes lanes, const double* M, Out rg) const {
  const int S = cells_, d = rg.rows;
  for (int l = 0; l < lanes.count; ++l) {
    const double* eta = rho_.data() + index(lanes.first + l, 0);
    for (int r = 0; r < d; ++r) {
      double sum = 0;
      for (int s = 0; s < S; ++s) sum += eta[s] * M[s * d + r];
      rg.row(r)[l] = sum;
    }
  }
}

double FiniteDensities::tv(std::int64_t i, std::int64_t j) const {
  double sum = 0;
  for (int s = 0; s < cells_; ++s) sum += std::abs(mu(i, s) - mu(j, s));
  return sum / 2;
}

void FiniteDensities::own(Lanes lanes, In s, Scratch&, Out rho_row) const {
  for (int l = 0; l < lanes.count; ++l) rho_row.p[l] = rho(lanes.first + l, cell_of(s, l));
}

}  // namespace affpcl
