#include "affpcl/table/model.h"

#include <algorithm>

#include "affpcl/table/frame.h"
#include "affpcl/version.h"

namespace affpcl {

const char* to_text(Covariance covariance) {
  return covariance == Covariance::kScalar     ? "scalar"
         : covariance == Covariance::kDiagonal ? "diagonal"
                                               : "full";
}

const char* to_text(Kind kind) {
  return kind == Kind::kPersonalised  ? "personalised"
         : kind == Kind::kIndependent ? "alone"  // the word of the files
                                      : "pooled";
}

const char* to_text(Outcome outcome) {
  return outcome == Outcome::kGained ? "gained" : outcome == Outcome::kLost ? "lost" : "even";
}

double weighed_variance(const std::vector<double>& weights, const std::vector<double>& deviations,
                        const std::vector<double>& correlations) {
  double sum = 0;
  const std::size_t k = weights.size();
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < k; ++b)
      sum += weights[a] * weights[b] * correlations[a * k + b] * deviations[a] * deviations[b];
  return std::max(0.0, sum);
}

const char* to_text(SolverKind solver) { return name_of(solver).data(); }

Model begin_model(const Frame& frame, std::uint64_t seed, const std::string& method) {
  Model model;
  model.solver = method.empty() ? SolverKind::kExact : SolverKind::kStream;
  model.method = method;
  model.encoding = frame.encoding;
  model.version = kVersion;
  model.files = frame.files;
  model.rows = model.centre_rows = frame.all_rows;
  model.centre_agents = frame.agents.size();
  model.seed = seed;
  return model;
}

std::vector<AgentModel> begin_agents(const Frame& frame) {
  std::vector<AgentModel> agents(frame.agents.size());
  for (std::size_t i = 0; i < agents.size(); ++i) {
    agents[i].name = frame.agents[i];
    agents[i].rows = frame.agent_rows(i);
    if (!frame.theta.empty())
      agents[i].weights.assign(frame.theta.data() + i * frame.channels,
                               frame.theta.data() + (i + 1) * frame.channels);
  }
  return agents;
}

}  // namespace affpcl
