#include "affpcl/problem/tabular.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double largest_norm(const std::vector<double>& matrices, int states, int rows, int cols) {
  double norm = 0;
  for (int s = 0; s < states; ++s) {
    const Matrix M = Eigen::Map<const Matrix>(
        matrices.data() + static_cast<std::ptrdiff_t>(s) * rows * cols, rows, cols);
    norm = std::max(norm, M.operatorNorm());
  }
  return norm;
}

int state_of(In s, int lane) { return static_cast<int>(s.row(0)[lane]); }

}  // namespace

Tabular::Tabular(FiniteSystem system, Coe coe) : sys_(std::move(system)) {
  const int S = sys_.states, d = sys_.d, k = sys_.k;
  gradient_ = coe == Coe::kGradient || (coe == Coe::kAuto && k != d);
  if (k > 0 && k != d && !gradient_)
    throw BadInput(fmt::format(
        "problem.coe = \"residual\" needs a square Phi, but this one is {} x {}; use \"gradient\"",
        d, k));

  mu0_.assign(at(S), 0.0);
  for (std::int64_t i = 0; i < sys_.agents; ++i) {
    double sum = 0;
    for (int s = 0; s < S; ++s) {
      sum += sys_.mu[at(i * S + s)];
      cumulative_.push_back(sum);
      mu0_[at(s)] += sys_.mu[at(i * S + s)] / static_cast<double>(sys_.agents);
    }
  }

  rho_.reserve(sys_.mu.size());
  for (std::size_t j = 0; j < sys_.mu.size(); ++j) {
    const double mu = sys_.mu[j];
    rho_.push_back(mu == 0 ? 0 : mu / mu0_[j % at(S)]);  // 0/0 = 0, as in lem:vd-fed
  }

  b_ = sys_.b;
  if (b_.empty()) {
    b_.resize(at(sys_.agents * S * d));
    for (std::int64_t i = 0; i < sys_.agents; ++i)
      for (int s = 0; s < S; ++s)
        for (int r = 0; r < d; ++r) {
          double sum = 0;
          for (int c = 0; c < k; ++c)
            sum += sys_.Phi[at((static_cast<std::int64_t>(s) * d + r) * k + c)] *
                   sys_.theta[at(i * k + c)];
          b_[at((i * S + s) * d + r)] = sum;
        }
  }
  b0_.assign(at(S * d), 0.0);
  for (std::int64_t i = 0; i < sys_.agents; ++i)
    for (int j = 0; j < S * d; ++j)
      b0_[at(j)] += b_[at(i * S * d + j)] / static_cast<double>(sys_.agents);
  solve();
}

Shape Tabular::shape() const {
  return {.agents = sys_.agents, .d = sys_.d, .k = sys_.k, .p = sys_.p, .acts = false};
}

void Tabular::declare(Layout&, Layout& sample) const { sample.add("state", 1); }

void Tabular::draw(const Draw& draw, Agents world, Out s) const {
  const int S = sys_.states;
  const Lanes lanes = world.lanes;
  if (!sys_.order.empty()) {
    for (int l = 0; l < lanes.count; ++l)
      s.p[l] = sys_.order[at((lanes.first + l) * sys_.steps + draw.key.step)];
    return;
  }
  uniforms(draw.key, lanes, Purpose::kSample, 0, s);
  for (int l = 0; l < kLanes; ++l)
    s.p[l] = l < lanes.count
                 ? categorical({cumulative_.data() + (lanes.first + l) * S, at(S)}, s.p[l])
                 : 0;
}

