// Predictions: each row by its agent's model, an agent never seen by the centre's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/fit/fit.h"

namespace affpcl {

struct Predictions {
  // Rows of CSV as they came, of other formats their agent, with prediction, prediction_lo,
  // prediction_hi (of classes: prediction, probability).
  std::string csv;
  std::int64_t rows = 0;
  std::int64_t unseen_rows = 0, filled = 0, blank = 0, new_texts = 0;
  std::vector<std::string> unseen;  // agents the model does not know
  // Against the target, where the data has it.
  std::int64_t scored = 0;
  double loss = 0, r2 = 0, accuracy = 0;  // loss: mean squared error, or log loss
};

// `beside`: files with more columns of the same rows.
Predictions predict(const Model& model, const std::vector<std::string>& files,
                    const std::vector<std::string>& beside = {});

}  // namespace affpcl
