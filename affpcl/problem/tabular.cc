#include "affpcl/problem/tabular.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double largest_norm(const std::vector<double>& matrices, int states, int rows, int cols) {
  double largest = 0;
  for (int s = 0; s < states; ++s)
    largest = std::max(largest, operator_norm({matrices.data() + at(s) * at(rows) * at(cols),
                                               at(rows), at(cols)}));
  return largest;
}

int state_of(In s, int lane) { return static_cast<int>(s.row(0)[lane]); }

// What a choice of system or family leaves unread or cannot have.
void refuse_contradictions(const Tabular::Config& c) {
  const bool law = c.system == Tabular::System::kLaw,
             two_point = c.family == Tabular::Family::kTwoPoint;
  if (law && c.family == Tabular::Family::kFreeRide)
    throw BadInput("problem.system = \"law\" does not go with problem.family = \"free_ride\"");
  for (const auto& [param, get, set] : Tabular::params().entries()) {
    const std::string_view name = param.name;
    const bool with_law =
        law && (name == "dim" || name == "angle" || name == "noise_A" || name == "noise_Phi");
    const bool with_two_point = two_point && name == "sparsity";
    if ((with_law || with_two_point) && get(c) != param.fallback)
      throw BadInput(fmt::format("problem.{} = {} means nothing with problem.{}", name,
                                 to_text(get(c)),
                                 with_law ? "system = \"law\"" : "family = \"two_point\""));
  }
  if (two_point && c.states % 2 != 0)
    throw BadInput(
        fmt::format("problem.states = {} is odd, but family = \"two_point\" pairs them", c.states));
  if (two_point && c.delta_env > 0.5)
    throw BadInput(fmt::format(
        "problem.delta_env = {} is above .5, the most that family = \"two_point\" can have",
        c.delta_env));
}

}  // namespace

const Params<Tabular::Config>& Tabular::params() {
  static const Params<Config> kParams = {
      {"family", &Config::family,
       "mixture: laws and objectives around a base; exchange: pairs of agents that "
       "differ from mu^0 in few states (apx:dre); free_ride: all apart, the first at "
       "the centre (sec:asa); two_point: the hard pair of apx:lower, the first against "
       "the rest"},
      {"system", &Config::system,
       "random: A(s), Phi(s) around the identity; law: A = I, b = e_s theta, so that x "
       "is the environment mu itself and dim the number of states"},
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "unknowns per agent d", between(1, 1000)},
      {"states", &Config::states, "number of states", between(1, 100000)},
      {"delta_env", &Config::delta_env, "share of an agent's own law in mu^i", between(0, 1)},
      {"delta_obj", &Config::delta_obj, "distance of theta^i from theta_base", between(0, 1e6)},
      {"noise_A", &Config::noise_A, "noise of A(s) around the identity", between(0, 0.99)},
      {"angle", &Config::angle,
       "degrees by which A(s) turns, one way or the other: nu is about 1/cos (apx:noise)",
       between(0, 89)},
      {"noise_Phi", &Config::noise_Phi, "noise of Phi(s) around the identity", between(0, 0.99)},
      {"sparsity", &Config::sparsity, "share of states on which an agent may differ", above(0, 1)},
      {"first_central", &Config::first_central, "the first agent has the base law and objective"},
  };
  return kParams;
}

// A generated system, or one from a file.
struct TabularSource {
  std::string file = {};
  Tabular::Config generated = {};
  Tabular::Coe coe = Tabular::Coe::kAuto;
};

ProblemKind Tabular::kind() {
  using Source = TabularSource;
  static const auto kParams =
      Params<Source>{{"file", &Source::file,
                      "system.json to read instead of generating; then only coe counts", kPath}}
          .add(&Source::generated, params())
          .add({{"coe", &Source::coe,
                 "central objective's direction: Phi theta - b, or its gradient form"}});
  return {
      "tabular", "a finite system, generated or read from JSON; every expectation is a finite sum",
      kParams.table(), [](const Values& v, std::uint64_t seed, std::uint32_t replicate) {
        const Source source = kParams.read(v);
        if (!source.file.empty())
          return std::make_unique<Tabular>(read_finite_system(source.file), source.coe);
        refuse_contradictions(source.generated);
        return std::make_unique<Tabular>(generate(source.generated, seed, replicate), source.coe);
      }};
}

