// A small world in which the theory can be checked exactly: a finite system in the paper's letters
// (Exact), methods played on chosen states through the real Run (Game), and a sum over all joint
// states (each_joint_state) that turns an expectation into arithmetic.
//
// Nothing here asks the code under test for a number that it is then compared with: Exact computes
// its means and solutions from the arrays of the FiniteSystem.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/method/affpcl.h"
#include "affpcl/method/fedavg.h"
#include "affpcl/method/independent.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/run.h"
#include "tests/algebra.h"

namespace affpcl::testing {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Numbers for the tests' own systems (SplitMix64), apart from the streams under test.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }  // (0, 1)
  double between(double lo, double hi) { return lo + (hi - lo) * uniform(); }
  int below(int n) { return static_cast<int>(uniform() * n); }
  double normal() {
    const double r = std::sqrt(-2 * std::log(uniform()));
    return r * std::cos(2 * std::numbers::pi * uniform());
  }
  Vector vector(int d, double scale = 1) {
    Vector v;
    for (int r = 0; r < d; ++r) v.push_back(scale * normal());
    return v;
  }
  Matrix matrix(int rows, int cols) {
    Matrix m(at(rows), at(cols));
    for (double& entry : m.all()) entry = normal();
    return m;
  }
  // Positive weights that sum to one; a larger power makes some of them small.
  Vector law(int states, double power = 1) {
    Vector q;
    for (int s = 0; s < states; ++s) q.push_back(std::pow(-std::log(uniform()), power));
    return q / sum(q);
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

inline void append(std::vector<double>& to, const Vector& v) {
  to.insert(to.end(), v.begin(), v.end());
}

// A system with everything different: A(s), Phi(s), mu^i, theta^i and all starts. A(s) and Phi(s)
// are near the identity, so that eq:sys holds; |Phi(s)| <= 1.
struct Wild {
  int agents = 3, states = 3, d = 2, k = 2;
  double noise = 0.6;  // of A(s) and Phi(s) around I, in operator norm
};
inline FiniteSystem wild_system(Dice& dice, const Wild& w) {
  FiniteSystem sys;
  sys.agents = w.agents;
  sys.states = w.states;
  sys.d = w.d;
  sys.k = w.k;
  const auto around_identity = [&](int rows, int cols) {
    Matrix N = dice.matrix(rows, cols);
    N *= w.noise / operator_norm(N);
    for (std::size_t r = 0; r < std::min(N.rows(), N.cols()); ++r) N(r, r) += 1;
    return N;
  };
  for (int s = 0; s < w.states; ++s) {
    append(sys.A, around_identity(w.d, w.d).all());
    append(sys.Phi, around_identity(w.d, w.k).all() / (1 + w.noise));
  }
  for (int i = 0; i < w.agents; ++i) {
    append(sys.mu, dice.law(w.states));
    append(sys.theta, dice.vector(w.k));
    append(sys.x0, dice.vector(w.d));
  }
  append(sys.xc0, dice.vector(w.d));
  append(sys.thetac0, dice.vector(w.k));
  return sys;
}

// The finite system as the paper writes it, with all its means and solutions.
struct Exact {
  int n, S, d, k;
  std::vector<Matrix> A, Phi;          // per state
  std::vector<std::vector<Vector>> b;  // b^i(s)
  std::vector<Vector> theta;           // theta^i, where there is one
  Matrix mu;                           // n x S
  Vector mu0;
  std::vector<Matrix> Abar, Phibar;  // per agent
  std::vector<Vector> bbar;
  Matrix A0, Phi0;  // means over agents
  Vector b0;
  std::vector<Vector> x;  // x^i_*
  Vector xc, thetac;      // x^c_*, theta^c_* (square Phi)

  explicit Exact(const FiniteSystem& sys)
      : n(static_cast<int>(sys.agents)), S(sys.states), d(sys.d), k(sys.k) {
    for (int s = 0; s < S; ++s) {
      A.emplace_back(MatrixView(sys.A.data() + s * d * d, at(d), at(d)));
      Phi.emplace_back(MatrixView(sys.Phi.data() + s * d * k, at(d), at(k)));
    }
    mu = MatrixView(sys.mu.data(), at(n), at(S));
    mu0 = column_sums(mu) / n;
    A0 = Matrix(at(d), at(d));
    Phi0 = Matrix(at(d), at(k));
    b0 = Vector(at(d));
    b.resize(at(n));
    for (int i = 0; i < n; ++i) {
      if (sys.b.empty()) theta.push_back(part(sys.theta, at(i * k), at(k)));
      Matrix Ai(at(d), at(d)), Pi(at(d), at(k));
      Vector bi(at(d));
      for (int s = 0; s < S; ++s) {
        b[at(i)].push_back(sys.b.empty() ? Phi[at(s)] * theta.back()
                                         : part(sys.b, at((i * S + s) * d), at(d)));
        Ai += law(i, s) * A[at(s)];
        Pi += law(i, s) * Phi[at(s)];
        bi += law(i, s) * b[at(i)].back();
      }
      x.push_back(solve(Ai, bi));
      A0 += Ai / n, Phi0 += Pi / n, b0 += bi / n;
      Abar.push_back(Ai), Phibar.push_back(Pi), bbar.push_back(bi);
    }
    xc = solve(A0, b0);
    if (k == d) thetac = solve(Phi0, b0);
  }
  double law(int i, int s) const { return mu(at(i), at(s)); }
  double rho(int i, int s) const { return law(i, s) == 0 ? 0 : law(i, s) / mu0[at(s)]; }
};

// A method with its step sizes. The three modules step differently, so that none can stand in for
// another; powers of two, so that a direction is read off a step without rounding.
struct Plan {
  AffPcl::Config config = {};
  std::string ratio = "exact";
  int period = 1, batch = 1;
  double agent = 0.5, central = 0.25, objective = 0.125;
  std::vector<double> agent_factors = {};
  double t0 = 0;  // above 0: all three are divided by (t + t0 + 1) / 4

  StepSizes steps() const {
    StepSizes step;
    const auto module = [&](double value) -> StepSizes::Module {
      if (t0 == 0) return {{.value = value}, 1};
      return {{.kind = Schedule::Kind::kDiminishing, .t0 = t0}, value};
    };
    step.agent = module(agent);
    step.central = module(central);
    step.objective = module(objective);
    step.agent_factors = agent_factors;
    return step;
  }
  RunMethod affpcl() const {
    const Values chosen(ratio_params(), {{"ratio", ratio}}, "plan");
    return {"affpcl", std::make_unique<AffPcl>(config, make_ratio(chosen)), period, batch, steps()};
  }
  RunMethod independent() const {
    return {"independent", std::make_unique<Independent>(), period, batch, steps()};
  }
  RunMethod fedavg() const {
    return {"fedavg", std::make_unique<FedAvg>(), period, batch, steps()};
  }
};

inline std::string name_of(const Plan& plan) {
  const char* objective[] = {"auto", "learnt", "moments", "known", "tabular"};
  const char* central[] = {"own", "estimated", "average"};
  const char* correction[] = {"server", "client"};
  return std::string(objective[static_cast<int>(plan.config.objective)]) + "/" +
         central[static_cast<int>(plan.config.central)] + "/" +
         correction[static_cast<int>(plan.config.correction)] + "/" + plan.ratio + "/period " +
         std::to_string(plan.period) + "/batch " + std::to_string(plan.batch);
}
// Every variant of AffPCL that has its own code path.
inline std::vector<Plan> plans() {
  std::vector<Plan> all;
  for (const auto objective : {AffPcl::Objective::kLearnt, AffPcl::Objective::kMoments,
                               AffPcl::Objective::kKnown, AffPcl::Objective::kTabular})
    for (const auto central :
         {AffPcl::Central::kOwn, AffPcl::Central::kEstimated, AffPcl::Central::kAverage})
      for (const auto correction : {AffPcl::Correction::kServer, AffPcl::Correction::kClient}) {
        // Refused: client-side corrections do not cancel in the mean (IdentityAverage).
        if (central == AffPcl::Central::kAverage && correction == AffPcl::Correction::kClient)
          continue;
        all.push_back(
            {.config = {.objective = objective, .central = central, .correction = correction}});
      }
  return all;
}

struct Iterates {  // where a method stands
  std::vector<Vector> x;
  Vector xc, thetac;  // empty where it has none
};
inline Iterates iterates(const Run& run, std::size_t method, std::int64_t agents) {
  Iterates now;
  for (std::int64_t i = 0; i < agents; ++i) {
    now.x.emplace_back();
    for (int r = 0; r < run.dimension(); ++r) now.x.back().push_back(run.solution(method, i, r));
  }
  const In xc = run.central_x(method), thetac = run.central_theta(method);
  now.xc = numbers(xc.p, at(xc.rows));
  now.thetac = numbers(thetac.p, at(thetac.rows));
  return now;
}

// All the steps of a run, and what was recorded.
template <class... Methods>
std::vector<Record> records(const Problem& problem, const RunOptions& options, Methods... methods) {
  std::vector<RunMethod> list;
  (list.push_back(std::move(methods)), ...);
  const auto team = serial_team();
  Run run(problem, std::move(list), options, *team);
  run.advance(options.steps);
  return run.finish();
}

// One method on a table of chosen states, through the real Run: `steps` samples (or batches) per
// agent, states[i * samples + t] for agent i. `schedule` says which agents are present.
class Game {
 public:
  Game(FiniteSystem sys, std::vector<int> states, RunMethod method,
       std::vector<std::vector<std::int64_t>> schedule = {})
      : problem_(with(std::move(sys), std::move(states)), Tabular::Coe::kAuto),
        team_(serial_team()) {
    RunOptions options;
    options.steps = problem_.system().steps / method.batch;
    options.diverged_above = 1e300;
    options.schedule = std::move(schedule);
    std::vector<RunMethod> methods;
    methods.push_back(std::move(method));
    run_ = std::make_unique<Run>(problem_, std::move(methods), options, *team_);
  }
  Iterates now() const { return iterates(*run_, 0, problem_.shape().agents); }
  Iterates after(std::int64_t steps) {
    run_->advance(steps);
    return now();
  }
  Iterates end() { return after(INT64_MAX); }

 private:
  static FiniteSystem with(FiniteSystem sys, std::vector<int> states) {
    sys.steps = static_cast<std::int64_t>(states.size()) / sys.agents;
    sys.order = std::move(states);
    return sys;
  }
  Tabular problem_;
  std::unique_ptr<Team> team_;
  std::unique_ptr<Run> run_;
};

// Calls f(states, probability) for every table of `samples` states per agent, s^i_t ~ mu^i.
template <class F>
void each_joint_state(const Exact& e, int samples, F f) {
  std::vector<int> states(at(e.n * samples), 0);
  while (true) {
    double p = 1;
    for (int i = 0; i < e.n; ++i)
      for (int t = 0; t < samples; ++t) p *= e.law(i, states[at(i * samples + t)]);
    f(std::as_const(states), p);
    std::size_t digit = 0;
    while (digit < states.size() && ++states[digit] == e.S) states[digit++] = 0;
    if (digit == states.size()) return;
  }
}

// `prefix` followed by `states`, agent by agent.
inline std::vector<int> joined(const std::vector<int>& prefix, const std::vector<int>& states,
                               int agents) {
  const std::size_t p = prefix.size() / at(agents), q = states.size() / at(agents);
  std::vector<int> all;
  for (std::size_t i = 0; i < at(agents); ++i) {
    const auto from = [&](const std::vector<int>& v, std::size_t m) {
      for (std::size_t t = 0; t < m; ++t) all.push_back(v[i * m + t]);
    };
    from(prefix, p), from(states, q);
  }
  return all;
}

inline std::vector<int> random_states(Dice& dice, const FiniteSystem& sys, int steps) {
  std::vector<int> states(at(sys.agents * steps));
  for (int& s : states) s = dice.below(sys.states);
  return states;
}

inline double distance(const Vector& a, const Vector& b) {
  return a.size() == b.size() ? largest(a - b) : std::numeric_limits<double>::infinity();
}
// The largest difference between two methods' iterates; the centre only if both have one.
inline double distance(const std::vector<Vector>& a, const std::vector<Vector>& b) {
  double most = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, distance(a[i], b[i]));
  return most;
}

}  // namespace affpcl::testing
