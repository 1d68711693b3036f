// A finite system: states 0..S-1, arbitrary A(s), Phi(s), mu^i and theta^i or b^i(s). The
// laboratory: every expectation is a finite sum, so whatever the theory says can be checked
// exactly. Generated at chosen heterogeneity, or read from JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/finite_densities.h"

namespace affpcl {

// The system itself, row major, as the JSON file has it.
struct FiniteSystem {
  std::int64_t agents = 0;
  int states = 0, d = 0, k = 0, p = 0;  // k, p = 0: no Phi, no psi
  std::vector<double> A;                // [states][d][d]
  std::vector<double> Phi;              // [states][d][k]
  std::vector<double> mu;               // [agents][states]
  std::vector<double> theta;            // [agents][k], or
  std::vector<double> b;                // [agents][states][d]
  std::vector<double> psi;              // [states][p]
  std::vector<double> x0;               // [agents][d]; empty: zeros
  std::vector<double> xc0, thetac0;     // empty: zeros
  std::vector<int> order;               // [agents][steps] a fixed order of states; empty: drawn
  std::int64_t steps = 0;
};

// Reads system.json. Every complaint names the file and the key.
FiniteSystem read_finite_system(const std::string& path);

class Tabular final : public Problem,
                      public LinearObjective,
                      public KnownObjective,
                      public ObjectiveTable,
                      public FiniteMeans,
                      public RatioFeatures,
                      public Pairs,
                      public Recorded {
 public:
  // free_ride (sec:asa): every agent but the first has states of its own, so all are as far apart
  // as can be, and the first sits at the centre: mu^1 = mu^0, theta^1 = theta^c_*.
  // exchange: agents in pairs, which shift mass between pairs of states, one this way and one that
  // way, so that mu^0 is mu_base and rho^i - 1 has as few entries as `sparsity` says (apx:dre).
  // two_point (apx:lower): the first agent has mu(s) = (1 + 2 delta_env (-1)^(s+m)) / states, the
  // replicate's number being m, and the others are such that mu^0 is uniform. It offers the
  // features psi = (1, (-1)^s).
  enum class Family { kMixture, kExchange, kFreeRide, kTwoPoint };
  // law: A = I, Phi(s) = e_s, theta_base = 1. Then x^i_* is mu^i (times theta^i), so the error of x
  // is that of an estimate of the environment itself.
  enum class System { kRandom, kLaw };
  struct Config {
    Family family = Family::kMixture;
    System system = System::kRandom;
    std::int64_t agents = 10;
    int dim = 3;             // law: the number of states instead
    int states = 8;          // free_ride: of each agent; two_point: even
    double delta_env = 0.3;  // mu^i = (1 - delta_env) mu_base + delta_env q^i; exchange: the share
                             // of the rarer state that moves
    double delta_obj = 0.3;  // theta^i = theta_base + delta_obj u_i
    double noise_A = 0.5;    // A(s) = I + noise_A N(s), |N(s)| = 1; below 1 every A(s) is monotone
    double angle = 0;  // degrees A(s) turns, one way or the other: nu is about 1/cos (apx:noise)
    // Phi(s) = (I + noise_Phi N(s)) / (1 + noise_Phi), so that |Phi(s)| <= 1
    double noise_Phi = 0.5;
    double sparsity = 1.0;      // share of the states on which mu^i may differ from mu_base
    bool first_central = true;  // the first agent has mu_base and theta_base
  };
  // The paper's Phi theta - b, or Phi'(Phi theta - b); auto: residual if square.
  enum class Coe { kAuto, kResidual, kGradient };

  static const Params<Config>& params();
  static ProblemKind kind();
  Tabular(FiniteSystem system, Coe coe);
  static FiniteSystem generate(const Config& config, std::uint64_t seed, std::uint32_t replicate);

  Shape shape() const override;
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  void start(Lanes lanes, Out x) const override;
  CentralStart central_start() const override { return {sys_.xc0, sys_.thetac0}; }
  Facets facets() const override;

  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  std::vector<double> theta(std::int64_t agent) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  int cells() const override { return sys_.states; }
  int width() const override { return sys_.d; }
  void cell(Lanes lanes, In s, Out index) const override { (void)lanes, copy(s, index); }
  void psi(Lanes lanes, In s, Out features) const override;
  void draw_pair(const Draw& draw, Lanes lanes, Out own, Out mixed) const override;
  // A fixed order of states ends.
  std::int64_t most_samples() const override { return sys_.steps; }
  bool present(std::int64_t, std::int64_t) const override { return true; }
  std::int64_t count_present(std::int64_t) const override { return sys_.agents; }

  double G_A() const override;
  double G_Phi() const override;

  int outcomes() const override { return sys_.states; }
  double probability(std::int64_t agent, int outcome) const override {
    return laws_.mu(agent, outcome);
  }
  void outcome(Lanes, int number, Out s) const override { fill(s, number); }

  const FiniteSystem& system() const { return sys_; }
  double mu0(int state) const { return laws_.mu0(state); }
  double rho(std::int64_t agent, int state) const { return laws_.rho(agent, state); }

 private:
  const Problem& self() const override { return *this; }
  // One agent, one state: out[:, lane] = matrix(state) in[:, lane].
  void times(const std::vector<double>& matrices, int rows, int cols, int state, In in, int lane,
             Out out) const;
  const double* own_b(std::int64_t agent, int state) const;

  FiniteSystem sys_;
  bool gradient_ = false;
  FiniteDensities laws_;
  std::vector<double> b_;   // [agents][states][d]
  std::vector<double> b0_;  // [states][d], mean over agents
};

template <>
struct EnumNames<Tabular::Family> {
  static constexpr std::string_view all[] = {"mixture", "exchange", "free_ride", "two_point"};
};

template <>
struct EnumNames<Tabular::System> {
  static constexpr std::string_view all[] = {"random", "law"};
};

template <>
struct EnumNames<Tabular::Coe> {
  static constexpr std::string_view all[] = {"auto", "residual", "gradient"};
};

}  // namespace affpcl
