#include "affpcl/problem/normal_densities.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

std::vector<double> draw_means(const Key& key, const NormalEnvironments& e) {
  const std::int64_t distinct = e.radius == 0     ? 1
                                : e.distinct == 0 ? e.agents
                                                  : std::min(e.distinct, e.agents);
  std::vector<double> means;
  for (std::int64_t i = 0; i < distinct; ++i) {
    std::vector<double> m(static_cast<std::size_t>(e.dim));
    if (e.radius != 0 && !(i == 0 && e.first_central))
      m = random_direction(key, i, Purpose::kEnvironment, e.dim, e.radius);
    means.insert(means.end(), m.begin(), m.end());
  }
  return means;
}

}  // namespace

std::vector<double> random_direction(const Key& key, std::int64_t agent, Purpose purpose, int dim,
                                     double length) {
  std::vector<double> v(static_cast<std::size_t>(dim));
  double square = 0;
  for (std::size_t r = 0; r < v.size(); ++r) {
    v[r] = normal(key, agent, purpose, static_cast<std::uint32_t>(r));
    square += v[r] * v[r];
  }
  for (double& x : v) x *= length / std::sqrt(square);
  return v;
}

NormalDensities::NormalDensities(const Key& key, const NormalEnvironments& e, Field observed)
    : NormalDensities(e.agents, e.dim, draw_means(key, e), observed) {}

NormalDensities::NormalDensities(std::int64_t agents, int dim, std::vector<double> means,
                                 Field observed)
    : dim_(dim), observed_(observed), means_(std::move(means)), mean_(dim, agents) {
  const std::int64_t count = static_cast<std::int64_t>(means_.size()) / dim;
  for (std::int64_t e = 0; e < count; ++e) {
    const std::int64_t dealt = (agents - e + count - 1) / count;  // agents that have it
    weight_.push_back(static_cast<double>(dealt) / static_cast<double>(agents));
    double square = 0;
    for (int r = 0; r < dim; ++r) square += mean(e)[r] * mean(e)[r];
    bias_.push_back(-0.5 * square);
  }
  for (std::int64_t i = 0; i < agents; ++i) {
    const Out m = mean_.block(i / kLanes)[Field{0, dim}];
    for (int r = 0; r < dim; ++r) m.row(r)[i % kLanes] = mean(environment(i))[r];
  }
}

double NormalDensities::farthest() const {
  return -2 * *std::min_element(bias_.begin(), bias_.end());
}

// rho^e(s) = exp(l_e) / sum_f w_f exp(l_f) with l_e = m_e's - |m_e|^2/2, shifted by the agent's own
// logit so that the sum is at least w_own: no overflow, no floor, no pass for the maximum.
void NormalDensities::mixture(Lanes lanes, In s, Out numerators, Out Z, Scratch& scratch) const {
  const In o{s.row(observed_.at), observed_.rows, s.width};
  const Out shift = scratch.rows(1);
  const In m = mean(lanes);
  fill(shift, 0);
  for (int r = 0; r < dim_; ++r)
    for (int l = 0; l < shift.lanes; ++l)
      shift.p[l] += m.row(r)[l] * (o.row(r)[l] - 0.5 * m.row(r)[l]);
  kernels::matvec(means_.data(), numerators.rows, dim_, o, numerators);
  kernels::mixture_exp(numerators, bias_.data(), weight_.data(), shift, Z);
}

void NormalDensities::accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const {
  if (p() == 1) {  // one environment: rho = 1
    const std::vector<double>& one = weight_;
    return kernels::add_product(In{one.data(), 1, 1}, g, lanes.count, M);
  }
  const Out psi = scratch.rows(p()), Z = scratch.rows(1), scaled = scratch.rows(g.rows);
  mixture(lanes, s, psi, Z, scratch);
  for (int r = 0; r < g.rows; ++r)
    for (int l = 0; l < scaled.lanes; ++l) scaled.row(r)[l] = g.at(r, l) / Z.p[l];
  kernels::add_product(psi, scaled, lanes.count, M);
}

void NormalDensities::correct(Lanes lanes, const double* M, Out rg) const {
  for (int l = 0; l < lanes.count; ++l) {
    const double* row = M + environment(lanes.first + l) * rg.rows;
    for (int r = 0; r < rg.rows; ++r) rg.row(r)[l] = row[r];
  }
}

// Two unit normals overlap by their distance alone: TV = 2 Phi(|m_i - m_j| / 2) - 1.
double NormalDensities::tv(std::int64_t i, std::int64_t j) const {
  const double *a = mean(environment(i)), *b = mean(environment(j));
  double square = 0;
  for (int r = 0; r < dim_; ++r) square += (a[r] - b[r]) * (a[r] - b[r]);
  return std::erf(std::sqrt(square / 8));
}

void NormalDensities::own(Lanes lanes, In s, Scratch& scratch, Out rho) const {
  if (p() == 1) return fill(rho, 1);
  const Out psi = scratch.rows(p()), Z = scratch.rows(1);
  mixture(lanes, s, psi, Z, scratch);
  for (int l = 0; l < lanes.count; ++l)
    rho.p[l] = psi.row(static_cast<int>(environment(lanes.first + l)))[l] / Z.p[l];
}

}  // namespace affpcl
