// A fitted model and its scores: what all solvers return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/statistics.h"
#include "affpcl/table/encode.h"
#include "affpcl/table/held_out.h"

namespace affpcl {

struct Frame;
struct PrivacyTerms;

// The models that compete for an agent: with random effects, from its own rows only, and one for
// all agents.
enum class Kind { kPersonalised, kIndependent, kPooled };
const char* to_text(Kind kind);
template <class T>
using ByKind = std::array<T, 3>;  // in the order of Kind

inline ByKind<double> vertex(Kind kind) {  // all weight on one model
  ByKind<double> weights = {};
  weights[static_cast<std::size_t>(kind)] = 1;
  return weights;
}

// The form of the random-effects covariance D.
enum class Covariance { kScalar, kDiagonal, kFull };
const char* to_text(Covariance covariance);

enum class SolverKind { kExact, kStream };
const char* to_text(SolverKind solver);
template <>
struct EnumNames<SolverKind> {
  static constexpr std::array<std::string_view, 2> all = {"exact", "stream"};
};

// scale * ChannelModel::typical_cov + sum_k weights[k] v_k v_k' (table/typical_covariance.h).
struct NearCovariance {
  double scale = 0;
  std::vector<double> weights = {}, directions = {};  // [k], [k][d]
};

// Coefficients of standardised columns, in units of the target.
struct LinearModel {
  std::vector<double> x, se;  // [d], and standard errors, which a stream does not have
  std::vector<double> cov;    // [d][d]; empty where all agents' together would be too many numbers
  // Noise variance. Stream solver: mean square of recent errors, NaN for classes.
  double s2 = 0;
  NearCovariance near_cov = {};  // instead of cov, where that is empty
};

struct AgentModel {
  std::string name;
  std::size_t rows = 0;
  // The chosen model is a combination: weights of its parts, and the part with the largest one.
  ByKind<double> stacked = {1, 0, 0};
  Kind kind = Kind::kPersonalised;
  double widened = 1;                            // the largest of its Posterior::widened
  std::vector<LinearModel> channels;             // the chosen model, by channel
  std::vector<std::vector<double>> independent;  // the independent baseline, by channel
  std::vector<double> weights;                   // of the outcomes, where it weighs them
  // The level that the agent lies within (-1: none), and the covariance of its coefficients with
  // that level's effect.
  int level = -1;
  std::vector<double> level_cov;
};

struct CovarianceTried {
  std::string name;
  double log_evidence = 0, bic = 0;
  double weight = 0;  // in the average over forms
};

// What the posterior of an agent that did not take part needs beside its own rows: at one form of D,
// in units of the target.
struct CentreForm {
  Covariance covariance = Covariance::kScalar;
  double weight = 1;           // in the average over forms
  std::vector<double> x, cov;  // x_c, and its covariance where D is known
  std::vector<double> D;
  std::vector<double> D_cov;  // of the estimated diagonal of D; 0 where D is full
  double s2 = 0;
};

struct ChannelModel {          // what all agents share
  std::vector<double> pooled;  // the pooled baseline
  Covariance covariance = Covariance::kScalar;
  std::vector<CovarianceTried> tried;
  LinearModel centre;               // its cov is that of an unseen agent: D plus the centre's own
  std::vector<double> D;            // [d][d], random-effects covariance; empty for a stream
  std::vector<double> typical_cov;  // [d][d], of agents' coefficients; empty where agents have cov
  // An agent never seen has the centre's x, moved by this share towards the pooled model's.
  double pooled_weight = 0;
  double correlation = 0;  // of an agent's successive rows' errors, AR(1); 0: independent
  bool converged = true;
  // Of a linear model with one factor, with one noise variance and none outlying: the log-likelihood
  // of the form with the smallest BIC, and how many numbers were estimated.
  double log_likelihood = 0;
  std::size_t parameters = 0;
  // Coefficients of the centre that the rows leave open (mixed/undetermined.h): their standard errors
  // say nothing but the prior.
  std::vector<std::size_t> undetermined = {};
  bool singular =
      false;  // a random effect does not vary; of a linear model with one factor: not said
  // Of a linear model with one factor.
  std::vector<CentreForm> forms = {};
  std::vector<double> usual = {},
                      outlying = {};  // the noise law (mixed/agent_law.h); empty: equal noise
};

// The random intercepts of a second factor, in units of the target.
struct LevelModel {
  double variance = 0;
  std::vector<std::string> names;
  std::vector<double> effect, se;
};

struct Model {
  SolverKind solver = SolverKind::kExact;
  std::string method;  // of the stream solver
  Encoding encoding;
  // One per class or outcome. A stream has one for all outcomes, the weighted sum.
  std::vector<ChannelModel> channels;
  // Exact solver: the variances maximise the restricted likelihood, and log-likelihoods are restricted.
  bool restricted = false;
  // Of a generalised model: further parameters of its family (mixed/family.h). Also with a second
  // factor: the log-likelihood with random effects integrated out, and how many numbers were estimated.
  std::vector<double> psi;
  double log_likelihood = 0;
  std::size_t parameters = 0;
  // Of a generalised model: the coefficients of all linear predictors, one after another.
  std::vector<CentreForm> forms = {};
  bool variational = false;  // and how an agent's random effects are found
  // What the centre was learnt from. Of a model of agents that joined later they are others than its
  // own, and the pooled models are the centre's of an unseen agent.
  std::size_t centre_agents = 0, centre_rows = 0;
  std::vector<double> within = {};  // [d][d], covariance of the columns within agents
  bool joined = false;
  LevelModel levels;
  std::vector<double> noise;  // [channels][channels]: correlations, where outcomes are weighed
  std::vector<AgentModel> agents;
  std::shared_ptr<const PrivacyTerms> privacy = {};  // of the rows, where they have it
  std::string command, version;
  std::vector<std::string> files;
  std::size_t rows = 0;
  std::uint64_t seed = 1;

