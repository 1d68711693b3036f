#include "affpcl/problem/gaussian.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/dense.h"
#include "affpcl/math/kernels.h"
#include "affpcl/problem/agent_share.h"

namespace affpcl {
namespace {

// F'F + ridge I
std::vector<double> positive_definite(const Matrix& F, double ridge) {
  Matrix M = multiply(transposed(F), F);
  for (std::size_t r = 0; r < M.rows(); ++r) M(r, r) += ridge;
  return M.all();
}

constexpr Field whole(int rows) { return {0, rows}; }

}  // namespace

const Params<Gaussian::Config>& Gaussian::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "unknowns per agent d", between(1, 10000)},
      {"delta_env", &Config::delta_env,
       "environment heterogeneity: means of length delta_env * spread", between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "objective heterogeneity: theta^i at distance delta_obj from theta_base", between(0, 1e6)},
      {"eps_A", &Config::eps_A, "noise of A(s)", between(0, 1e6)},
      {"eps_b", &Config::eps_b, "noise of Phi(s)", between(0, 1e6)},
      {"spread", &Config::spread, "the paper's C_A", between(0, 1e6)},
      {"theta_length", &Config::theta_length, "length of theta_base; 0 leaves it as drawn",
       between(0, 1e6)},
      {"ridge", &Config::ridge, "added to the diagonal of A_base and Phi_base; -1: dim",
       between(-1, 1e6)},
      {"environments", &Config::environments, "distinct environments; 0: one per agent",
       between(0, kMostAgents)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
  return kParams;
}

ProblemKind Gaussian::kind() {
  return problem_kind_of<Gaussian>(
      "gaussian",
      "the paper's synthetic system: Gaussian environments, multiplicative noise, closed-form "
      "truth");
}

Gaussian::Gaussian(const Config& config, std::uint64_t seed, std::uint32_t replicate,
                   const AgentShare& share)
    : config_(config), system_key_{seed, replicate, 0} {
  const int d = config_.dim;
  const auto D = static_cast<std::size_t>(d);
  const std::int64_t n = config_.agents;
  const Key& key = system_key_;
  const double ridge = config_.ridge < 0 ? d : config_.ridge;

  Matrix R(D, D), G(D, D);
  for (int r = 0; r < d; ++r) {
    uniforms_of(key, r, Purpose::kSystemA, R.row(static_cast<std::size_t>(r)));
    normals_of(key, r, Purpose::kSystemPhi, G.row(static_cast<std::size_t>(r)));
  }
  A_base_ = positive_definite(R, ridge);
  Phi_base_ = positive_definite(G, ridge);

  theta_base_.resize(D);
  normals_of(key, 0, Purpose::kTheta, theta_base_);
  if (config_.theta_length > 0) {
    double square = 0;
    for (double t : theta_base_) square += t * t;
    for (double& t : theta_base_) t *= config_.theta_length / std::sqrt(square);
  }

  laws_ = NormalDensities(key,
                          {.agents = n,
                           .distinct = config_.environments,
                           .dim = d,
                           .radius = config_.delta_env * config_.spread,
                           .first_central = config_.first_central},
                          whole(d), share);

  Phi_theta_ = MadeStore(d, n, share, [this](std::int64_t block, Out Phi_theta) {
    make_weights(block, Phi_theta, nullptr);
  });
  theta_mean_ = share.sum(n, D, [this, d](std::int64_t block, double* sum) {
    make_weights(block, Phi_theta_.block(block)[whole(d)], sum);
  });
  solve(share);
}

void Gaussian::make_weights(std::int64_t block, Out Phi_theta, double* sum) const {
  const auto D = static_cast<std::size_t>(config_.dim);
  const MatrixView Phi_b(Phi_base_.data(), D, D);
  Vector y(D);
  const Lanes lanes = lanes_of(block, config_.agents);
  for (int l = 0; l < lanes.count; ++l) {
    const std::vector<double> th = theta(lanes.first + l);
    multiply(Phi_b, th, y);
    for (std::size_t r = 0; r < D; ++r) {
      Phi_theta.row(static_cast<int>(r))[l] = y[r];
      if (sum != nullptr) sum[r] += th[r] / static_cast<double>(config_.agents);
    }
  }
}

std::vector<double> Gaussian::theta(std::int64_t agent) const {
  const bool central = agent == 0 && config_.first_central;
  return weights_near(system_key_, theta_base_, agent, central ? 0 : config_.delta_obj);
}

Shape Gaussian::shape() const {
  return {.agents = config_.agents, .d = config_.dim, .k = config_.dim, .p = 0, .acts = false};
}

void Gaussian::declare(Layout&, Layout& sample) const { sample.add("s", config_.dim); }

