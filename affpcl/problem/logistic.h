// Logistic regression, one per agent: a problem whose direction is not linear in x.
//
//   phi ~ N(m_i, I), xi ~ N(0, 1),    p^i(s) = sigma(phi'w^i + noise xi)
//   G(s, x) = phi sigma(phi'x),       b^i(s) = phi y
//
// with sigma(u) = 1 / (1 + exp(-u)), so that g^i(x) = phi (sigma(phi'x) - y) is the gradient of the
// negative log-likelihood. The label y is p^i(s) itself, or 0 or 1 with that probability. xi is
// part of a sample, but x has no weight for it: collaboration can average this noise, but not the
// noise of an agent's own 0/1 labels. The central objective of k = d + 2 weights is Phi(s) theta =
// phi c'theta with c = (1, phi, xi): a linear approximation of the mean label, which leaves AffPCL
// unbiased as any bhat^c does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {

class Logistic final : public Problem, public LinearObjective, public KnownObjective {
 public:
  enum class Labels { kProbability, kBinary };
  struct Config {
    std::int64_t agents = 20;
    int dim = 5;
    double delta_env = 0.3;  // knob: m_i = delta_env spread v_i, v_i a random unit vector
    double delta_obj = 0.3;  // knob: w^i = w_base + delta_obj u_i
    double spread = 4.0;     // as in the paper's synthetic system
    double length = 1.0;     // |w_base|
    double noise = 1.0;      // of the log-odds
    Labels labels = Labels::kBinary;
    std::int64_t environments = 0;  // distinct environments, dealt out in turn; 0: one per agent
    bool first_central = true;      // the first environment has mean 0, the first agent w_base
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  Logistic(const Config& config, std::uint64_t seed, std::uint32_t replicate);

  Shape shape() const override {
    return {.agents = config_.agents, .d = config_.dim, .k = config_.dim + 2};
  }
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  Facets facets() const override {
    return {.linear = this, .known = this, .densities = &laws_};
  }
  void keep(std::int64_t first_block, std::int64_t last_block) override;

  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  // The mean of all p^j(s): n products a sample.
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;

  In mean(Lanes lanes) const { return laws_.mean(lanes); }  // m_i
  std::span<const double> weights(std::int64_t agent) const {  // w^i
    return {weights_.data() + agent * config_.dim, static_cast<std::size_t>(config_.dim)};
  }

 private:
  In phi(In s) const { return {s.row(0), config_.dim, s.width}; }
  const double* xi(In s) const { return s.row(config_.dim); }
  const double* y(In s) const { return s.row(config_.dim + 1); }
  std::span<const double> m(std::int64_t agent) const;
  void mean_label(In s, In theta, int lanes, double* label) const;  // c'theta
  void solve_truth();
  // Newton's method for the mean of E G(s, x) over the agents [first, last) being target.
  std::vector<double> solve_agents(std::int64_t first, std::int64_t last,
                                   std::span<const double> target) const;

  Config config_;
  std::vector<double> weights_;  // [agents][dim]: w^j
  NormalDensities laws_;
};

template <>
struct EnumNames<Logistic::Labels> {
  static constexpr std::string_view all[] = {"probability", "binary"};
};

}  // namespace affpcl
