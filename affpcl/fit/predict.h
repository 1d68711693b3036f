// Predictions: each row by its agent's model, an agent never seen by the centre's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/statistics.h"
#include "affpcl/table/model.h"

namespace affpcl {

class Likelihood;

// What a model says of one row: a 1 and its standardised numbers, in the order of the coefficients.
class RowPredictor {
 public:
  explicit RowPredictor(const Model& model, double level = kConfidence);
  const AgentModel* agent(const std::string& name) const;  // null: never seen
  // x becomes a 1 and the row's standardised numbers. The row has a value per source: a number, or
  // which of the levels; NaN where it is missing, kNewText for a text that no fitted row had, which
  // counts as the mean of its columns. What is missing is treated as the fit said:
  //   Missing::kMean, Missing::kIndicator   as the mean of its columns
  //   Missing::kDrop    the row has no prediction: all are NaN
  //   Missing::kError   refuse(source) is called, and throws
  // Returns how many values are missing.
  static constexpr double kNewText = -1;
  std::int64_t encode(std::span<const double> row, std::vector<double>& x,
                      FunctionRef<void(const Source&)> refuse) const;
  double least() const;  // no target is below it
  // Half of the interval is NaN where the model does not know it.
  struct Interval {
    double y, half;
  };
  // Offsets of the row as their columns have them; none: 0. level: of a second factor, as level()
  // finds it; one that no fitted row had has the effect 0, and widens the interval.
  using Offsets = std::span<const double>;
  static constexpr int kNewLevel = -1;
  int level(const std::string& name) const;
  double number(const AgentModel* agent, const std::vector<double>& x, Offsets offsets = {},
                int level = kNewLevel) const;
  Interval interval(const AgentModel* agent, const std::vector<double>& x, Offsets offsets = {},
                    int level = kNewLevel) const;
  std::vector<double> probabilities(const AgentModel* agent, const std::vector<double>& x,
                                    Offsets offsets = {}) const;
  const std::vector<double>& weights(const AgentModel* agent) const;  // of outcomes
  // Of a generalised model's number: deviance, or log loss a trial.
  double loss(double y, double trials, double mean) const;

 private:
  const LinearModel& channel(const AgentModel* agent, std::size_t c) const;
  std::vector<double> channels(const AgentModel* agent, const std::vector<double>& x) const;
  double level_variance(const AgentModel* agent, const std::vector<double>& x, int level) const;
  // The mean, or the probabilities of classes, with the linear predictors integrated out.
  std::vector<double> mean(const AgentModel* agent, const std::vector<double>& x,
                           Offsets offsets) const;
  const Model& model_;
  std::shared_ptr<const Likelihood> likelihood_;
  double limit_ = 0;  // standard deviations to each side of an interval
  std::unordered_map<std::string, const AgentModel*> agents_;
  std::unordered_map<std::string, int> levels_;
  std::vector<LinearModel> unseen_;  // by channel: of an agent the model does not know
  std::vector<double> mean_weights_;
};

struct Predictions {
  // Rows of CSV as they came, of other formats their agent, with prediction, prediction_lo,
  // prediction_hi (of classes: prediction, probability, and of a generalised model
  // probability_<class> for each).
  std::string csv;
  std::int64_t rows = 0;
  std::int64_t unseen_rows = 0, filled = 0, blank = 0, new_texts = 0;
  std::string first_new_text = {};  // where the first of new_texts stands
  std::vector<std::string> unseen;  // agents the model does not know
  std::int64_t unseen_level_rows = 0;
  std::vector<std::string> unseen_levels;  // of a second factor
  // Against the target, where the data has it.
  std::int64_t scored = 0;
  double loss = 0, r2 = 0, accuracy = 0;  // loss: mean squared error, or log loss
};

// `beside`: files with more columns of the same rows. `level`: coverage of the intervals.
Predictions predict(const Model& model, const std::vector<std::string>& files,
                    const std::vector<std::string>& beside = {}, double level = kConfidence);

}  // namespace affpcl
