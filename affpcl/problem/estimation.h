// Statistical estimation (measurement, response, data distribution): each agent observes a response
// at measurement points s ~ mu^i = N(m_i, I) of its own sampling design, and wants means under it,
//
//   x^i_* = E_mu^i[psi(s) y^i(s)],    A(s) = I,    b^i(s) = psi(s) y^i(s),
//   y^i(s) = h(s)'theta^i + noise e,    h(s) = (1, s, (s_1^2 - 1)/sqrt 2, ...),    Phi(s) = psi h'
//
// mean: psi = 1, the mean response (d = 1). moments: psi = (1, s), the linear functionals E y and
// E s_a y (d = 1 + dim). The truth has a closed form, as have densities; designs and responses
// differ by one knob each. What e adds to an agent's response no other agent has seen: it cannot be
// pooled.
//
// theta^c is learnt along h (h'theta - y), the response itself.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {

class Estimation final : public Problem,
                         public LinearObjective,
                         public KnownObjective,
                         public Means {
 public:
  enum class Functionals { kMean, kMoments };
  struct Config {
    std::int64_t agents = 20;
    int dim = 3;             // numbers of a measurement point
    double delta_env = 0.3;  // knob: designs m_i = delta_env spread v_i, v_i a random unit vector
    double delta_obj = 0.3;  // knob: theta^i = theta_base + delta_obj u_i, |theta_base| = 1
    double spread = 2.0;
    double noise = 0.0;  // sd of a response's own error e
    Functionals functionals = Functionals::kMean;
    std::int64_t environments = 0;  // distinct designs, dealt out in turn; 0: one per agent
    bool first_central = true;      // the first design has mean 0, the first agent theta_base
  };
  static const Params<Config>& params();
  static ProblemKind kind();
  Estimation(const Config& config, std::uint64_t seed, std::uint32_t replicate,
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
  std::vector<double> theta(std::int64_t agent) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;  // without e
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  void mean_coe(Lanes lanes, In theta, Out g) const override;
  double G_A() const override { return 1; }
  // sup|h h'| is infinite: the mean-square bound max_i |E (hh')^2|^(1/2).
  double G_Phi() const override;

  In design(Lanes lanes) const { return laws_.mean(lanes); }  // m_i

 private:
  int d() const { return config_.functionals == Functionals::kMean ? 1 : 1 + config_.dim; }
  int k() const { return 1 + 2 * config_.dim; }
  // The theta^i of a block; adds what theta_mean_ is a sum of, where `sum` is not null.
  void make_weights(std::int64_t block, Out weights, double* sum) const;
  void respond(Lanes lanes, In s, In theta, Out b) const;  // h(s)'theta, to the first row
  static void lift(In s, Out b);                           // psi(s) times the first row
  // The first `to.rows` rows of E_mu^i[h h'] theta.
  void second_moments(Lanes lanes, In theta, Out to) const;

  Config config_;
  Key system_key_;
  std::vector<double> theta_base_, theta_mean_;
  NormalDensities laws_;
  MadeStore theta_;  // per agent
};

template <>
struct EnumNames<Estimation::Functionals> {
  static constexpr std::string_view all[] = {"mean", "moments"};
};

}  // namespace affpcl
