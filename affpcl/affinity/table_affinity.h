// Before training, from a pilot share of every agent's rows: how alike the agents of a table are,
// and what each should gain. The paper's scores (def:r-aff, def:k-aff) where x^i, the coefficients
// of standardised columns, take theta^i's place. docs/explain/affinity.md derives them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/mixed/decomposition.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/model.h"

namespace affpcl {

inline constexpr std::size_t kFewestPilot = 10;     // rows of an agent, or all it has
inline constexpr std::size_t kMostCompared = 1000;  // agents in the matrix of distances

struct PilotOptions {
  double share = 0.2;  // of every agent's rows
  std::uint64_t seed = 1;
  int threads = 0;                          // 0: as many as the machine has
  const std::atomic<bool>* stop = nullptr;  // set: Interrupted is thrown soon
  // A centre that was learnt without these agents, and whose columns the frame has: what each should
  // gain from it (join_pilot.h). Agents are not compared with each other.
  std::shared_ptr<const Model> centre = {};
};

enum class Prospect { kGain, kEven, kLoss };
const char* to_text(Prospect prospect);
Prospect prospect_of(const Estimate& loss);  // of a ratio of losses

// The middle of draws, and what holds 90 % of them.
Estimate between(double value, std::vector<double> draws);

struct AgentPilot {
  std::size_t rows = 0, used = 0;  // all rows, and those of the pilot
  Estimate environment;            // TV(mu^i, mu^0), a lower bound; interval from the rows' scatter
  Estimate delta_cen;              // max{TV(mu^i, mu^0), |bbar^i - bbar^0| / (2 G_b)}; the same
  Estimate lambda;                 // smallest eigenvalue of E z z'; jackknife over groups of rows
  // Expected errors on new rows once all rows are used, personalised over alone: beyond the noise,
  // and with it. Intervals from the posterior of its coefficients, D and s^2 bootstrapped.
  Estimate excess, loss;
  Estimate
      gain;  // expected loss on new rows, alone minus personalised, in the target's units squared
  Prospect prospect = Prospect::kEven;
  double widened = 1;  // Posterior::widened
};

struct PilotResult {
  Encoding encoding;
  std::vector<std::string> files, names, notes;
  std::size_t rows = 0, used = 0;
  std::vector<Covariance> covariance;  // by channel
  Estimate delta_env;                  // max_ij TV(mu^i, mu^j), a lower bound
  Estimate delta_obj;                  // max_ij |x^i - x^j| / (2 G_b); interval from the same
  Estimate noise_share;                // s^2 over the variance of the target; chi-square interval
  std::vector<AgentPilot> agents;
  int gain = 0, even = 0, loss = 0;
  bool compares() const {
    return agents.size() > 1 || joined();
  }  // there is something to gain from
  bool joined() const { return centre_agents > 0; }
  std::size_t centre_agents = 0, centre_rows = 0;  // of a centre; 0: none
  // distance[i][j] of the coefficients in units of what can be told apart: the root mean square
  // over coefficients of their difference over its standard error. Empty with too many agents.
  std::vector<double> distance;
  std::vector<std::size_t> order;  // neighbours look alike
  int threads = 1;
  double seconds = 0;
};

// The pilot's rows of every agent, in random order.
std::vector<std::vector<std::size_t>> pilot_rows(const Frame& frame, const PilotOptions& options);

PilotResult pilot(const Frame& frame, const PilotOptions& options);

}  // namespace affpcl
