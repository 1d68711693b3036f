// What a fit says in one sentence. Computed here alone, so that the terminal, summary.json and the
// page agree.
#pragma once

#include <string>

#include "affpcl/table/model.h"

namespace affpcl {

// "mean squared error", "log loss" or "squared TD error".
const char* measure_name(const Encoding& encoding);

// The rows on which a solver's models are scored: "held-out rows".
const char* scored_rows(SolverKind solver);
// The same, and how they were held out where the user said so: "held-out rows (4 later blocks by
// 'day')".
std::string scored_rows(const FitResult& result);
// How they were held out, for summary.json.
std::string how_held_out(const FitResult& result);

std::string headline(const FitResult& result);

// What gains, chances and verdicts are.
std::string verdict_legend(const Model& model, double level);

// "0.98 [0.95, 1.02]", or the mean alone where there is no interval.
std::string with_interval(const Estimate& estimate);

}  // namespace affpcl
