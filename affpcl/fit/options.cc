#include "affpcl/fit/options.h"

namespace affpcl {
namespace {

constexpr double kMostThreads = 4096, kMostRepeats = 1000;
constexpr double kLeastLevel = 0.01, kMostLevel = 0.9999;

const Params<FrameOptions>& frame_params() {
  static const Params<FrameOptions> kParams = {
      {"target", &FrameOptions::target, "the column to predict"},
      {"agent", &FrameOptions::agent,
       "the column of the rows' agents; by default agent, else site"},
      {"weights", &FrameOptions::weights,
       "a CSV file with the agents' weights: a column with the agent's name and one per channel",
       kPath},
      {"task", &FrameOptions::task, "auto: a string target is a class"},
      {"family", &FrameOptions::family,
       "the target's distribution: gaussian, t, binomial, multinomial, poisson, negative-binomial, "
       "gamma or ordinal; auto: binomial for two classes and for 0/1, else gaussian"},
      {"row_weight", &FrameOptions::row_weight,
       "a column of weights of the rows: a row of weight 2 counts as two rows"},
      {"trials", &FrameOptions::trials,
       "binomial: a column of numbers of trials; the target counts successes"},
      {"offset", &FrameOptions::offset,
       "a column that is added to the linear predictor; multinomial: one for each class, in their "
       "order"},
      {"offset_scale", &FrameOptions::offset_scale,
       "the offset's scale: that of the linear predictor (link), or means and probabilities "
       "(response)"},
      {"within", &FrameOptions::within,
       "the column of a second factor within whose levels agents lie, such as the schools of "
       "pupils: "
       "its levels get random intercepts"},
      {"crossed", &FrameOptions::crossed,
       "the same for a factor whose levels agents share, such as the students of lecturers"},
      {"seed", &FrameOptions::seed, "seed of the split into folds", at_least(0)},
      {"time", &FrameOptions::time,
       "the column, of numbers or dates, that orders an agent's rows: later rows are then scored "
       "by "
       "models of earlier ones; stream solver: by default the order in the table"},
      {"folds", &FrameOptions::folds,
       "exact solver: a column that names each row's fold of the cross-validation, 2 to 50 of "
       "them; by "
       "default 5, at random within agents"},
  };
  return kParams;
}

}  // namespace

const Params<FitOptions>& FitOptions::params() {
  static const Params<FitOptions> kParams = [] {
    Params<FitOptions> params = {
        {"solver", &FitOptions::solver,
         "exact: all rows at once, a mixed model; stream: one pass, each row predicted, then "
         "learnt"},
        {"score", &FitOptions::score,
         "score the models on held-out rows and stack them; without, all models are personalised"},
        {"repeats", &FitOptions::repeats,
         "exact solver: times the rows are dealt into folds; losses are means over them; 0: 5 up "
         "to "
         "20,000 rows, else 1 (also for more than two classes with more than 60 coefficients)",
         between(0, kMostRepeats)},
        {"sum", &FitOptions::sum, kSumsDoc},
        {"level", &FitOptions::level,
         "coverage of the intervals of gains, such as .95: an agent gained or lost where its "
         "interval "
         "excludes 0",
         between(kLeastLevel, kMostLevel)},
        {"privacy", &FitOptions::privacy,
         "epsilon=4,delta=1e-5: differential privacy of every row, by noise on one release of the "
         "agents' moments; gaussian "
         "family, exact solver, no scores"},
        {"bounds", &FitOptions::bounds,
         "`privacy`: what the target and every column are known to lie in, "
         "y=0:100,x=-3:3,kind=a|b, or a file of such "
         "entries, one a line; values outside are clipped"},
        {"threads", &FitOptions::threads,
         "threads to use, 0 for all cores; the numbers do not depend on it",
         between(0, kMostThreads)},
    };
    params.add(&FitOptions::frame, frame_params());
    params.add<TableChoices>(
        TableChoices::params(), [](const FitOptions& o) { return TableChoices::of(o.frame); },
        [](const TableChoices& choices, FitOptions& o) { choices.put(o.frame); });
    params.add(&FitOptions::mixed, MixedOptions::params());
    params.add(&FitOptions::stream, StreamOptions::params());
    return params;
  }();
  return kParams;
}

}  // namespace affpcl
