#include "affpcl/problem/sarsa.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/math/kernels.h"
#include "affpcl/problem/acting.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// One lane of x as a plain array.
struct Column {
  Column(In x, int lane) {
    if (x.width == 1) {
      p = x.p;
      return;
    }
    for (int r = 0; r < x.rows; ++r) own[r] = x.row(r)[lane];
    p = own;
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  double own[Sarsa::kMost];
  const double* p;
};

// With tabular features d is given by states and actions.
Sarsa::Config with_dim(Sarsa::Config config) {
  if (config.features != Sarsa::Features::kTabular) return config;
  const int cells = config.states * config.actions;
  if (config.dim != cells && config.dim != Sarsa::Config{}.dim)
    throw BadInput(fmt::format(
        "dim = {} is not the number of tabular features: {} states of {} actions have {}; leave "
        "dim out",
        config.dim, config.states, config.actions, cells));
  if (cells > Sarsa::kMost)
    throw BadInput(
        fmt::format("{} states of {} actions have {} tabular features, but at most {} "
                    "are possible",
                    config.states, config.actions, cells, Sarsa::kMost));
  config.dim = cells;
  return config;
}

template <class Rows>
void put(const Rows& store, std::int64_t agent, std::span<const double> v) {
  const Out block = store.block(agent / kLanes)[{0, static_cast<int>(v.size())}];
  for (std::size_t r = 0; r < v.size(); ++r) block.row(static_cast<int>(r))[agent % kLanes] = v[r];
}

// stationary(o) pi(a|o)
std::vector<double> pair_law(const Mdp& mdp, std::span<const double> pi) {
  const std::vector<double> state = stationary(under_policy(mdp, pi));
  std::vector<double> law(pi.begin(), pi.end());
  for (int c = 0; c < mdp.pairs(); ++c) law[at(c)] *= state[at(c / mdp.actions)];
  return law;
}

// The mean over states of the best action's value.
double best_mean(std::span<const double> q, int actions) {
  double sum = 0;
  for (std::size_t o = 0; o < q.size(); o += at(actions))
    sum += *std::max_element(q.begin() + static_cast<std::ptrdiff_t>(o),
                             q.begin() + static_cast<std::ptrdiff_t>(o) + actions);
  return sum * actions / static_cast<double>(q.size());
}

}  // namespace

// Exact: stationary(o) pi(a|o) P(o'|o, a) over (o, a, o'). Counted: visits(o) pi(a|o) over (o, a),
// the paper's estimate, which leaves the kernel out.
class Sarsa::Law final : public Occupancy {
 public:
  Law(const Sarsa& problem, bool exact) : problem_(problem), exact_(exact) {}
  int cells() const override { return problem_.cells() * (exact_ ? problem_.config_.states : 1); }
  void cell(Lanes lanes, In s, Out index) const override {
    problem_.cell(lanes, s, index);
    for (int l = 0; exact_ && l < lanes.count; ++l)
      index.p[l] = index.p[l] * problem_.config_.states + s.row(kNext)[l];
  }
  int counted() const override { return exact_ ? 0 : problem_.config_.states; }
  void visit(Lanes, In s, Out index) const override { copy({s.row(kState), 1}, index); }

  void law(Lanes lanes, In x, In visits, Scratch& scratch, Out q) const override {
    const int S = problem_.config_.states, A = problem_.config_.actions, n = lanes.count;
    const Out pi = scratch.rows(S * A);
    problem_.policies(x, pi);
    if (!exact_) {
      for (int c = 0; c < S * A; ++c)
        for (int l = 0; l < n; ++l) q.row(c)[l] = visits.row(c / A)[l] * pi.row(c)[l];
      return;
    }
    const In P = problem_.kernels_.block(lanes.first / kLanes)[{0, S * A * S}];
    chain_law(P, pi, S, A, scratch, q);
  }

 private:
  const Sarsa& problem_;
  bool exact_;
};

