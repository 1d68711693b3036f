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
  means.reserve(static_cast<std::size_t>(distinct * e.dim));
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
  normals_of(key, agent, purpose, v);
  double square = 0;
  for (const double x : v) square += x * x;
  for (double& x : v) x *= length / std::sqrt(square);
  return v;
}

std::vector<double> weights_near(const Key& key, std::vector<double> base, std::int64_t agent,
                                 double distance) {
  if (distance == 0) return base;
  const std::vector<double> u = random_direction(key, agent, Purpose::kObjective,
                                                 static_cast<int>(base.size()), distance);
  for (std::size_t r = 0; r < base.size(); ++r) base[r] += u[r];
  return base;
}

NormalDensities::NormalDensities(const Key& key, const NormalEnvironments& e, Field observed)
    : NormalDensities(e.agents, e.dim, draw_means(key, e), observed) {}

NormalDensities::NormalDensities(std::int64_t agents, int dim, std::vector<double> means,
                                 Field observed)
    : dim_(dim),
      observed_(observed),
      means_(std::move(means)),
      mixed_(std::make_unique<Mixed>()),
      mean_(dim, agents) {
  const std::int64_t count = static_cast<std::int64_t>(means_.size()) / dim;
  for (std::int64_t e = 0; e < count; ++e) {
    const std::int64_t dealt = (agents - e + count - 1) / count;  // agents that have it
    weight_.push_back(static_cast<double>(dealt) / static_cast<double>(agents));
  }
  for (std::int64_t i = 0; i < agents; ++i) {
    const Out m = mean_.block(i / kLanes)[Field{0, dim}];
    for (int r = 0; r < dim; ++r) m.row(r)[i % kLanes] = mean(environment(i))[r];
  }
}

const Mixture& NormalDensities::mixture() const {
  std::call_once(mixed_->once, [&] { mixed_->mixture = Mixture(dim_, means_, weight_); });
  return mixed_->mixture;
}

double NormalDensities::farthest() const {
  double most = 0;
  for (std::int64_t e = 0; e < environments(); ++e) {
    double square = 0;
    for (int r = 0; r < dim_; ++r) square += mean(e)[r] * mean(e)[r];
    most = std::max(most, square);
  }
  return most;
}

void NormalDensities::accumulate(Lanes lanes, In s, In g, Precision precision, Scratch& scratch,
                                 double* M) const {
  if (p() == 1) {  // one environment: rho = 1
    const double one = 1;
    return kernels::add_product(g, In{&one, 1, 1}, lanes.count, M);
  }
  mixture().accumulate(observed(s), mean(lanes), g, lanes.count, precision, scratch, M);
}

void NormalDensities::accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const {
  accumulate(lanes, s, g, Precision::kDouble, scratch, M);
}

void NormalDensities::accumulate_single(Lanes lanes, In s, In g, Scratch& scratch,
                                        double* M) const {
  accumulate(lanes, s, g, Precision::kSingle, scratch, M);
}

void NormalDensities::correct(Lanes lanes, const double* M, Out rg) const {
  const std::int64_t all = environments();
  const std::int64_t first = environment(lanes.first);
  for (int r = 0; r < rg.rows; ++r, M += all) {  // dealt out in turn: runs of neighbours
    std::int64_t e = first;
    for (int l = 0; l < lanes.count; e = 0) {
      const auto run = static_cast<int>(std::min<std::int64_t>(lanes.count - l, all - e));
      std::copy_n(M + e, run, rg.row(r) + l);
      l += run;
    }
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
  mixture().own_ratio(observed(s), mean(lanes), lanes.count, scratch, rho);
}

}  // namespace affpcl
