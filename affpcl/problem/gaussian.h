// The paper's synthetic system (apx:exp): mu^i = N(m_i, I), A(s) = (I + eps_A ss') A_base, b^i(s) =
// Phi(s) theta^i with Phi(s) = (I + eps_b ss') Phi_base. Everything the paper leaves open is a
// parameter; the truth has a closed form.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {

class Gaussian final : public Problem, public LinearObjective, public KnownObjective, public Means {
 public:
  struct Config {
    std::int64_t agents = 20;
    int dim = 5;
    double delta_env = 0.3;     // knob: m_i = delta_env spread v_i, v_i a random unit vector
    double delta_obj = 0.3;     // knob: theta^i = theta_base + delta_obj u_i
    double eps_A = 1.0;         // the paper's sigma_A
    double eps_b = 0.5;         // the paper's sigma_b
    double spread = 4.0;        // the paper's C_A
    double theta_length = 1.0;  // theta_base ~ N(0, I) scaled to this length; 0 leaves it as drawn
    double ridge = -1.0;        // A_base = R'R + ridge I, Phi_base = G'G + ridge I; negative: dim
    std::int64_t environments = 0;  // distinct environments, dealt out in turn; 0: one per agent
    bool first_central = true;      // the first environment has mean 0, the first agent theta_base
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  Gaussian(const Config& config, std::uint64_t seed, std::uint32_t replicate,
           const AgentShare& share = all_agents());

  Shape shape() const override;
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  Facets facets() const override {
    return {.linear = this, .known = this, .means = this, .densities = &laws_};
  }
  void keep(std::int64_t first_block, std::int64_t last_block) override;

  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void at_centre(const Problem& problem, const AtCentre& at, Scratch& scratch,
                 const CentralDirections& to) const override;
  std::vector<double> theta(std::int64_t agent) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  // sup|A(s)| is infinite: the mean-square bound max_i |E_i A'A|^(1/2).
  double G_A() const override;
  double G_Phi() const override;

  const Config& config() const { return config_; }
  In mean(Lanes lanes) const { return laws_.mean(lanes); }  // m_i

 private:
  // matrix x: in `space`, or in one column of scratch where all agents share x.
  In base(const std::vector<double>& matrix, In x, Scratch& scratch, Out space) const;
  double mean_square(const std::vector<double>& matrix, double eps) const;
  // The Phi_base theta^i of a block; adds what theta_mean_ is a sum of, where `sum` is not null.
  void make_weights(std::int64_t block, Out Phi_theta, double* sum) const;

  Config config_;
  Key system_key_;
  std::vector<double> A_base_, Phi_base_;  // dim x dim, row major
  std::vector<double> theta_base_;
  std::vector<double> theta_mean_;  // mean of theta^i
  NormalDensities laws_;
  MadeStore Phi_theta_;  // per agent: Phi_base theta^i
};

}  // namespace affpcl