const Params<Sarsa::Config>& Sarsa::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"states", &Config::states, "number of states", between(1, 1000)},
      {"actions", &Config::actions, "number of actions", between(1, kMost)},
      {"dim", &Config::dim, "features of a state and action d; tabular: states * actions",
       between(1, kMost)},
      {"features", &Config::features, "of a state and action: random of length 1, or one-hot"},
      {"gamma", &Config::gamma, "discount of the future, below 1", between(0, 1)},
      {"temperature", &Config::temperature, "the policy is softmax(Q / temperature)",
       above(0, 1e6)},
      {"delta_env", &Config::delta_env, "relative perturbation of the transition kernels",
       between(0, 1)},
      {"delta_obj", &Config::delta_obj, "relative perturbation of the rewards", between(0, 1e6)},
      {"error", &Config::error,
       "what the error is measured to: theta_fp (the on-policy fixed point), "
       "theta_q (the projected value of softmax(Q*)), q_star (Q* itself); or regret (the best "
       "discounted return minus the policy's)"},
      {"first_central", &Config::first_central, "the first agent has the base kernel and rewards"},
  };
  return kParams;
}

ProblemKind Sarsa::kind() {
  return problem_kind_of<Sarsa>(
      "sarsa", "on-policy control of finite MDPs by SARSA; each agent acts by its own iterate");
}

Sarsa::Sarsa(const Config& given, std::uint64_t seed, std::uint32_t replicate)
    : config_(with_dim(given)) {
  const Config& config = config_;
  const int S = config.states, A = config.actions, C = S * A;
  const std::int64_t n = config.agents;
  const Key key{seed, replicate, 0};
  basis_ = config.features == Features::kTabular ? Basis{C, C, Matrix::identity(at(C)).all()}
                                                 : random_basis(key, C, config.dim);
  const std::vector<double> P = uniform_kernel(key, kNoAgent, C, S),
                            R = uniform_rewards(key, kNoAgent, C);
  R0_.assign(at(C), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    const bool base = i == 0 && config.first_central;
    Mdp mdp{S, A, perturbed_kernel(key, i, P, S, base ? 0 : config.delta_env),
            perturbed_rewards(key, i, R, base ? 0 : config.delta_obj), config.gamma};
    check_mdp(fmt::format("agent {}", i), mdp);
    for (int c = 0; c < C; ++c) R0_[at(c)] += mdp.R[at(c)] / static_cast<double>(n);
    cumulative_.push_back(mdp.P);
    for (int c = 0; c < C; ++c)
      for (int next = 1; next < S; ++next)
        cumulative_.back()[at(c * S + next)] += cumulative_.back()[at(c * S + next - 1)];
    mdps_.push_back(std::move(mdp));
  }
  cooled_ = basis_.phi;
  for (double& x : cooled_) x /= config.temperature;
  zeros_.assign(at(A), 0.0);
  const int padded = lanes_to_write(A);
  scores_.assign(at(std::int64_t{S} * config.dim * padded), 0.0);
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < config.dim; ++r)
      scores_[at((c / A * config.dim + r) * padded + c % A)] = cooled_[at(c * config.dim + r)];
  kernels_ = Store(C * S, n);
  for (std::int64_t i = 0; i < n; ++i)
    for (int c = 0; c < C * S; ++c)
      kernels_.block(i / kLanes)[{c, 1}].p[i % kLanes] = mdp(i).P[at(c)];
  laws_.push_back(std::make_unique<Law>(*this, false));
  laws_.push_back(std::make_unique<Law>(*this, true));
  solve_truth();
}

Sarsa::~Sarsa() = default;

Facets Sarsa::facets() const {
  return {.linear = this,
          .known = this,
          .table = this,
          .form = ObjectiveForm::kTabular,
          .ratio_cells = laws_[1].get(),
          .occupancy = laws_[1].get(),
          .counted_occupancy = laws_[0].get(),
          .scores = this};
}

Shape Sarsa::shape() const {
  return {.agents = config_.agents, .d = config_.dim, .k = config_.dim, .p = 0, .acts = true};
}

