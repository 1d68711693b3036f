#include "affpcl/problem/finite_densities.h"

#include <cmath>

#include "affpcl/problem/present.h"

namespace affpcl {

// Against mu_S, the mean of mu^j over the agents present.
class FiniteDensities::Among final : public Densities {
 public:
  Among(const FiniteDensities& all, const Present& present)
      : all_(all), present_(present), mixture_(static_cast<std::size_t>(all.cells_)) {
    for (std::size_t b = 0; b < present.blocks.size(); ++b)
      each_lane(present.blocks[b], [&](int l) {
        for (int c = 0; c < all.cells_; ++c)
          mixture_[static_cast<std::size_t>(c)] +=
              all.mu(static_cast<std::int64_t>(b) * kLanes + l, c) /
              static_cast<double>(present.count);
      });
  }

  int p() const override { return all_.cells_; }
  void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override {
    all_.accumulate_some(present_.of(lanes), lanes, s, g, false, scratch, M);
  }
  void accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single, Scratch& scratch,
                       double* M) const override {
    all_.accumulate_some(which, lanes, s, g, single, scratch, M);
  }
  void correct(Lanes lanes, const double* M, Out rg) const override {
    each_lane(present_.of(lanes), [&](int l) {
      for (int r = 0; r < rg.rows; ++r) {
        double sum = 0;
        for (int c = 0; c < all_.cells_; ++c) sum += rho(lanes.first + l, c) * M[c * rg.rows + r];
        rg.row(r)[l] = sum;
      }
    });
  }
  double tv(std::int64_t i, std::int64_t j) const override { return all_.tv(i, j); }
  void own(Lanes lanes, In s, Scratch&, Out rho_row) const override {
    for (int l = 0; l < lanes.count; ++l) rho_row.p[l] = rho(lanes.first + l, all_.cell_of(s, l));
  }

 private:
  double rho(std::int64_t agent, int cell) const {
    const double mu = all_.mu(agent, cell);
    return mu == 0 ? 0 : mu / mixture_[static_cast<std::size_t>(cell)];
  }

  const FiniteDensities& all_;
  const Present& present_;
  std::vector<double> mixture_;
};

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

void FiniteDensities::accumulate_some(LaneSet which, Lanes, In s, In g, bool, Scratch&,
                                      double* M) const {
  each_lane(which, [&](int l) {
    for (int r = 0; r < g.rows; ++r) M[cell_of(s, l) * g.rows + r] += g.at(r, l);
  });
}

std::unique_ptr<Densities> FiniteDensities::among(const Present& present) const {
  return std::make_unique<Among>(*this, present);
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
