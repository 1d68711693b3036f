// A model's coefficients in units of the columns as they came, instead of standardised ones.
#pragma once

#include "affpcl/table/model.h"

namespace affpcl::cli {

// The centre, the random-effects covariances and the agents' models. An intercept is the prediction
// where all columns are 0; its standard error is NaN where the model's file does not say enough.
Model in_units(Model model);

}  // namespace affpcl::cli