Tabular::Tabular(FiniteSystem system, Coe coe) : sys_(std::move(system)) {
  const int S = sys_.states, d = sys_.d, k = sys_.k;
  gradient_ = coe == Coe::kGradient || (coe == Coe::kAuto && k != d);
  if (k > 0 && k != d && !gradient_)
    throw BadInput(fmt::format(
        "problem.coe = \"residual\" needs a square Phi, but this one is {} x {}; use \"gradient\"",
        d, k));

  laws_ = FiniteDensities(S, sys_.mu, 0);
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
  const Lanes lanes = world.lanes;
  if (!sys_.order.empty()) {
    for (int l = 0; l < lanes.count; ++l)
      s.p[l] = sys_.order[at((lanes.first + l) * sys_.steps + draw.key.step)];
    return;
  }
  uniforms(draw.key, lanes, Purpose::kSample, 0, s);
  for (int l = 0; l < kLanes; ++l)
    s.p[l] = l < lanes.count ? laws_.pick(lanes.first + l, s.p[l]) : 0;
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
    const auto common = [&](int s) { return std::min(mu[s], mu0(s)); };
    const auto random = [&](std::uint32_t k) {
      return uniform(draw.key, lanes.first + l, Purpose::kPair, k);
    };
    double same = 0;
    for (int s = 0; s < S; ++s) same += common(s);
    if (const double u = random(0); u < same) {
      own.p[l] = mixed.p[l] = pick(u, common);
    } else {
      own.p[l] = pick(random(1) * (1 - same), [&](int s) { return mu[s] - common(s); });
      mixed.p[l] = pick(random(2) * (1 - same), [&](int s) { return mu0(s) - common(s); });
    }
  }
}

void Tabular::times(const std::vector<double>& matrices, int rows, int cols, int state, In in,
                    int lane, Out out) const {
  const double* M = matrices.data() + static_cast<std::ptrdiff_t>(state) * rows * cols;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c) sum += M[r * cols + c] * in.at(c, lane);
    out.row(r)[lane] = sum;
  }
}

Facets Tabular::facets() const {
  return {.linear = sys_.k > 0 ? this : nullptr,
          .known = this,
          .table = this,
          .means = this,
          .finite = this,
          .densities = &laws_,
          .ratio_cells = this,
          .features = sys_.p > 0 ? this : nullptr,
          .pairs = this,
          .recorded = sys_.order.empty() ? nullptr : this};
}

void Tabular::direction(Lanes lanes, In s, In b, In x, Scratch&, Out g) const {
  for (int l = 0; l < lanes.count; ++l) times(sys_.A, sys_.d, sys_.d, state_of(s, l), x, l, g);
  subtract_objective(b, g);
}

const double* Tabular::own_b(std::int64_t agent, int state) const {
  return b_.data() + (agent * sys_.states + state) * sys_.d;
}

void Tabular::objective(Lanes lanes, In s, Out b) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.d; ++r) b.row(r)[l] = own_b(lanes.first + l, state_of(s, l))[r];
}

void Tabular::Phi(Lanes lanes, In s, In theta, Scratch&, Out bhat) const {
  for (int l = 0; l < lanes.count; ++l)
    times(sys_.Phi, sys_.d, sys_.k, state_of(s, l), theta, l, bhat);
}

void Tabular::known(Lanes lanes, In s, Scratch&, Out b0) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.d; ++r) b0.row(r)[l] = b0_[at(state_of(s, l) * sys_.d + r)];
}

void Tabular::coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const {
  if (!gradient_) return LinearObjective::coe(lanes, s, b, theta, bhat, g);
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

double Tabular::G_A() const { return largest_norm(sys_.A, sys_.states, sys_.d, sys_.d); }
double Tabular::G_Phi() const {
  if (sys_.k == 0) return 0;
  const double norm = largest_norm(sys_.Phi, sys_.states, sys_.d, sys_.k);
  return gradient_ ? norm * norm : norm;
}

std::vector<double> Tabular::theta(std::int64_t agent) const {
  if (sys_.theta.empty()) return {};
  return {sys_.theta.begin() + agent * sys_.k, sys_.theta.begin() + (agent + 1) * sys_.k};
}

void Tabular::start(Lanes lanes, Out x) const {
  if (sys_.x0.empty()) return Problem::start(lanes, x);
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < sys_.d; ++r) x.row(r)[l] = sys_.x0[at((lanes.first + l) * sys_.d + r)];
}

}  // namespace affpcl
