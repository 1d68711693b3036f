// On-policy control (SARSA, fig:exp_rl): finite MDPs (P^i, R^i, gamma) around a common one,
// Q(o, a) = phi(o, a)' x, and each agent acts by softmax(Q / temperature) of its own iterate. The
// direction is not linear: it contains the next action, which x chooses.
//
//   G(s, x) = phi(o, a) (phi(o, a) - gamma phi(o', a'))' x,   a' = action of x at o', by uniform u
//
// u is part of the sample, so that x^c is evaluated at the action the central policy takes with the
// agent's own uniform. An agent's samples form one trajectory: its next action is a'.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/problem/acting.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/mdp.h"

namespace affpcl {

class Sarsa final : public Problem,
                    public LinearObjective,
                    public KnownObjective,
                    public ObjectiveTable,
                    public Scores {
 public:
  // Squared distance of x to the on-policy projected fixed point, to which SARSA converges; to the
  // projection of the value of softmax(Q*/temperature); of Q to Q*, mean over (o, a). Regret: the
  // best discounted return from a uniform first state, minus that of softmax(Q/temperature). Only
  // the first needs a fixed point.
  enum class Error { kThetaFp, kThetaQ, kQStar, kRegret };
  enum class Features { kRandom, kTabular };
  struct Config {
    std::int64_t agents = 10;
    int states = 10, actions = 5, dim = 20;
    Features features = Features::kRandom;  // tabular: one-hot, d = states * actions
    double gamma = 0.1;
    double temperature = 10;
    double delta_env = 0.2;  // P^i ∝ P_base (1 + delta_env U[-1, 1])
    double delta_obj = 0.2;  // R^i = R_base (1 + delta_obj N(0, 1))
    Error error = Error::kThetaFp;
    bool first_central = true;  // the first agent is the base
  };
  static constexpr int kMost = kMostActions;  // actions, and unknowns
  Sarsa(const Config& config, std::uint64_t seed, std::uint32_t replicate);
  ~Sarsa() override;
  static const Params<Config>& params();
  static ProblemKind kind();

  Shape shape() const override;
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  Facets facets() const override;
  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  int cells() const override { return config_.states * config_.actions; }
  int width() const override { return 1; }
  void cell(Lanes lanes, In s, Out index) const override;
  void table_value(Lanes lanes, In s, In b, Out value) const override;
  void table_lift(Lanes lanes, In s, In value, Out bhat) const override;
  void error(Lanes lanes, In x, Scratch& scratch, Out one_row) const override;
  std::vector<std::string> more_errors() const override;
  void more_errors(Lanes lanes, In x, Out rows) const override;

  const Mdp& mdp(std::int64_t agent) const { return mdps_[static_cast<std::size_t>(agent)]; }
  const std::vector<double>& features() const { return basis_.phi; }  // [states * actions][d]

 private:
  enum Row { kState, kAction, kNext, kUniform, kReward, kRows };
  class Law;  // of the samples, while x acts

  const double* phi(int cell) const {
    return basis_.phi.data() + static_cast<std::ptrdiff_t>(cell) * config_.dim;
  }
  int cell_of(In s, int lane) const {
    return static_cast<int>(s.row(kState)[lane]) * config_.actions +
           static_cast<int>(s.row(kAction)[lane]);
  }
  double value(int cell, const double* x) const;  // phi' x
  void policies(In x, Out pi) const;
  void policy(int state, const double* x, double* pi) const;  // [actions]
  // The action that each agent's uniform u chooses in its state.
  void act(Lanes lanes, In x, In state, In u, double* action) const;
  void error(Error which, Lanes lanes, In x, double* row) const;
  double regret(std::int64_t agent, const double* x) const;
  void solve_truth();
  bool find_fixed_points();  // false where an agent has none
  void find_centre();        // x^c_*, while every agent acts by its own solution

  Config config_;
  Basis basis_;
  std::vector<Mdp> mdps_;
  std::vector<std::vector<double>> cumulative_;  // of P^i
  Store kernels_;                                // the same as rows, P^i(o'|o, a)
  std::vector<double> cooled_;                   // phi / temperature
  std::vector<double> scores_;                   // the same, [states][d][actions, padded to 8]
  std::vector<double> zeros_;                    // one per action
  std::vector<double> R0_;                       // [cells], mean over agents
  bool fixed_points_ = true;                     // truth_.x: fixed points, else fitted to Q*
  Store q_target_;                               // per agent: theta_q, d rows
  std::vector<std::vector<double>> q_star_;      // [agents][cells]
  std::vector<double> best_return_;              // [agents]
  std::vector<std::unique_ptr<Law>> laws_;       // exact, counted
};

template <>
struct EnumNames<Sarsa::Error> {
  static constexpr std::string_view all[] = {"theta_fp", "theta_q", "q_star", "regret"};
};

template <>
struct EnumNames<Sarsa::Features> {
  static constexpr std::string_view all[] = {"random", "tabular"};
};

}  // namespace affpcl
