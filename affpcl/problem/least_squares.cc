#include "affpcl/problem/least_squares.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/math/kernels.h"
#include "affpcl/problem/agent_share.h"

namespace affpcl {
namespace {

constexpr double kDependent = 1e-10;  // an eigenvalue of E cc' below which it counts as singular

Vector lane(In rows, int l) {
  Vector v;
  for (int r = 0; r < rows.rows; ++r) v.push_back(rows.at(r, l));
  return v;
}

void set_lane(Out rows, int l, const Vector& v) {
  for (int r = 0; r < rows.rows; ++r) rows.row(r)[l] = v[static_cast<std::size_t>(r)];
}

// y + factor x
Vector plus(Vector y, double factor, const Vector& x) {
  for (std::size_t r = 0; r < y.size(); ++r) y[r] += factor * x[r];
  return y;
}

// The channels as seen from phi = m + z, z ~ N(0, I): c_j = (b_j'm + curve a_j^2) + slope_j'z +
// curve (q_j'z)^2 + channel_noise xi_j with a_j = q_j'm. Their joint cumulants are short:
//
//   E c_j       = b_j'm + curve (a_j^2 + 1)
//   Cov(z, c_j) = slope_j = b_j + 2 curve a_j q_j
//   Cov(c)_jl   = slope_j'slope_l + 2 (curve q_j'q_l)^2 + channel_noise^2 1{j = l}
struct Channels {
  Channels(const LeastSquares& problem, const Vector& m)
      : q(rows_of(problem, problem.curves())),
        curve(problem.config().curve),
        noise(problem.config().channel_noise),
        slope(rows_of(problem, problem.lines())) {
    const Vector a = multiply(q, m);
    mean = multiply(slope, m);
    for (std::size_t j = 0; j < a.size(); ++j) {
      mean[j] += curve * (a[j] * a[j] + 1);
      for (std::size_t r = 0; r < m.size(); ++r) slope(j, r) += 2 * curve * a[j] * q(j, r);
    }
  }

  Matrix covariance() const {
    const Matrix R = multiply(q, transposed(q));
    Matrix K = multiply(slope, transposed(slope));
    for (std::size_t j = 0; j < R.all().size(); ++j)
      K.all()[j] += 2 * curve * curve * (R.all()[j] * R.all()[j]);
    for (std::size_t j = 0; j < K.rows(); ++j) K(j, j) += noise * noise;
    return K;
  }

  static MatrixView rows_of(const LeastSquares& problem, const std::vector<double>& matrix) {
    return {matrix.data(), static_cast<std::size_t>(problem.config().channels),
            static_cast<std::size_t>(problem.config().dim)};
  }

  MatrixView q;
  double curve, noise;
  Vector mean;   // E c
  Matrix slope;  // [channels][dim]
};

// E |c|^2 cc': moments are sums over the partitions of four factors into cumulants. Those of third
// and fourth order are derivatives of
//
//   log E exp(t'c) = ... + slope'H slope + (4/3) tr H^3 + 2 slope'H^2 slope + 2 tr H^4 + ...
//
// with slope = sum_j t_j slope_j and H = curve sum_j t_j q_j q_j'.
class FourthMoment {
 public:
  explicit FourthMoment(const Channels& channels)
      : c_(channels),
        R(multiply(c_.q, transposed(c_.q))),
        W(multiply(c_.slope, transposed(c_.q))) {}

  Matrix matrix() const {
    const std::size_t k = R.rows();
    const Vector& mu = c_.mean;
    const Matrix K = c_.covariance(), KK = multiply(K, K);
    Matrix mm(k, k), F(k, k);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t l = 0; l < k; ++l) mm(j, l) = mu[j] * mu[l];
    const Matrix Kmm = multiply(K, mm);
    const double total = squared_norm(mu) + trace(K);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t l = 0; l < k; ++l)
        F(j, l) = total * (mm(j, l) + K(j, l)) + 2 * (Kmm(j, l) + Kmm(l, j) + KK(j, l));
    if (c_.curve == 0) return F;
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t l = 0; l < k; ++l)
        for (std::size_t m = 0; m < k; ++m)
          F(j, l) += mu[j] * third(l, m, m) + mu[l] * third(j, m, m) + 2 * mu[m] * third(j, l, m) +
                     fourth({j, l, m, m});
    return F;
  }

 private:
  double third(std::size_t j, std::size_t l, std::size_t m) const {
    const double curve = c_.curve;
    return 2 * curve * (W(j, l) * W(m, l) + W(l, j) * W(m, j) + W(j, m) * W(l, m)) +
           8 * curve * curve * curve * R(j, l) * R(l, m) * R(m, j);
  }
  double fourth(const std::array<std::size_t, 4>& which) const {
    const double curve = c_.curve;
    std::array<std::size_t, 4> o = {0, 1, 2, 3};
    double sum = 0;
    do {
      const auto a = which[o[0]], b = which[o[1]], c = which[o[2]], e = which[o[3]];
      sum += R(b, c) * (W(a, b) * W(e, c) + curve * curve * R(a, b) * R(c, e) * R(e, a));
    } while (std::next_permutation(o.begin(), o.end()));
    return 2 * curve * curve * sum;
  }

  const Channels& c_;
  Matrix R, W;  // q_j'q_l, slope_j'q_l
};

}  // namespace

