#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/mixed/mixed.h"
#include "affpcl/stream/stream.h"
#include "affpcl/stream/td.h"

namespace affpcl {
namespace {

// Rows that are scored later lie in random folds; a stream takes them as they came.
RowOrder row_order(const FitOptions& options) {
  return options.solver == Solver::kStream ? RowOrder::kAsTheyCame : RowOrder::kInFolds;
}

void refuse_weighing(const FrameOptions& o) {
  if (o.channels.size() == 1)
    throw BadInput({.option = "channels",
                    .what = fmt::format("names one column, '{}'", o.channels[0]),
                    .remedy = "weighing needs two or more"});
  if (o.channels.empty() == !o.weights.empty())
    throw BadInput(o.weights.empty()
                       ? "`channels` needs `weights`, a file with each agent's weights of them"
                       : "`weights` needs `channels`, the columns that are weighed");
}

FitResult solve(const Frame& frame, const FitOptions& options) {
  return options.solver == Solver::kStream ? fit_stream(frame, options) : fit_mixed(frame, options);
}

}  // namespace

FitResult fit(const FitOptions& options) {
  refuse_weighing(options.frame);
  if (options.td) return fit_td(options);
  return solve(build_frame(options.frame, *fit_team(options), row_order(options)), options);
}

FitResult fit(Tables tables, Encoding encoding, const FitOptions& options) {
  refuse_weighing(options.frame);
  return solve(build_frame(std::move(tables), std::move(encoding), options.frame,
                           *fit_team(options), row_order(options)),
               options);
}

}  // namespace affpcl