void Sarsa::declare(Layout& world, Layout& sample) const {
  world.add("state", 1, config_.states + 1);  // plus one; 0: not started
  world.add("action", 1, config_.actions);    // the one taken next
  sample.add("state", 1);
  sample.add("action", 1);
  sample.add("next", 1);
  sample.add("uniform", 1);
  sample.add("reward", 1);
}

double Sarsa::value(int cell, const double* x) const {
  // NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult): x has dim numbers
  const double* f = phi(cell);
  double sum[4] = {};
  int r = 0;
  for (; r + 4 <= config_.dim; r += 4)
    for (int k = 0; k < 4; ++k) sum[k] += f[r + k] * x[r + k];
  for (; r < config_.dim; ++r) sum[0] += f[r] * x[r];
  // NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult)
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// pi(a|o) of every agent's x at every state, [states * actions] rows.
void Sarsa::policies(In x, Out pi) const {
  const int A = config_.actions;
  kernels::matvec(cooled_.data(), cells(), config_.dim, x, pi);
  for (int o = 0; o < config_.states; ++o)
    kernels::softmax({pi.row(o * A), A, pi.lanes}, zeros_.data());
}

void Sarsa::policy(int state, const double* x, double* pi) const {
  const int A = config_.actions;
  for (int a = 0; a < A; ++a) pi[a] = value(state * A + a, x);
  softmax({pi, at(A)}, config_.temperature, {pi, at(A)});
}

void Sarsa::act(Lanes lanes, In x, In state, In u, double* action) const {
  choose_actions(scores_.data(), config_.actions, x, state, u, lanes, action);
}

void Sarsa::draw(const Draw& draw, Agents world, Out s) const {
  const Lanes lanes = world.lanes;
  const int S = config_.states;
  double buffer[4 * kLanes], first[kLanes];
  const Out u{buffer, 4};
  uniforms(draw.key, lanes, Purpose::kSample, 0, u);
  double *state = world.p, *action = world.p + kLanes;
  if (std::any_of(state, state + lanes.count, [](double o) { return o == 0; })) {
    double* start = s.row(kState);  // anywhere, by the first policy
    for (int l = 0; l < lanes.count; ++l)
      start[l] = std::min(S - 1, static_cast<int>(u.row(2)[l] * S));
    act(lanes, draw.acting, {start, 1}, {u.row(3), 1}, first);
    for (int l = 0; l < lanes.count; ++l)
      if (state[l] == 0) state[l] = 1 + start[l], action[l] = first[l];
  }
  for (int l = 0; l < lanes.count; ++l) {
    s.row(kState)[l] = state[l] - 1;
    s.row(kAction)[l] = action[l];
    const int cell = cell_of(s, l);
    const std::int64_t i = lanes.first + l;
    const int next = categorical(
        {cumulative_[at(i)].data() + static_cast<std::ptrdiff_t>(cell) * S, at(S)}, u.row(0)[l]);
    s.row(kNext)[l] = next;
    s.row(kUniform)[l] = u.row(1)[l];
    s.row(kReward)[l] = mdp(i).R[at(cell)];
    state[l] = next + 1;
  }
  act(lanes, draw.acting, {s.row(kNext), 1}, {u.row(1), 1}, action);
}

void Sarsa::direction(Lanes lanes, In s, In b, In x, Scratch&, Out g) const {
  const int d = config_.dim, A = config_.actions;
  double action[kLanes];
  act(lanes, x, {s.row(kNext), 1}, {s.row(kUniform), 1}, action);
  for (int l = 0; l < lanes.count; ++l) {
    const Column own(x, l);
    const int cell = cell_of(s, l),
              next = static_cast<int>(s.row(kNext)[l]) * A + static_cast<int>(action[l]);
    const double gap = value(cell, own.p) - config_.gamma * value(next, own.p);
    const double* f = phi(cell);
    for (int r = 0; r < d; ++r) g.row(r)[l] = f[r] * gap;
  }
  subtract_objective(b, g);
}

void Sarsa::table_lift(Lanes lanes, In s, In value, Out bhat) const {
  for (int l = 0; l < lanes.count; ++l) {
    const double *f = phi(cell_of(s, l)), v = value.p[l];
    for (int r = 0; r < config_.dim; ++r) bhat.row(r)[l] = f[r] * v;
  }
}

void Sarsa::objective(Lanes lanes, In s, Out b) const {
  table_lift(lanes, s, {s.row(kReward), 1}, b);
}

// Linear rewards, r = phi' theta. On random features that is wrong, and the gain is lost.
void Sarsa::Phi(Lanes lanes, In s, In theta, Scratch&, Out bhat) const {
  double reward[kLanes] = {};
  for (int l = 0; l < lanes.count; ++l) reward[l] = value(cell_of(s, l), Column(theta, l).p);
  table_lift(lanes, s, {reward, 1}, bhat);
}

void Sarsa::known(Lanes lanes, In s, Scratch&, Out b0) const {
  double reward[kLanes] = {};
  for (int l = 0; l < lanes.count; ++l) reward[l] = R0_[at(cell_of(s, l))];
  table_lift(lanes, s, {reward, 1}, b0);
}

void Sarsa::cell(Lanes lanes, In s, Out index) const {
  for (int l = 0; l < lanes.count; ++l) index.p[l] = cell_of(s, l);
}

void Sarsa::table_value(Lanes, In s, In, Out value) const { copy({s.row(kReward), 1}, value); }

void Sarsa::solve_truth() {
  const int C = cells(), d = config_.dim;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> even(at(C), 1.0 / C);
  truth_.x = MadeStore(d, config_.agents);
  q_target_ = Store(d, config_.agents);
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    const Mdp& m = mdp(i);
    q_star_.push_back(policy_iteration(m));
    best_return_.push_back(best_mean(q_star_.back(), config_.actions));
    const std::vector<double> pi =
        softmax_policy(config_.actions, q_star_.back(), config_.temperature);
    const bool all = config_.features == Features::kTabular;  // nothing to weigh
    try {
      put(q_target_, i, project(basis_, all ? even : pair_law(m, pi), policy_q(m, pi)));
    } catch (const BadInput&) {  // a policy that leaves features without weight
      if (config_.error == Error::kThetaQ) throw;
      put(q_target_, i, Vector(at(d), none));
    }
  }
  fixed_points_ = find_fixed_points();
  if (fixed_points_) return find_centre();
  for (std::int64_t i = 0; i < config_.agents; ++i)
    put(truth_.x, i, project(basis_, even, q_star_[at(i)]));
  truth_.xc.assign(at(d), none);
}

