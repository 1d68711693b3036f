#include "affpcl/table/model.h"

#include <algorithm>

#include "affpcl/version.h"

namespace affpcl {

const char* to_text(Covariance covariance) {
  return covariance == Covariance::kScalar     ? "scalar"
         : covariance == Covariance::kDiagonal ? "diagonal"
                                               : "full";
}

const char* to_text(Kind kind) {
  return kind == Kind::kPersonalised ? "personalised" : kind == Kind::kAlone ? "alone" : "pooled";
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

const char* to_text(Solver solver) { return solver == Solver::kExact ? "exact" : "stream"; }

Model begin_model(const Frame& frame, const FitOptions& options, const std::string& method) {
  Model model;
  model.solver = method.empty() ? Solver::kExact : Solver::kStream;
  model.method = method;
  model.encoding = frame.encoding;
  model.version = kVersion;
  model.files = frame.files;
  model.rows = frame.all_rows;
  model.seed = options.frame.seed;
  return model;
}

std::unique_ptr<Team> fit_team(const FitOptions& options) {
  const bool shared = options.processes != nullptr && options.solver == Solver::kExact;
  return thread_team(threads_or_all(options.threads), shared ? *options.processes : this_process());
}

}  // namespace affpcl
