// Generalised linear models, one per agent: problems whose direction is not linear in x. Each of q
// outputs has its own d unknowns, and
//
//   phi ~ N(m_i, I), xi ~ N(0, I_q),    u^i = W^i phi + noise xi,    E y = mu(u^i)
//   G(s, x) = mu(X phi) phi',           b^i(s) = y phi'             (output by output)
//
// with mu the model's mean: g^i(x) = (mu(X phi) - y) phi' is the gradient of the negative
// log-likelihood.
//
//   logistic   y in {0, 1},      mu(u) = 1 / (1 + exp(-u))
//   softmax    one of C classes, mu_c(u) = exp(u_c) / (1 + sum exp(u)), q = C - 1 beside class 0
//   poisson    a count,          mu(u) = exp(u)
//
// The label y is drawn, or it is its mean itself. xi is part of a sample, but x has no weight for
// it: collaboration can average this noise, but not the noise of an agent's own drawn labels.
//
// The central objective is Phi(s) theta = (c'theta_o) phi, k = q (d + q + 1) weights, c = (1, phi,
// xi): a linear approximation of the mean label, which leaves AffPCL unbiased as any bhat^c does.
// Phi = link takes the model's own mu(phi'theta_o) phi instead: theta^c and x^c are one recursion,
// the correction is 0 and AffPCL is independent learning. The solutions come from Newton's method
// on exact expectations (link_moments.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/link_moments.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {

class Glm : public Problem, public LinearObjective, public KnownObjective {
 public:
  enum class Form { kChannels, kLink };
  struct Config {
    std::int64_t agents = 20;
    int dim = 5;
    int classes = 2;         // softmax: C
    double delta_env = 0.3;  // knob: m_i = delta_env spread v_i, v_i a random unit vector
    double delta_obj = 0.3;  // knob: a row of W^i is that of W_base + delta_obj u_i
    double spread = 4.0;     // as in the paper's synthetic system
    double length = 1.0;     // of a row of W_base
    double noise = 1.0;      // of u
    bool drawn = true;       // labels
    Form Phi = Form::kChannels;
    std::int64_t environments = 0;  // distinct environments, dealt out in turn; 0: one per agent
    bool first_central = true;      // the first environment has mean 0, the first agent W_base
  };
  Glm(Link link, const Config& config, std::uint64_t seed, std::uint32_t replicate);

  Shape shape() const override {
    return {.agents = config_.agents, .d = q_ * config_.dim, .k = q_ * per_output()};
  }
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  Facets facets() const override { return {.linear = this, .known = this, .densities = &laws_}; }
  void keep(std::int64_t first_block, std::int64_t last_block) override;

  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  // The mean of all agents' mean labels: n products a sample.
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;

  int outputs() const { return q_; }
  In mean(Lanes lanes) const { return laws_.mean(lanes); }     // m_i
  std::span<const double> weights(std::int64_t agent) const {  // W^i, row after row
    const auto width = static_cast<std::size_t>(q_ * config_.dim);
    return {weights_.data() + static_cast<std::size_t>(agent) * width, width};
  }

 private:
  int per_output() const { return config_.Phi == Form::kLink ? config_.dim : config_.dim + q_ + 1; }
  In phi(In s) const { return {s.row(0), config_.dim, s.width}; }
  In xi(In s) const { return {s.row(config_.dim), q_, s.width}; }
  const double* y(In s, int o) const { return s.row(config_.dim + q_ + o); }
  In output(In x, int o) const { return {x.row(o * config_.dim), config_.dim, x.width}; }
  Out output(Out x, int o) const { return {x.row(o * config_.dim), config_.dim, x.lanes}; }
  std::span<const double> m(std::int64_t agent) const;
  // c'theta_o, or mu(phi'theta)_o where Phi = link.
  void central_label(In s, In theta, int lanes, Out label) const;
  void solve_truth();

  Link link_;
  Config config_;
  int q_;
  std::vector<double> weights_;  // [agents][q][dim]
  NormalDensities laws_;
};

template <>
struct EnumNames<Glm::Form> {
  static constexpr std::string_view all[] = {"channels", "link"};
};

// The three of the catalogue.
struct Logistic final : Glm {
  Logistic(const Config& config, std::uint64_t seed, std::uint32_t replicate)
      : Glm(Link::kCategorical, config, seed, replicate) {}
  static ProblemKind kind();
};
ProblemKind softmax_kind();
ProblemKind poisson_kind();

}  // namespace affpcl