// Policies that answer each other in turns have no fixed point that could be found. What does not
// need it goes on without.
bool Sarsa::find_fixed_points() {
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    try {
      put(truth_.x, i, sarsa_fixed_point(mdp(i), basis_, config_.temperature));
    } catch (const Failure& e) {
      if (config_.error == Error::kThetaFp)
        throw Failure(fmt::format(
            "agent {}: {}; error = \"q_star\" and error = \"regret\" need no fixed point", i,
            e.what()));
      return false;
    }
  }
  return true;
}

void Sarsa::find_centre() {
  const int S = config_.states, A = config_.actions, C = S * A, d = config_.dim;
  const MatrixView F(basis_.phi.data(), at(C), at(d));
  Matrix G(at(d), at(d));  // sum over agents of E phi phi'
  Vector b(at(d));
  Matrix flow(at(C), at(S));  // sum over agents of the law of (o, a, o')
  std::vector<double> values(at(C));
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    const Mdp& m = mdp(i);
    const Column x(truth_.x.block(i / kLanes)[{0, d}], static_cast<int>(i % kLanes));
    for (int c = 0; c < C; ++c) values[at(c)] = value(c, x.p);
    const std::vector<double> law = pair_law(m, softmax_policy(A, values, config_.temperature));
    for (std::size_t c = 0; c < law.size(); ++c) {
      for (std::size_t r = 0; r < b.size(); ++r) {
        for (std::size_t k = 0; k < b.size(); ++k) G(r, k) += law[c] * F(c, r) * F(c, k);
        b[r] += law[c] * m.R[c] * F(c, r);
      }
      for (std::size_t next = 0; next < flow.cols(); ++next)
        flow(c, next) += law[c] * m.P[c * flow.cols() + next];
    }
  }
  // x^c chooses a' only.
  Vector xc = solve_symmetric(G, b);
  truth_.thetac = xc;  // linear rewards
  Matrix discounted = multiply(transposed(flow), F);
  for (double& f : discounted.all()) f *= config_.gamma;
  double pi[kMost];
  Matrix there(at(S), at(d));  // the mean feature of the central policy at each state
  for (int step = 0; step < 500; ++step) {
    for (int o = 0; o < S; ++o) {
      policy(o, xc.data(), pi);
      multiply(transposed({phi(o * A), at(A), at(d)}), {pi, at(A)}, there.row(at(o)));
    }
    Matrix M = multiply(transposed(discounted), there);
    for (std::size_t j = 0; j < M.all().size(); ++j) M.all()[j] = G.all()[j] - M.all()[j];
    const Vector better = affpcl::solve(M, b);
    Vector moved = better;
    for (std::size_t r = 0; r < xc.size(); ++r) moved[r] -= xc[r];
    xc = better;
    if (norm(moved) < 1e-13) break;
  }
  truth_.xc = xc;
}

