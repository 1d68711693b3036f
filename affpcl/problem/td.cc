#include "affpcl/problem/td.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/mdp.h"
#include "affpcl/problem/td_log.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Keys of a model mean nothing with a log, and the other way round.
void refuse_idle(const Values& v, const std::vector<Param>& params, const char* why) {
  for (const Param& p : params)
    if (p.name != "gamma" && p.name != "file" && v.all().find(p.name)->second != p.fallback)
      throw BadInput(fmt::format("problem.{} = {} means nothing {}", p.name,
                                 to_text(v.all().find(p.name)->second), why));
}

}  // namespace

const Params<Td::Config>& Td::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"states", &Config::states, "number of states", between(1, 1000)},
      {"dim", &Config::dim, "features of a state d", between(1, 1000)},
      {"gamma", &Config::gamma, "discount of the future, below 1", between(0, 1)},
      {"delta_env", &Config::delta_env, "how much of P^i is the agent's own", between(0, 1)},
      {"delta_obj", &Config::delta_obj,
       "distance of theta^i from theta_base; table: relative perturbation", between(0, 1e6)},
      {"concentration", &Config::concentration,
       "of the Dirichlet rows of a kernel; small is sparse", between(1e-3, 1e6)},
      {"kernels", &Config::kernels,
       "additive: (1 - h) P + h Q^i; relative: P (1 + h U[-1, 1]), normalised"},
      {"rewards", &Config::rewards, "linear in features of the transition, or any table"},
      {"sampling", &Config::sampling, "independent pairs, or each agent's one trajectory"},
      {"first_central", &Config::first_central, "the first agent has the base kernel and rewards"},
  };
  return kParams;
}

// Generated chains, or a log of transitions.
struct TdSource {
  Td::Config model;
  TdLog::Config log;
};

ProblemKind Td::kind() {
  static const auto kParams = Params<TdSource>()
                                  .add(&TdSource::model, params())
                                  .add(&TdSource::log, TdLog::params(), {"gamma"});
  return {
      "td",
      "policy evaluation by TD(0): generated Markov reward processes, or logged transitions (file)",
      kParams.table(),
      [](const Values& v, std::uint64_t seed, std::uint32_t replicate) -> std::unique_ptr<Problem> {
        TdSource source = kParams.read(v);
        if (source.log.file.empty()) {
          refuse_idle(v, TdLog::params().table(), "without problem.file");
          return std::make_unique<Td>(source.model, seed, replicate);
        }
        refuse_idle(v, params().table(), "with problem.file");
        source.log.gamma = source.model.gamma;
        return std::make_unique<TdLog>(source.log);
      }};
}

Td::Td(const Config& config, std::uint64_t seed, std::uint32_t replicate) : config_(config) {
  const int S = config.states, d = config.dim;
  const std::int64_t n = config.agents;
  const Key key{seed, replicate, 0};
  if (!(config.gamma >= 0 && config.gamma < 1))
    throw BadInput(
        fmt::format("gamma = {} is not allowed: it must be from 0 to below 1", config.gamma));
  set_shape(d, k());
  phi_ = random_basis(key, S, d).phi;

  const auto dirichlet = [&](std::int64_t agent) {
    return dirichlet_kernel(key, agent, S, S, config.concentration);
  };
  const std::vector<double> base = dirichlet(kNoAgent);
  std::vector<double> mu;
  for (std::int64_t i = 0; i < n; ++i) {
    const double h = i == 0 && config.first_central ? 0 : config.delta_env;
    P_.push_back(config.kernels == Kernels::kRelative ? perturbed_kernel(key, i, base, S, h)
                                                      : mixed_kernel(base, dirichlet(i), h));
    cumulative_.push_back(P_.back());
    for (int o = 0; o < S; ++o)
      for (int next = 1; next < S; ++next)
        cumulative_.back()[at(o * S + next)] += cumulative_.back()[at(o * S + next - 1)];
    const std::vector<double> pi = affpcl::stationary({S, P_.back()});
    pi_.insert(pi_.end(), pi.begin(), pi.end());
    for (int pair = 0; pair < pairs(); ++pair) mu.push_back(pi[at(pair / S)] * P_.back()[at(pair)]);
  }
  laws_ = FiniteDensities(pairs(), std::move(mu), cell_row());

  draw_rewards(key);
  find_means();
  solve();
}

// In the span of c, or any.
void Td::draw_rewards(const Key& key) {
  const int S = config_.states, d = config_.dim;
  const std::int64_t n = config_.agents;
  std::vector<double> theta0(at(d));
  normals_of(key, 0, Purpose::kTheta, theta0);
  double length = 0;
  for (double x : theta0) length += x * x;
  for (double& x : theta0) x /= std::sqrt(length);
  R0_.assign(at(pairs()), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    const double delta = i == 0 && config_.first_central ? 0 : config_.delta_obj;
    std::vector<double> u(at(d));
    normals_of(key, i, Purpose::kObjective, u);
    double square = 0;
    for (const double x : u) square += x * x;
    for (int r = 0; r < d; ++r)
      theta_.push_back(theta0[at(r)] + delta * u[at(r)] / std::sqrt(square));
    for (int pair = 0; pair < pairs(); ++pair) {
      const int o = pair / S, next = pair % S;
      double reward = 0;
      if (config_.rewards == Rewards::kLinear) {
        for (int r = 0; r < d; ++r)
          reward +=
              (phi_[at(o * d + r)] + 0.5 * phi_[at(next * d + r)]) / 1.5 * theta_[at(i * d + r)];
      } else {
        const auto index = static_cast<std::uint32_t>(pair);
        reward = uniform(key, kNoAgent, Purpose::kObjective, index) *
                 (1 + delta * normal(key, i, Purpose::kObjective, index));
      }
      R_.push_back(reward);
      R0_[at(pair)] += reward / static_cast<double>(n);
    }
  }
}