  const char* estimate() const { return restricted ? "reml" : "ml"; }
};

// Mean losses on held-out rows: squared errors, log loss of classes, squared TD errors.
struct Losses {
  double chosen = 0, personalised = 0, independent = 0, pooled = 0;
};

// Rows whose predicted probability lies in one of ten intervals.
struct CalibrationBin {
  double share = 0, predicted = 0, observed = 0;
};

// Over all held-out rows of a target with classes; weighted, where rows are.
struct ClassScores {
  Losses auc, calibration_error;
  std::vector<CalibrationBin> calibration;  // of the chosen models
  // [truth][most probable], of the chosen models: weights of rows, over all repeats of the
  // cross-validation. Empty where there are more than 40 classes.
  std::vector<double> confusion;
};

// Held-out rows of a target that is a number, by what was predicted and what was found: counts over
// all repeats of the cross-validation, of the chosen models.
struct PredictionCounts {
  double lo = 0, hi = 0;          // of both axes; what lies outside is in the outermost cells
  std::size_t cells = 0;          // a side; 0: nothing was counted
  std::vector<double> grid;       // [predicted][found]
  double from = 0, width = 0;     // of the bins of residuals, found minus predicted
  std::vector<double> residuals;  // the first and the last bin also hold what lies outside
};

enum class Outcome { kGained, kEven, kLost };
const char* to_text(Outcome verdict);

struct AgentScore {
  Losses loss, accuracy, brier;  // of classes only: accuracy, and the Brier score
  std::size_t scored_rows = 0;   // a repeat
  double variance = 0;           // of the agent's own target; R^2 = 1 - loss / variance
  // Expected loss of the independent model minus that of the chosen one on new rows, both from all
  // rows: posterior mean and interval, and the probability that it is above 0.
  Estimate gain;
  double probability = 0;
  Outcome verdict = Outcome::kEven;
  std::string why;  // in words, where there is something to say
};

// Of test rows whose agents no row that was learnt from has, by the model of unseen agents.
struct UnseenScore {
  std::size_t rows = 0, agents = 0;
  double loss = 0, accuracy = 0, brier = 0;  // the last two: classes only
};

struct FitResult {
  Model model;
  std::vector<std::string> notes;
  Losses loss, accuracy, brier, r2;  // over all rows; r2: regression only
  ClassScores classes;
  PredictionCounts predictions;
  UnseenScore unseen;
  std::vector<AgentScore> agents;
  Estimate gain;               // loss independent - loss chosen, over all rows; agents are clusters
  double level = kConfidence;  // coverage of the intervals of gains
  double expect_gain = 0;      // number of agents: the sum of their probabilities
  int gained = 0, even = 0, lost = 0;
  int repeats = 1;  // of the cross-validation
  HeldOut held_out;
  bool scored = false, complete = true;  // not complete: interrupted
  double seconds = 0;
  int threads = 1;
  int ranks = 1;                     // processes; rank 0 has the result
  std::int64_t bytes_sent = 0;       // by all processes
  double communication_seconds = 0;  // the largest of all processes
};

// A model of the frame's rows, still without coefficients; a stream has a method.
Model begin_model(const Frame& frame, std::uint64_t seed, const std::string& method = {});
// The agents' names, rows and weights.
std::vector<AgentModel> begin_agents(const Frame& frame);

// The variance of a weighted sum of outcomes, from their deviations and correlations.
double weighed_variance(const std::vector<double>& weights, const std::vector<double>& deviations,
                        const std::vector<double>& correlations);

// Class probabilities from the channels' predictions: kept away from 0 and 1, and summing to 1.
std::vector<double> class_probabilities(const std::vector<double>& channels, std::size_t classes);

}  // namespace affpcl