const Params<LeastSquares::Config>& LeastSquares::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "features, unknowns per agent d", between(1, 10000)},
      {"channels", &Config::channels, "outcome channels c", between(1, 100)},
      {"delta_env", &Config::delta_env,
       "environment heterogeneity: means of length delta_env * spread", between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "objective heterogeneity: theta^i at distance delta_obj from theta_base", between(0, 1e6)},
      {"spread", &Config::spread, "how far apart environments are at delta_env = 1",
       between(0, 1e6)},
      {"curve", &Config::curve,
       "square part of the channels; above 0 solutions depend on the environment", between(0, 1e6)},
      {"channel_noise", &Config::channel_noise,
       "noise of the channels, which collaboration can average", between(0, 1e6)},
      {"label_noise", &Config::label_noise, "noise of an agent's own labels, which it cannot",
       between(0, 1e6)},
      {"Phi", &Config::Phi,
       "channels: phi c'; identity: I, ill-chosen; features: A itself, AffPCL is "
       "independent"},
      {"environments", &Config::environments, "distinct environments; 0: one per agent",
       between(0, kMostAgents)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
  return kParams;
}

ProblemKind LeastSquares::kind() {
  return problem_kind_of<LeastSquares>(
      "least_squares",
      "least squares on Gaussian features; labels weigh outcome channels; Phi well or ill chosen");
}

LeastSquares::LeastSquares(const Config& config, std::uint64_t seed, std::uint32_t replicate,
                           const AgentShare& share)
    : config_(config), system_key_{seed, replicate, 0} {
  const int d = config_.dim, k = config_.channels;
  const std::int64_t n = config_.agents;
  for (int j = 0; j < k; ++j) {
    const std::vector<double> b = random_direction(system_key_, j, Purpose::kSystemPhi, d, 1),
                              q = random_direction(system_key_, j, Purpose::kSystemA, d, 1);
    line_.insert(line_.end(), b.begin(), b.end());
    curve_.insert(curve_.end(), q.begin(), q.end());
  }
  theta_base_ = random_direction(system_key_, 0, Purpose::kTheta, k, 1);
  laws_ = NormalDensities(system_key_,
                          {.agents = n,
                           .distinct = config_.environments,
                           .dim = d,
                           .radius = config_.delta_env * config_.spread,
                           .first_central = config_.first_central},
                          {0, d}, share);

  theta_ = MadeStore(k, n, share, [this](std::int64_t block, Out weights) {
    make_weights(block, weights, nullptr);
  });
  theta_mean_ = share.sum(n, theta_base_.size(), [this, k](std::int64_t block, double* sum) {
    make_weights(block, theta_.block(block)[Field{0, k}], sum);
  });
  mean_b_ = MadeStore(d, n, share, [this, n](std::int64_t block, Out b) {
    const Lanes lanes = lanes_of(block, n);
    mean_channels(lanes, own_weights(lanes), b);
  });
  mean_b_.make_own(share);
  solve(share);
  // channel_noise^2 bounds the eigenvalues of E cc' from below.
  if (config_.Phi == Form::kChannels && config_.channel_noise == 0 &&
      monotonicity(*this).objective < kDependent)
    throw BadInput(
        fmt::format("problem.channels = {} is too many for {} features without channel_noise: they "
                    "are linearly dependent, and theta has no unique solution",
                    k, d));
}

void LeastSquares::make_weights(std::int64_t block, Out weights, double* sum) const {
  const Lanes lanes = lanes_of(block, config_.agents);
  for (int l = 0; l < lanes.count; ++l) {
    const std::vector<double> own = this->weights(lanes.first + l);
    for (std::size_t j = 0; j < own.size(); ++j) {
      weights.row(static_cast<int>(j))[l] = own[j];
      if (sum != nullptr) sum[j] += own[j] / static_cast<double>(config_.agents);
    }
  }
}

std::vector<double> LeastSquares::weights(std::int64_t agent) const {
  const bool central = agent == 0 && config_.first_central;
  return weights_near(system_key_, theta_base_, agent, central ? 0 : config_.delta_obj);
}

std::vector<double> LeastSquares::theta(std::int64_t agent) const {
  return config_.Phi == Form::kChannels ? weights(agent) : std::vector<double>{};
}

Shape LeastSquares::shape() const {
  return {.agents = config_.agents,
          .d = config_.dim,
          .k = config_.Phi == Form::kChannels ? config_.channels : config_.dim,
          .p = 0,
          .acts = false};
}

void LeastSquares::declare(Layout&, Layout& sample) const {
  sample.add("phi", config_.dim);
  sample.add("c", config_.channels);
  sample.add("y", 1);
}