void Td::find_means() {
  const int S = config_.states, d = config_.dim;
  means_ = Store(d * d + d, config_.agents);
  std::vector<double> there(at(d));
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    const Out rows = means_.block(i / kLanes)[{0, d * d + d}];
    const auto lane = i % kLanes;
    for (int o = 0; o < S; ++o) {
      const double* phi = phi_.data() + static_cast<std::ptrdiff_t>(o) * d;
      std::fill(there.begin(), there.end(), 0.0);  // E[phi(o') | o]
      double r = 0;
      for (int next = 0; next < S; ++next) {
        const double p = kernel(i)[at(o * S + next)];
        r += p * reward(i, o, next);
        for (int c = 0; c < d; ++c) there[at(c)] += p * phi_[at(next * d + c)];
      }
      for (int a = 0; a < d; ++a) {
        const double weight = stationary(i, o) * phi[a];
        for (int c = 0; c < d; ++c)
          rows.row(a * d + c)[lane] += weight * (phi[c] - config_.gamma * there[at(c)]);
        rows.row(d * d + a)[lane] += weight * r;
      }
    }
  }
}

void Td::mean_apply(Lanes lanes, In x, Out Ax) const {
  const int d = config_.dim;
  const In A = means_.block(lanes.first / kLanes)[{0, d * d}];
  fill(Ax, 0);
  for (int a = 0; a < d; ++a)
    for (int c = 0; c < d; ++c)
      for (int l = 0; l < lanes.count; ++l) Ax.row(a)[l] += A.row(a * d + c)[l] * x.at(c, l);
}

void Td::mean_objective(Lanes lanes, Out b) const {
  const int d = config_.dim;
  copy(means_.block(lanes.first / kLanes)[{d * d, d}], b);
}

Shape Td::shape() const { return {.agents = config_.agents, .d = config_.dim, .k = k()}; }

void Td::declare(Layout& world, Layout& sample) const {
  if (config_.sampling == Sampling::kMarkov)
    world.add("state", 1, config_.states + 1);  // plus one; 0: not started
  Transitions::declare(world, sample);
}

double Td::reward(std::int64_t agent, int o, int next) const {
  return R_[at((agent * config_.states + o) * config_.states + next)];
}

void Td::write(std::int64_t agent, int o, int next, Out s, int lane) const {
  const int d = config_.dim;
  for (int r = 0; r < d; ++r) {
    const double here = phi_[at(o * d + r)], there = phi_[at(next * d + r)];
    s.row(r)[lane] = here;
    s.row(d + r)[lane] = config_.gamma * there;
    if (k() > 0) s.row(2 * d + r)[lane] = (here + 0.5 * there) / 1.5;
  }
  s.row(2 * d + k())[lane] = reward(agent, o, next);
  s.row(cell_row())[lane] = o * config_.states + next;
}

void Td::draw(const Draw& draw, Agents world, Out s) const {
  const Lanes lanes = world.lanes;
  const int S = config_.states;
  double buffer[2 * kLanes];
  const Out u{buffer, 2};
  uniforms(draw.key, lanes, Purpose::kSample, 0, u);
  for (int l = 0; l < lanes.count; ++l) {
    const std::int64_t i = lanes.first + l;
    if (config_.sampling == Sampling::kIndependent) {
      const int pair = laws_.pick(i, u.p[l]);
      write(i, pair / S, pair % S, s, l);
      continue;
    }
    double& state = world.p[l];
    if (state == 0) {  // from the stationary law
      double sum = 0;
      int o = 0;
      while (o < S - 1 && u.row(1)[l] >= (sum += stationary(i, o))) ++o;
      state = o + 1;
    }
    const int o = static_cast<int>(state) - 1;
    const double* row = cumulative_[at(i)].data() + static_cast<std::ptrdiff_t>(o) * S;
    const int next = categorical({row, at(S)}, u.p[l]);
    write(i, o, next, s, l);
    state = next + 1;
  }
}

Facets Td::facets() const {
  const bool any = config_.rewards == Rewards::kTable;
  return {.linear = any ? nullptr : this,
          .known = this,
          .table = this,
          .form = any ? ObjectiveForm::kTabular : ObjectiveForm::kLearnt,
          .means = this,
          .finite = this,
          .densities = &laws_,
          .ratio_cells = this};
}

void Td::known(Lanes lanes, In s, Scratch&, Out b0) const {
  double value[kLanes] = {};
  for (int l = 0; l < lanes.count; ++l) value[l] = R0_[at(static_cast<int>(s.row(cell_row())[l]))];
  table_lift(lanes, s, {value, 1}, b0);
}

void Td::outcome(Lanes lanes, int number, Out s) const {
  fill(s, 0);
  for (int l = 0; l < lanes.count; ++l)
    write(lanes.first + l, number / config_.states, number % config_.states, s, l);
}

double Td::G_A() const { return 1 + config_.gamma; }  // |phi| = 1
double Td::G_Phi() const { return k() > 0 ? 1 : 0; }  // |c| <= 1

std::vector<double> Td::theta(std::int64_t agent) const {
  if (k() == 0) return {};
  const auto first = theta_.begin() + agent * config_.dim;
  return {first, first + config_.dim};
}

}  // namespace affpcl
