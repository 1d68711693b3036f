// The one interface of all solvers of a fit: read the rows, learn a model of every agent, choose
// and score them. fit/fit.cc does the rest, the same for all.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/model.h"
#include "affpcl/table/score.h"

namespace affpcl {

// What a solver runs on, and where it reports.
struct FitRun {
  Team& team;
  std::uint64_t seed = 1;
  bool score = true;  // false: personalised models only; a stream scores itself as it learns
  int repeats = 1;    // of the cross-validation
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress = {};

  bool stopped() const;             // on any of the processes
  void report(double share) const;  // of the work that is done
};

// What a solver learnt.
struct Fitted {
  Model model;                    // every agent with its chosen model
  std::vector<RowTally> tallies;  // by agent: losses on held-out rows
  ClassScores classes;            // of all held-out rows
  PredictionCounts predictions;   // likewise
  std::vector<std::string> notes;
  bool scored = false, complete = true;
};

// A solver is made for one fit and may keep state from call to call.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual bool uses_threads() const { return true; }  // of each process
  // Whether it looks for a stop itself, between two rows. Otherwise its team does, between agents.
  virtual bool looks_for_stop() const { return false; }
  virtual RowOrder row_order() const = 0;
  // The frame of the files that the options name.
  virtual Frame read(const FrameOptions& options, Team& team);
  // Several processes may share the agents; only rank 0 has the result. A solver may deal the
  // frame's rows into other folds.
  virtual Fitted solve(Frame& frame, const FitRun& run) = 0;
};

}  // namespace affpcl
