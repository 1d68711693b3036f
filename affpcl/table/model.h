// A fitted model, its scores, and the options of a fit: what all solvers take and return.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/statistics.h"
#include "affpcl/problem/td_log.h"
#include "affpcl/table/frame.h"

namespace affpcl {

enum class Kind { kPersonalised, kAlone, kPooled };
const char* to_text(Kind kind);

// The form of the random-effects covariance D.
enum class Covariance { kScalar, kDiagonal, kFull };
const char* to_text(Covariance covariance);

enum class Solver { kExact, kStream };
const char* to_text(Solver solver);

// Coefficients of standardised columns, in units of the target.
struct LinearModel {
  std::vector<double> x, se;  // [d], and standard errors, which a stream does not have
  std::vector<double> cov;    // [d][d]; empty where all agents' together would be too many numbers
  double s2 = 0;  // of the noise; of a stream: of recent errors, NaN where these are of classes
};

struct AgentModel {
  std::string name;
  std::size_t rows = 0;
  Kind kind = Kind::kPersonalised;         // which one it was given
  double widened = 1;                      // the largest of its Posterior::widened
  std::vector<LinearModel> channels;       // by channel
  std::vector<std::vector<double>> alone;  // by channel: the twin learnt from its own rows only
  std::vector<double> weights;             // of the outcomes, where it weighs them
};

struct CovarianceTried {
  std::string name;
  double log_evidence = 0, bic = 0;
};

struct ChannelModel {          // what all agents share
  std::vector<double> pooled;  // the twin that is one model for all
  Covariance covariance = Covariance::kScalar;
  std::vector<CovarianceTried> tried;
  LinearModel centre;     // cov holds that of an agent never seen: D and the centre's own
  std::vector<double> D;  // [d][d]; empty for a stream
  bool converged = true;
};

struct Model {
  Solver solver = Solver::kExact;
  std::string method;  // of a stream
  Encoding encoding;
  // One a class or outcome. A stream has one for all outcomes together: it learns what agents want.
  std::vector<ChannelModel> channels;
  std::vector<double> noise;  // [channels][channels]: correlations, where outcomes are weighed
  std::vector<AgentModel> agents;
  std::string command, version;
  std::vector<std::string> files;
  std::size_t rows = 0;
  std::uint64_t seed = 1;
};

// Mean losses on rows not learnt from: squared errors, log loss of classes, squared TD errors.
struct Losses {
  double given = 0, personalised = 0, alone = 0, pooled = 0;
};

enum class Outcome { kGained, kEven, kLost };
const char* to_text(Outcome verdict);

struct AgentScore {
  Losses loss, accuracy;  // accuracy of classifications only
  double variance = 0;    // of the agent's own target; R^2 = 1 - loss / variance
  Estimate gain;          // loss alone - loss given, with its 90 % interval
  double p = 1;           // one-sided: that there is no gain
  Outcome verdict = Outcome::kEven;
  std::string why;  // in words, where there is something to say
};

struct FitResult {
  Model model;
  std::vector<std::string> notes;
  Losses loss, accuracy, r2;  // over all rows; r2 of a regression
  std::vector<AgentScore> agents;
  Estimate gain;  // loss alone - loss given, over all rows; agents are clusters
  int gained = 0, even = 0, lost = 0;
  bool scored = false, complete = true;  // it may have been interrupted before
  double seconds = 0;
  int threads = 1;
  int ranks = 1;                     // processes; the result is in the first one
  std::int64_t bytes_sent = 0;       // by all processes to others
  double communication_seconds = 0;  // of the process that spent most
};

struct FitOptions {
  FrameOptions frame;
  std::optional<TdLog::Config> td = {};  // values of states from a log of transitions instead
  int threads = 0;                       // 0: as many as the machine has
  Processes* processes = nullptr;        // that share the agents; nullptr: this one
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress = {};
  bool score = true;  // false: the model alone; a stream scores itself as it goes
  Solver solver = Solver::kExact;
  // Of a stream, with values of its parameters; empty: guarded AffPCL where outcomes are weighed,
  // else residual.
  std::string method = {};
  std::map<std::string, Value> method_values = {};
};

// A model that says what it is of and where it is from, without coefficients. A method: of a
// stream.
Model begin_model(const Frame& frame, const FitOptions& options, const std::string& method = {});

// The threads of a fit, and the processes that share it.
std::unique_ptr<Team> fit_team(const FitOptions& options);

// A weighted sum of outcomes: its variance from their deviations and correlations.
double weighed_variance(const std::vector<double>& weights, const std::vector<double>& deviations,
                        const std::vector<double>& correlations);

// Of classes, by the channels' predictions: kept away from 0 and 1, and summing to 1.
std::vector<double> class_probabilities(const std::vector<double>& channels, std::size_t classes);

}  // namespace affpcl