// The sample's normals are drawn in place: z, xi, e become phi, c, y.
void LeastSquares::draw(const Draw& draw, Agents world, Out s) const {
  const int d = config_.dim, k = config_.channels;
  normals_about(mean(world.lanes), draw.key, world.lanes, Purpose::kSample, 0, s);
  const Out phi{s.p, d, s.lanes};

  alignas(64) double line[kLanes], curve[kLanes], label[kLanes];
  const auto column = [d](const std::vector<double>& rows, int j) {
    return In{rows.data() + static_cast<std::ptrdiff_t>(j) * d, d, 1};
  };
  for (int j = 0; j < k; ++j) {
    dot(phi, column(line_, j), s.lanes, line);
    dot(phi, column(curve_, j), s.lanes, curve);
    double* c = s.row(d + j);
    for (int l = 0; l < s.lanes; ++l)
      c[l] = line[l] + config_.curve * curve[l] * curve[l] + config_.channel_noise * c[l];
  }
  dot(c(s), own_weights(world.lanes), s.lanes, label);
  double* y = s.row(d + k);
  for (int l = 0; l < s.lanes; ++l) y[l] = label[l] + config_.label_noise * y[l];
}

void LeastSquares::direction(Lanes, In s, In b, In x, Scratch&, Out g) const {
  outer(phi(s), phi(s), x, g);
  subtract_objective(b, g);
}

void LeastSquares::objective(Lanes, In s, Out b) const { scale(phi(s), y(s), b); }

void LeastSquares::Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const {
  switch (config_.Phi) {
    case Form::kChannels:
      return outer(phi(s), c(s), theta, bhat);
    case Form::kIdentity:
      return copy(theta, bhat);
    case Form::kFeatures:
      return direction(lanes, s, {}, theta, scratch, bhat);
  }
}

void LeastSquares::known(Lanes, In s, Scratch&, Out b0) const {
  outer(phi(s), c(s), {theta_mean_.data(), config_.channels, 1}, b0);
}

void LeastSquares::coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const {
  if (config_.Phi != Form::kChannels) return LinearObjective::coe(lanes, s, b, theta, bhat, g);
  alignas(64) double gap[kLanes];
  dot(c(s), theta, g.lanes, gap);
  for (int l = 0; l < g.lanes; ++l) gap[l] -= y(s)[l];
  scale(c(s), gap, g);
}

void LeastSquares::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  laws_.keep(first_block, last_block);
  theta_.keep(first_block, last_block);
  mean_b_.keep(first_block, last_block);
}

// E phi phi' = I + m m'.
void LeastSquares::mean_apply(Lanes lanes, In x, Out Ax) const {
  kernels::rank_one(mean(lanes), x, 1, Ax);
}

void LeastSquares::mean_objective(Lanes lanes, Out b) const {
  copy(mean_b_.block(lanes.first / kLanes)[Field{0, config_.dim}], b);
}

void LeastSquares::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  switch (config_.Phi) {
    case Form::kChannels:
      return mean_channels(lanes, theta, bhat);
    case Form::kIdentity:
      return copy(theta, bhat);
    case Form::kFeatures:
      return mean_apply(lanes, theta, bhat);
  }
}

// E phi c' = Cov(phi, c) + m (E c)'.
void LeastSquares::mean_channels(Lanes lanes, In theta, Out bhat) const {
  for (int l = 0; l < lanes.count; ++l) {
    const Vector m = lane(mean(lanes), l), th = lane(theta, l);
    const Channels c(*this, m);
    set_lane(bhat, l, plus(multiply(transposed(c.slope), th), dot(c.mean, th), m));
  }
}

// E c (c'theta - y) = E cc' (theta - theta^i).
void LeastSquares::mean_coe(Lanes lanes, In theta, Out g) const {
  if (config_.Phi != Form::kChannels) return Means::mean_coe(lanes, theta, g);
  for (int l = 0; l < lanes.count; ++l) {
    const Channels c(*this, lane(mean(lanes), l));
    const Vector off = plus(lane(theta, l), -1, lane(own_weights(lanes), l));
    set_lane(g, l, plus(multiply(c.covariance(), off), dot(c.mean, off), c.mean));
  }
}

// E (phi phi')^2 = (d + 2 + |m|^2) I + (d + 4 + |m|^2) mm' (Isserlis), largest along m.
double LeastSquares::G_A() const {
  const double m2 = laws_.farthest(), d = config_.dim;
  return std::sqrt((d + 2 + m2) + (d + 4 + m2) * m2);
}

double LeastSquares::G_Phi() const {
  if (config_.Phi == Form::kIdentity) return 1;
  if (config_.Phi == Form::kFeatures) return G_A();
  double largest = 0;
  for (std::int64_t e = 0; e < laws_.environments(); ++e) {
    const Vector m(laws_.mean(e), laws_.mean(e) + config_.dim);
    const Channels c(*this, m);
    largest = std::max(largest, symmetric_eigenvalues(FourthMoment(c).matrix()).back());
  }
  return std::sqrt(largest);
}

}  // namespace affpcl
