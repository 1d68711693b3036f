#include "affpcl/fit/options.h"

namespace affpcl {
namespace {

constexpr double kMostThreads = 4096;

const Params<FrameOptions>& frame_params() {
  static const Params<FrameOptions> kParams = {
      {"target", &FrameOptions::target, "the column to predict"},
      {"agent", &FrameOptions::agent,
       "the column of the rows' agents; by default agent, else site"},
      {"weights", &FrameOptions::weights,
       "a CSV file with the agents' weights: a column with the agent's name and one per channel",
       kPath},
      {"missing", &FrameOptions::missing,
       "missing values: an error, filled with the column's mean, or their rows dropped"},
      {"task", &FrameOptions::task, "auto: a string target is a class"},
      {"seed", &FrameOptions::seed, "seed of the split into folds", at_least(0)},
      {"time", &FrameOptions::time,
       "stream solver: the column that orders an agent's rows; by default their order in the "
       "table"},
  };
  return kParams;
}

}  // namespace

const Params<FitOptions>& FitOptions::params() {
  static const Params<FitOptions> kParams = [] {
    Params<FitOptions> params = {
        {"solver", &FitOptions::solver,
         "exact: all rows at once, a mixed model; stream: one pass, each row predicted, then learnt"},
        {"score", &FitOptions::score, "score the models on held-out rows"},
        {"threads", &FitOptions::threads,
         "threads to use, 0 for all cores; the numbers do not depend on it",
         between(0, kMostThreads)},
    };
    params.add(&FitOptions::frame, frame_params());
    params.add(&FitOptions::stream, StreamOptions::params());
    return params;
  }();
  return kParams;
}

}  // namespace affpcl
