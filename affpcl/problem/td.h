// Policy evaluation by TD(0) on finite Markov reward processes, one per agent (sec:td):
// (P^i, R^i, gamma) around a common one, values approximated by phi(o)' x.
//
// A sample is a pair (o, o') with law mu^i(o, o') = pi^i(o) P^i(o'|o): the ratio is over pairs, a
// ratio of states alone is biased. Every expectation is a finite sum.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/finite_densities.h"
#include "affpcl/problem/transitions.h"

namespace affpcl {

class Td final : public Transitions, public KnownObjective, public FiniteMeans {
 public:
  enum class Kernels { kAdditive, kRelative };
  enum class Rewards { kLinear, kTable };
  enum class Sampling { kIndependent, kMarkov };
  struct Config {
    std::int64_t agents = 10;
    int states = 10;
    int dim = 4;
    double gamma = 0.5;
    double delta_env = 0.3;  // h: additive P^i = (1-h) P^0 + h Q^i; relative P^i ∝ P^0 (1 + h U)
    double delta_obj = 0.3;  // linear: theta^i = theta_base + delta_obj u_i; table: R^0 (1 + . N)
    double concentration = 0.3;  // of the Dirichlet rows of P^0 and Q^i: small is sparse
    Kernels kernels = Kernels::kAdditive;
    Rewards rewards = Rewards::kLinear;  // R^i = c' theta^i, c = (phi(o) + phi(o')/2)/1.5; or any
    Sampling sampling = Sampling::kIndependent;
    bool first_central = true;  // the first agent is the base
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  Td(const Config& config, std::uint64_t seed, std::uint32_t replicate);

  Shape shape() const override;
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  Facets facets() const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  int cells() const override { return pairs(); }
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  double G_A() const override;
  double G_Phi() const override;
  int outcomes() const override { return pairs(); }
  double probability(std::int64_t agent, int outcome) const override {
    return laws_.mu(agent, outcome);
  }
  void outcome(Lanes lanes, int number, Out s) const override;
  std::vector<double> theta(std::int64_t agent) const override;

  const std::vector<double>& features() const { return phi_; }  // [states][d]
  const std::vector<double>& kernel(std::int64_t agent) const {
    return P_[static_cast<std::size_t>(agent)];
  }
  double reward(std::int64_t agent, int o, int next) const;
  double stationary(std::int64_t agent, int o) const {
    return pi_[static_cast<std::size_t>(agent * config_.states + o)];
  }

 private:
  const Problem& self() const override { return *this; }
  int pairs() const { return config_.states * config_.states; }
  int k() const { return config_.rewards == Rewards::kLinear ? config_.dim : 0; }
  void draw_rewards(const Key& key);
  void find_means();
  // Writes the transition o -> next of one agent into a lane.
  void write(std::int64_t agent, int o, int next, Out s, int lane) const;

  Config config_;
  std::vector<double> phi_;             // [states][d]
  std::vector<std::vector<double>> P_;  // [agents][states][states]
  std::vector<std::vector<double>> cumulative_;
  std::vector<double> pi_;     // [agents][states]
  std::vector<double> theta_;  // [agents][d], linear rewards
  std::vector<double> R_;      // [agents][states][states]
  std::vector<double> R0_;     // [states][states], mean over agents
  Store means_;                // per agent: Abar^i (d x d rows), bbar^i (d rows)
  FiniteDensities laws_;       // of pairs
};

template <>
struct EnumNames<Td::Kernels> {
  static constexpr std::string_view all[] = {"additive", "relative"};
};

template <>
struct EnumNames<Td::Rewards> {
  static constexpr std::string_view all[] = {"linear", "table"};
};

template <>
struct EnumNames<Td::Sampling> {
  static constexpr std::string_view all[] = {"independent", "markov"};
};

}  // namespace affpcl
