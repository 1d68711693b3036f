// A small two-layer network for each agent: directions that are neither linear nor monotone.
//
//   phi ~ N(m_i, I),    y = f(phi; x^i_*) + noise e,    f(phi; x) = sum_h a_h tanh(v_h'phi)
//   G(s, x) = (f(phi; x) - y) df/dx,                    b^i(s) = 0
//
// with x = (v_1, ..., v_H, a), H (d + 1) unknowns: the gradient of half the squared error. The
// label multiplies df/dx, which depends on x, so it is part of the sample and not of b. Agents
// therefore differ by environments alone: in phi, and in the law of y given phi. Its densities are
// not known; use ratio = "none", which is biased where agents differ, or a learnt one.
//
// Networks have many parameters with the same output, so the error of x is its excess risk E
// (f(phi; x) - f(phi; x^i_*))^2, a mean over fixed draws of phi. Everything starts at one random
// point.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/problem/catalogue.h"

namespace affpcl {

class Network final : public Problem, public KnownObjective, public Scores {
 public:
  struct Config {
    std::int64_t agents = 20;
    int dim = 3;
    int hidden = 4;          // H
    double delta_env = 0.1;  // knob: m_i = delta_env v_i, v_i a random unit vector
    double delta_obj = 0.1;  // knob: x^i_* at this distance from a common network
    double noise = 0.3;      // of the labels
    bool first_central = true;
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  Network(const Config& config, std::uint64_t seed, std::uint32_t replicate,
          const AgentShare& share = all_agents());

  Shape shape() const override { return {.agents = config_.agents, .d = unknowns()}; }
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes, In, Out b) const override { fill(b, 0); }
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  void start(Lanes, Out x) const override { copy({start_.data(), unknowns(), 1}, x); }
  CentralStart central_start() const override { return {start_, {}}; }
  Facets facets() const override {
    return {.known = this, .form = ObjectiveForm::kKnown, .scores = this};
  }
  void keep(std::int64_t first_block, std::int64_t last_block) override;
  void known(Lanes, In, Scratch&, Out b0) const override { fill(b0, 0); }
  void error(Lanes lanes, In x, Scratch& scratch, Out one_row) const override;

 private:
  int unknowns() const { return config_.hidden * (config_.dim + 1); }
  template <class Of>
  void put(std::int64_t block, Out rows, Of of) const;  // of(agent) to the agent's lane
  // f of every lane, and tanh(v_h'phi) in H rows, or in none where they are not needed.
  void forward(Lanes lanes, In phi, In x, Out tanhs, double* f) const;

  Config config_;
  std::vector<double> start_, points_;  // points_: [draws][dim], about 0
  MadeStore means_;                     // m_i
};

}  // namespace affpcl