// The maximal coupling: one state from min(mu^i, mu^0), or with the rest of the probability one
// each from what mu^i and mu^0 have beyond it.
void Tabular::draw_pair(const Draw& draw, Lanes lanes, Out own, Out mixed) const {
  const int S = sys_.states;
  fill(own, 0), fill(mixed, 0);
  for (int l = 0; l < lanes.count; ++l) {
    const double* mu = sys_.mu.data() + (lanes.first + l) * S;
    const auto pick = [&](double u, auto weight) {
      double sum = 0;
      int last = 0;
      for (int s = 0; s < S; ++s) {
        if (weight(s) <= 0) continue;
        last = s;
        sum += weight(s);
        if (u < sum) return s;
      }
      return last;
    };
    const auto common = [&](int s) { return std::min(mu[s], mu0_[at(s)]); };
    const auto random = [&](std::uint32_t k) {
      return uniform(draw.key, lanes.first + l, Purpose::kPair, k);
    };
    double same = 0;
    for (int s = 0; s < S; ++s) same += common(s);
    if (const double u = random(0); u < same) {
      own.p[l] = mixed.p[l] = pick(u, common);
    } else {
      own.p[l] = pick(random(1) * (1 - same), [&](int s) { return mu[s] - common(s); });
      mixed.p[l] = pick(random(2) * (1 - same), [&](int s) { return mu0_[at(s)] - common(s); });
    }
  }
}

void Tabular::add_times(double weight, const std::vector<double>& matrices, int rows, int cols,
                        int state, In in, int lane, Out out) const {
  const double* M = matrices.data() + static_cast<std::ptrdiff_t>(state) * rows * cols;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c) sum += M[r * cols + c] * in.at(c, lane);
    out.row(r)[lane] += weight * sum;
  }
}

void Tabular::times(const std::vector<double>& matrices, int rows, int cols, int state, In in,
                    int lane, Out out) const {
  for (int r = 0; r < rows; ++r) out.row(r)[lane] = 0;
  add_times(1, matrices, rows, cols, state, in, lane, out);
}

void Tabular::apply(Lanes lanes, In s, In x, Out Ax) const {
  for (int l = 0; l < lanes.count; ++l) times(sys_.A, sys_.d, sys_.d, state_of(s, l), x, l, Ax);
}

const double* Tabular::own_b(std::int64_t agent, int state) const {
  return b_.data() + (agent * sys_.states + state) * sys_.d;
}

void Tabular::objective(Lanes lanes, In s, Out b) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.d; ++r) b.row(r)[l] = own_b(lanes.first + l, state_of(s, l))[r];
}

void Tabular::Phi(Lanes lanes, In s, In theta, Out bhat) const {
  for (int l = 0; l < lanes.count; ++l)
    times(sys_.Phi, sys_.d, sys_.k, state_of(s, l), theta, l, bhat);
}

void Tabular::known(Lanes lanes, In s, Out b0) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.d; ++r) b0.row(r)[l] = b0_[at(state_of(s, l) * sys_.d + r)];
}

void Tabular::coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const {
  if (!gradient_) return Problem::coe(lanes, s, b, theta, bhat, g);
  for (int l = 0; l < lanes.count; ++l) {
    const double* Phi =
        sys_.Phi.data() + static_cast<std::ptrdiff_t>(state_of(s, l)) * sys_.d * sys_.k;
    for (int c = 0; c < sys_.k; ++c) g.row(c)[l] = 0;
    for (int r = 0; r < sys_.d; ++r)
      for (int c = 0; c < sys_.k; ++c)
        g.row(c)[l] += Phi[r * sys_.k + c] * (bhat.at(r, l) - b.at(r, l));
  }
}

void Tabular::psi(Lanes lanes, In s, Out features) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.p; ++r) features.row(r)[l] = sys_.psi[at(state_of(s, l) * sys_.p + r)];
}

// add(lane, state, mu^i(state)) for all agents and states, into a cleared out.
template <class F>
void Tabular::over_states(Lanes lanes, Out out, F add) const {
  fill(out, 0);
  for (int l = 0; l < lanes.count; ++l)
    for (int s = 0; s < sys_.states; ++s) add(l, s, probability(lanes.first + l, s));
}

