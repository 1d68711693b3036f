// AffPCL (Algorithm 1). Each agent i takes, with x^c_t and theta^c_t from before this round's
// central step,
//
//   x^i_{t+1} = x^i_t - alpha^i ( g^i(x^i_t) + rg^i - g^{c->i} )            eq:ker-het-pcl-alg
//
//     g^i(x)    = G(s^i, x) - b^i(s^i)               its own direction; the paper: G = A(s) x
//     g^{c->j}  = G(s^j, x^c) - bhat^c(s^j)          the central direction, at j's sample
//     rg^i      = (1/n) sum_j rho^i(s^j) g^{c->j}    the same, importance-corrected for i
//
//   x^c_{t+1}     = x^c_t - alpha^c (1/n) sum_j g^j(x^c_t)            CDL, eq:fl
//   theta^c_{t+1} = theta^c_t - alpha^b (1/n) sum_j coe_j(theta^c_t)  COE, eq:obj-alg
//
// rho^i = mu^i / mu^0, with mu^0 the mixture of all mu^j; coe_j is the direction of central
// objective estimation (problem/facets.h). rg^i - g^{c->i} has mean 0 and cancels noise of g^i:
// g^{c->i} is taken at the agent's own sample. docs/explain/affpcl.md derives it.
//
// The parts: central_objective.h (bhat^c and COE), central_path.h (the centre's steps),
// correction.h (rg^i and g^{c->i}, with rho of density/ratio.h), guard.h, combination.h,
// drift_monitor.h. With a period of K steps, x^c and theta^c stay fixed for the correction, rg^i is
// the mean over all nK samples, and local step k uses g^{c->i} at its own sample k.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/method/central_objective.h"
#include "affpcl/method/central_path.h"
#include "affpcl/method/combination.h"
#include "affpcl/method/correction.h"
#include "affpcl/method/drift_monitor.h"
#include "affpcl/method/guard.h"
#include "affpcl/method/method.h"

namespace affpcl {

class AffPcl final : public Method {
 public:
  using Objective = CentralObjective::Form;
  using Correction = ImportanceCorrection::Side;
  // CDL-1 (eq:alg-cdl-1: own b^j), CDL-2 (eq:alg-cdl-2: bhat^c), x^0 = mean of x^i.
  enum class Central { kOwn, kEstimated, kAverage };
  // The mean that corrects holds g^{c->j} (eq:ker-het-pcl-alg), or G(s^j, x^c) - b^j(s^j) with each
  // agent's own b^j (eq:het-pcl-alg, for agents of one environment: rho = 1).
  enum class Aggregate { kEstimated, kOwn };
  struct Config {
    Objective objective = Objective::kAuto;
    Central central = Central::kOwn;
    Aggregate aggregate = Aggregate::kEstimated;
    Correction correction = Correction::kServer;
    Guard::Mode guard = Guard::Mode::kNone;
  };
  AffPcl(const Config& config, std::unique_ptr<Ratio> ratio);
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
    combination_.start(problem, agents);
  }
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override {
    return combination_.on() ? combination_.solution(agents) : agents[x_];
  }
  In central_x(Centre centre) const override { return centre[xc_]; }
  In central_theta(Centre centre) const override {
    return objective_.theta().rows > 0 ? centre[objective_.theta()] : In{};
  }
  std::vector<Tally> tallies() const override;
  void report(Agents agents, Out rows) const override;
  std::vector<std::string> columns() const override;
  void conclude(std::span<const double> tallies, std::span<double> columns) const override;
  std::vector<std::string_view> uncompressed() const override;
  Traffic published_traffic() const override { return published_; }

 private:
  Traffic traffic_of_algorithm1(const Setup& setup) const;
  void refuse_average(const Setup& setup) const;
  void move_centre(CentralPath::Walk& path, const CentralDirections& g) const;
  void contribute_average(const Block& block, In own_mean, Message message) const;

  Config config_;
  CentralObjective objective_;
  CentralPath path_;
  ImportanceCorrection correction_;
  Field x_;   // per agent: x^i
  Field xc_;  // centre
  DriftMonitor drift_;
  Guard guard_;
  Combination combination_;
  Traffic published_;
};

template <>
struct EnumNames<AffPcl::Central> {
  static constexpr std::string_view all[] = {"own", "estimated", "average"};
};

template <>
struct EnumNames<AffPcl::Aggregate> {
  static constexpr std::string_view all[] = {"estimated", "own"};
};

}  // namespace affpcl
