// The TD solver: values of states, one set per agent, from a log of transitions by TD(0) in one
// pass (problem/td_log.h), beside the independent and the pooled baseline. The score is the squared
// temporal-difference error of rows before they are learnt from, the only error that a log shows.
// It includes the noise of rewards and transitions, so differences between models are small parts
// of it.
#pragma once

#include <memory>

#include "affpcl/problem/td_log.h"
#include "affpcl/stream/stream.h"

namespace affpcl {

class TdSolver final : public Solver {
 public:
  TdSolver(const TdLog::Config& log, const StreamOptions& options)
      : config_(log), options_(options) {}
  bool uses_threads() const override { return false; }
  bool looks_for_stop() const override { return true; }
  RowOrder row_order() const override { return RowOrder::kAsTheyCame; }
  Frame read(const FrameOptions& options, Team& team) override;  // the log; it needs no options
  Fitted solve(Frame& frame, const FitRun& run) override;

 private:
  TdLog::Config config_;
  StreamOptions options_;
  std::unique_ptr<TdLog> log_;  // once it is read
};

}  // namespace affpcl
