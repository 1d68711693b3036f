// Fits and predictions of rows in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"

namespace affpcl {

// Rows as columns of numbers, NaN where one is missing, and the agent of each row.
struct Arrays {
  std::vector<std::string> columns;     // their names
  std::vector<std::vector<double>> X;   // [columns][rows]
  std::vector<std::int32_t> agent_of;   // by row, into `agents`
  std::vector<std::string> agents = {};
  std::size_t rows() const { return agent_of.size(); }
};

// Of X, row after row: as many columns as X has numbers per group, called x0, x1, ...
Arrays arrays_of(std::span<const double> X, std::span<const std::string> groups);

// The target of each row: a number; or, where there are labels, the number of its label.
struct ArrayTarget {
  std::vector<double> values;
  std::vector<std::string> labels = {};
};

// options.frame names the target and the agents' column of the model; paths are not read.
FitResult fit(Arrays arrays, ArrayTarget target, FitOptions options);

// A model per group: a linear mixed model by default (FitOptions). X is row-major, with as many
// rows as y and groups.
FitResult fit(std::span<const double> X, std::span<const double> y,
              std::span<const std::string> groups, FitOptions options = {});

// One prediction per row, each by its agent's model; an unseen agent by the centre's.
std::vector<double> predict(const Model& model, const Arrays& arrays);
std::vector<double> predict(const Model& model, std::span<const double> X,
                            std::span<const std::string> groups);

// Calls use(rows, r, agent, x) for every row r: its agent (null: unseen) and its encoded numbers.
void each_row(const Model& model, const Arrays& arrays,
              FunctionRef<void(const RowPredictor&, std::size_t, const AgentModel*,
                               const std::vector<double>&)>
                  use);

}  // namespace affpcl