void Gaussian::draw(const Draw& draw, Agents world, Out s) const {
  normals_about(mean(world.lanes), draw.key, world.lanes, Purpose::kSample, 0, s);
}

In Gaussian::base(const std::vector<double>& matrix, In x, Scratch& scratch, Out space) const {
  const int d = config_.dim;
  if (x.width == kLanes) {
    kernels::matvec(matrix.data(), d, d, x, space);
    return space;
  }
  double* column = scratch.numbers(static_cast<std::size_t>(d));
  kernels::matvec(matrix.data(), d, d, x.p, column);
  return {column, d, 1};
}

// Never forms A(s): (I + eps ss') A_base x = y + eps s (s'y), y = A_base x.
void Gaussian::direction(Lanes, In s, In b, In x, Scratch& scratch, Out g) const {
  const Scratch::Frame frame(scratch);
  kernels::rank_one(s, base(A_base_, x, scratch, g), config_.eps_A, b, g);
}

void Gaussian::at_centre(const Problem& problem, const AtCentre& at, Scratch& scratch,
                         const CentralDirections& to) const {
  if (at.x.width != 1) return LinearObjective::at_centre(problem, at, scratch, to);
  const Scratch::Frame frame(scratch);
  const int d = config_.dim;
  double *Ax = scratch.numbers(static_cast<std::size_t>(d)),
         *Phi_theta = scratch.numbers(static_cast<std::size_t>(d));
  kernels::matvec(A_base_.data(), d, d, at.x.p, Ax);
  kernels::matvec(Phi_base_.data(), d, d, at.theta.p, Phi_theta);
  kernels::at_centre(at.s, at.b, {Ax, config_.eps_A}, {Phi_theta, config_.eps_b}, to.g, to.gx,
                     to.gtheta);
}

void Gaussian::objective(Lanes lanes, In s, Out b) const {
  kernels::rank_one(s, Phi_theta_.block(lanes.first / kLanes)[whole(config_.dim)], config_.eps_b,
                    b);
}

void Gaussian::Phi(Lanes, In s, In theta, Scratch& scratch, Out bhat) const {
  const Scratch::Frame frame(scratch);
  kernels::rank_one(s, base(Phi_base_, theta, scratch, bhat), config_.eps_b, bhat);
}

void Gaussian::known(Lanes lanes, In s, Scratch& scratch, Out b0) const {
  Phi(lanes, s, In{theta_mean_.data(), config_.dim, 1}, scratch, b0);
}

void Gaussian::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  laws_.keep(first_block, last_block);
  Phi_theta_.keep(first_block, last_block);
}

// E ss' = I + m m'.
void Gaussian::mean_apply(Lanes lanes, In x, Out Ax) const {
  Scratch scratch;
  kernels::rank_one(mean(lanes), base(A_base_, x, scratch, Ax), config_.eps_A / (1 + config_.eps_A),
                    Ax);
  for (int i = 0; i < Ax.rows * kLanes; ++i) Ax.p[i] *= 1 + config_.eps_A;
}

void Gaussian::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  Scratch scratch;
  kernels::rank_one(mean(lanes), base(Phi_base_, theta, scratch, bhat),
                    config_.eps_b / (1 + config_.eps_b), bhat);
  for (int i = 0; i < bhat.rows * kLanes; ++i) bhat.p[i] *= 1 + config_.eps_b;
}

void Gaussian::mean_objective(Lanes lanes, Out b) const {
  kernels::rank_one(mean(lanes), Phi_theta_.block(lanes.first / kLanes)[whole(config_.dim)],
                    config_.eps_b / (1 + config_.eps_b), b);
  for (int i = 0; i < b.rows * kLanes; ++i) b.p[i] *= 1 + config_.eps_b;
}

// (I + eps ss')^2 = I + (2 eps + eps^2 |s|^2) ss' with E|s|^2 ss' = (d + 2 + |m|^2) I + (d + 4 +
// |m|^2) mm' (Isserlis), so its largest eigenvalue is along m.
double Gaussian::mean_square(const std::vector<double>& matrix, double eps) const {
  const int d = config_.dim;
  const double m2 = laws_.farthest();
  const double largest = 1 + 2 * eps * (1 + m2) + eps * eps * ((d + 2 + m2) + (d + 4 + m2) * m2);
  const auto D = static_cast<std::size_t>(d);
  return std::sqrt(largest) * operator_norm({matrix.data(), D, D});
}
double Gaussian::G_A() const { return mean_square(A_base_, config_.eps_A); }
double Gaussian::G_Phi() const { return mean_square(Phi_base_, config_.eps_b); }

}  // namespace affpcl
