// A model's coefficients as people read them: per unit of the columns as they came instead of
// standardised ones, with degrees of freedom and intervals of the centre.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "affpcl/table/model.h"

namespace affpcl {

// The centre, the random-effects covariances and the agents' models. An intercept is the prediction
// where all columns are 0; its standard error is NaN where the model's file does not say enough.
Model in_units(Model model);

// Standard deviations of the columns, by coefficient; 1 for the intercept and where nothing varies.
std::vector<double> column_sd(const Encoding& encoding);

// What a channel is of: the target, an outcome, or "target = class".
std::string channel_name(const Model& model, std::size_t channel);

// Standard deviations of the agents' coefficients; empty for a stream.
std::vector<double> spread_of(const ChannelModel& channel);

// Of a coefficient of the centre: NaN where it is not known, or the rows leave the coefficient open.
double standard_error(const ChannelModel& channel, std::size_t coefficient);

// Degrees of freedom of a coefficient of the centre, by containment: agents where it differs
// between them, else rows, less the coefficients. NaN where there is no standard error.
double freedom(const Model& model, const ChannelModel& channel, std::size_t coefficient);

// The confidence interval of a coefficient of the centre: half of its width.
double half_width(const Model& model, const ChannelModel& channel, std::size_t coefficient,
                  double level);

}  // namespace affpcl