double Sarsa::regret(std::int64_t agent, const double* x) const {
  std::vector<double> pi(at(cells()));
  for (int o = 0; o < config_.states; ++o) policy(o, x, pi.data() + o * config_.actions);
  if (!std::all_of(pi.begin(), pi.end(), [](double p) { return std::isfinite(p); }))
    return std::numeric_limits<double>::quiet_NaN();  // x diverged
  return best_return_[at(agent)] - expected_return(mdp(agent), pi);
}

void Sarsa::error(Error which, Lanes lanes, In x, double* row) const {
  const Field all{0, config_.dim};
  switch (which) {
    case Error::kThetaFp:
      if (!fixed_points_)
        return fill({row, 1, lanes_to_write(lanes.count)},
                    std::numeric_limits<double>::quiet_NaN());
      return squared_distance(x, truth_.x.block(lanes.first / kLanes)[all], {row, 1});
    case Error::kThetaQ:
      return squared_distance(x, q_target_.block(lanes.first / kLanes)[all], {row, 1});
    case Error::kQStar:
      for (int l = 0; l < lanes.count; ++l) {
        const Column own(x, l);
        row[l] = 0;
        for (int c = 0; c < cells(); ++c) {
          const double gap = value(c, own.p) - q_star_[at(lanes.first + l)][at(c)];
          row[l] += gap * gap / cells();
        }
      }
      return;
    case Error::kRegret:
      for (int l = 0; l < lanes.count; ++l) row[l] = regret(lanes.first + l, Column(x, l).p);
  }
}

void Sarsa::error(Lanes lanes, In x, Scratch&, Out one_row) const {
  error(config_.error, lanes, x, one_row.p);
}

std::vector<std::string> Sarsa::more_errors() const {
  return {"theta_fp", "theta_q", "q_star", "regret", "return"};
}

// The return itself, of which more is better, stands last.
void Sarsa::more_errors(Lanes lanes, In x, Out rows) const {
  error(Error::kThetaFp, lanes, x, rows.row(0));
  error(Error::kThetaQ, lanes, x, rows.row(1));
  error(Error::kQStar, lanes, x, rows.row(2));
  error(Error::kRegret, lanes, x, rows.row(3));
  for (int l = 0; l < lanes.count; ++l)
    rows.row(4)[l] = best_return_[at(lanes.first + l)] - rows.row(3)[l];
}

}  // namespace affpcl
