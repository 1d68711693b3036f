// Least squares whose labels weigh outcome channels that all agents see: features phi ~ N(m_i, I),
//
//   A(s) = phi phi',    b^i(s) = phi y,    y = c(s)' theta^i + label_noise e,
//   c_j(s) = b_j'phi + curve (q_j'phi)^2 + channel_noise xi_j,
//
// with b_j, q_j random unit vectors of the system and e, xi_j standard normals of the same law for
// all agents, so that density ratios are over phi alone. With curve = 0 the environment does not
// matter to the solution, x^i_* = sum_j theta^i_j b_j; a curve makes x^i_* depend on m_i.
//
// Phi is a choice, so that the good and the degenerate cases stand side by side:
//   channels  Phi = phi c', theta^c learnt along c (c'theta - y): the natural form
//   identity  Phi = I, along theta - b: square, as the paper has it, and blind to the sample
//   features  Phi = A, along phi (phi'theta - y): theta^c and x^c are one recursion, the
//             correction is 0 and AffPCL is independent learning
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {

class LeastSquares final : public Problem,
                           public LinearObjective,
                           public KnownObjective,
                           public Means {
 public:
  enum class Form { kChannels, kIdentity, kFeatures };
  struct Config {
    std::int64_t agents = 20;
    int dim = 5;
    int channels = 3;
    double delta_env = 0.3;      // knob: m_i = delta_env spread v_i, v_i a random unit vector
    double delta_obj = 0.3;      // knob: theta^i = theta_base + delta_obj u_i, |theta_base| = 1
    double spread = 4.0;         // as in the paper's synthetic system
    double curve = 0.3;          // of the channels
    double channel_noise = 0.5;  // shared by all who weigh the channel: can be pooled
    double label_noise = 0.0;    // an agent's own: cannot
    Form Phi = Form::kChannels;
    std::int64_t environments = 0;  // distinct environments, dealt out in turn; 0: one per agent
    bool first_central = true;      // the first environment has mean 0, the first agent theta_base
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  LeastSquares(const Config& config, std::uint64_t seed, std::uint32_t replicate,
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
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  // theta^i where Phi = channels (with label noise b^i = Phi theta^i holds in the mean), else
  // empty.
  std::vector<double> theta(std::int64_t agent) const override;
  // Without label noise, whatever Phi is.
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  void mean_coe(Lanes lanes, In theta, Out g) const override;
  // Suprema over s are infinite: the mean-square bounds max_i |E_i M'M|^(1/2) of M = A, and of
  // M = cc', I or A.
  double G_A() const override;
  double G_Phi() const override;

  const Config& config() const { return config_; }
  In mean(Lanes lanes) const { return laws_.mean(lanes); }      // m_i
  std::vector<double> weights(std::int64_t agent) const;        // theta^i
  const std::vector<double>& lines() const { return line_; }    // b_j
  const std::vector<double>& curves() const { return curve_; }  // q_j

 private:
  In phi(In s) const { return {s.row(0), config_.dim, s.width}; }
  In c(In s) const { return {s.row(config_.dim), config_.channels, s.width}; }
  const double* y(In s) const { return s.row(config_.dim + config_.channels); }
  In own_weights(Lanes lanes) const {
    return theta_.block(lanes.first / kLanes)[Field{0, config_.channels}];
  }
  // The theta^i of a block; adds what theta_mean_ is a sum of, where `sum` is not null.
  void make_weights(std::int64_t block, Out weights, double* sum) const;
  // E phi c' theta, for any weights of the channels.
  void mean_channels(Lanes lanes, In theta, Out bhat) const;

  Config config_;
  Key system_key_;
  std::vector<double> line_, curve_;  // [channels][dim]: b_j, q_j
  std::vector<double> theta_base_;
  std::vector<double> theta_mean_;  // mean of theta^i
  NormalDensities laws_;
  MadeStore theta_, mean_b_;  // per agent: theta^i, bbar^i
};

template <>
struct EnumNames<LeastSquares::Form> {
  static constexpr std::string_view all[] = {"channels", "identity", "features"};
};

}  // namespace affpcl