void Tabular::mean_apply(Lanes lanes, In x, Out Ax) const {
  over_states(lanes, Ax,
              [&](int l, int s, double mu) { add_times(mu, sys_.A, sys_.d, sys_.d, s, x, l, Ax); });
}
void Tabular::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  over_states(lanes, bhat, [&](int l, int s, double mu) {
    add_times(mu, sys_.Phi, sys_.d, sys_.k, s, theta, l, bhat);
  });
}
void Tabular::mean_objective(Lanes lanes, Out b) const {
  over_states(lanes, b, [&](int l, int s, double mu) {
    for (int r = 0; r < sys_.d; ++r) b.row(r)[l] += mu * own_b(lanes.first + l, s)[r];
  });
}
void Tabular::mean_coe(Lanes lanes, In theta, Out g) const {
  if (!gradient_) return Problem::mean_coe(lanes, theta, g);
  Buffer space(at(sys_.d) * kLanes);
  const Out residual{space.data(), sys_.d};
  over_states(lanes, g, [&](int l, int s, double mu) {
    const double* Phi = sys_.Phi.data() + static_cast<std::ptrdiff_t>(s) * sys_.d * sys_.k;
    times(sys_.Phi, sys_.d, sys_.k, s, theta, l, residual);
    for (int r = 0; r < sys_.d; ++r)
      for (int c = 0; c < sys_.k; ++c)
        g.row(c)[l] +=
            mu * Phi[r * sys_.k + c] * (residual.row(r)[l] - own_b(lanes.first + l, s)[r]);
  });
}

double Tabular::G_A() const { return largest_norm(sys_.A, sys_.states, sys_.d, sys_.d); }
double Tabular::G_Phi() const {
  if (sys_.k == 0) return 0;
  const double norm = largest_norm(sys_.Phi, sys_.states, sys_.d, sys_.k);
  return gradient_ ? norm * norm : norm;
}

double Tabular::probability(std::int64_t agent, int outcome) const {
  return sys_.mu[at(agent * sys_.states + outcome)];
}

std::vector<double> Tabular::theta(std::int64_t agent) const {
  if (sys_.theta.empty()) return {};
  return {sys_.theta.begin() + agent * sys_.k, sys_.theta.begin() + (agent + 1) * sys_.k};
}

double Tabular::tv(std::int64_t i, std::int64_t j) const {
  double sum = 0;
  for (int s = 0; s < sys_.states; ++s) sum += std::abs(probability(i, s) - probability(j, s));
  return sum / 2;
}

std::vector<double> Tabular::start_x(std::int64_t agent) const {
  if (sys_.x0.empty()) return Problem::start_x(agent);
  return {sys_.x0.begin() + agent * sys_.d, sys_.x0.begin() + (agent + 1) * sys_.d};
}
std::vector<double> Tabular::start_xc() const {
  return sys_.xc0.empty() ? Problem::start_xc() : sys_.xc0;
}
std::vector<double> Tabular::start_thetac() const {
  return sys_.thetac0.empty() ? Problem::start_thetac() : sys_.thetac0;
}

double Tabular::rho(std::int64_t agent, int state) const {
  return rho_[at(agent * sys_.states + state)];
}

// psi is one-hot: M collects the directions state by state, and eta^i is rho^i itself.
void Tabular::accumulate(Lanes lanes, In s, In g, Scratch&, double* M) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < g.rows; ++r) M[state_of(s, l) * g.rows + r] += g.at(r, l);
}

void Tabular::correct(Lanes lanes, const double* M, Out rg) const {
  const int S = sys_.states, d = rg.rows;
  for (int l = 0; l < lanes.count; ++l) {
    const double* eta = rho_.data() + (lanes.first + l) * S;
    for (int r = 0; r < d; ++r) {
      double sum = 0;
      for (int s = 0; s < S; ++s) sum += eta[s] * M[s * d + r];
      rg.row(r)[l] = sum;
    }
  }
}

void Tabular::own(Lanes lanes, In s, Scratch&, Out rho_row) const {
  for (int l = 0; l < lanes.count; ++l) rho_row.p[l] = rho(lanes.first + l, state_of(s, l));
}

}  // namespace affpcl
