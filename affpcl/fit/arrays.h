// Fits and predictions of rows in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/data/table.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"

namespace affpcl {

// Columns of numbers and texts, as a file would have them. options.frame names the target, the
// agents and all the rest; paths are not read.
FitResult fit(DataTable table, FitOptions options);
Frame build_frame(DataTable table, const FrameOptions& options);

// Rows as columns of numbers, NaN where one is missing, and the agent of each row.
struct Arrays {
  std::vector<std::string> columns;    // their names
  std::vector<std::vector<double>> X;  // [columns][rows]
  std::vector<std::int32_t> agent_of;  // by row, into `agents`
  std::vector<std::string> agents = {};
  std::vector<double> row_weight = {}, trials = {};  // by row; empty: none
  // By row: empty, one list, or for a multinomial target one for each class.
  std::vector<std::vector<double>> offset = {};
  std::vector<std::int32_t> fold_of = {};  // by row, into `folds`; empty: dealt at random
  std::vector<std::string> folds = {};
  std::size_t rows() const { return agent_of.size(); }
};

// Of X, row after row: as many columns as X has numbers per group, called x0, x1, ...
Arrays arrays_of(std::span<const double> X, std::span<const std::string> groups);

// The target of each row: a number; or, where there are labels, the number of its label.
struct ArrayTarget {
  std::vector<double> values;
  std::vector<std::string> labels = {};
};

// options.frame names the columns that are not in X: target y, agent group, row_weight, trials,
// offset and fold unless it says otherwise.
FitResult fit(Arrays arrays, ArrayTarget target, FitOptions options);

// What rows may have beside X, y and their group; empty: nothing.
struct RowColumns {
  std::span<const double> row_weight = {}, trials = {}, offset = {};
};

// A model per group: a linear mixed model by default (FitOptions). X is row-major, with as many
// rows as y and groups.
FitResult fit(std::span<const double> X, std::span<const double> y,
              std::span<const std::string> groups, FitOptions options = {},
              const RowColumns& more = {});

// One prediction per row, each by its agent's model; an unseen agent by the centre's. A model with
// an offset needs the rows' own.
std::vector<double> predict(const Model& model, Arrays arrays);
std::vector<double> predict(const Model& model, std::span<const double> X,
                            std::span<const std::string> groups,
                            std::span<const double> offset = {});

// One row on its way to a prediction: its agent (null: unseen), its encoded numbers, its offsets, and
// of a model with a second factor its level.
struct EncodedRow {
  std::size_t row;
  const AgentModel* agent;
  const std::vector<double>& x;
  std::span<const double> offsets;
  int level = RowPredictor::kNewLevel;
};
// Calls use(rows, row) for every row; `level` is the coverage of its intervals. Columns of a table are found by name, those of arrays by place.
using UseRow = FunctionRef<void(const RowPredictor&, const EncodedRow&)>;
void each_row(const Model& model, Arrays arrays, UseRow use, double level = kConfidence);
void each_row(const Model& model, DataTable table, UseRow use, double level = kConfidence);

}  // namespace affpcl
