// The options of a fit: those of the table, those of the run, and each solver's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "affpcl/base/params.h"
#include "affpcl/mixed/options.h"
#include "affpcl/problem/td_log.h"
#include "affpcl/runtime/processes.h"
#include "affpcl/runtime/sums.h"
#include "affpcl/stream/options.h"
#include "affpcl/table/encode.h"
#include "affpcl/table/model.h"

namespace affpcl {

struct FitOptions {
  FrameOptions frame = {.paths = {}, .target = {}, .agent = {}, .family = "auto"};
  int threads = 0;                 // 0: as many as the machine has
  Processes* processes = nullptr;  // that share the agents; nullptr: this one
  Sums sum = Sums::kFloat;         // how sums over agents are added
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress = {};
  // False: personalised models only, without cross-validation; a stream scores itself as it learns.
  bool score = true;
  // Of the cross-validation; 0: kRepeats up to kManyRows rows, and of a multinomial model up to
  // kManyCoefficients, else 1.
  int repeats = 0;
  static constexpr int kRepeats = 5;
  static constexpr std::size_t kManyRows = 20000, kManyCoefficients = 60;

  // Differential privacy of the rows (table/privacy.h), as a person writes it; empty: none. The one release
  // is kept in the file `release` for the job `job`, where these are named.
  std::string privacy = {}, bounds = {};
  std::string release = {}, job = {};

  double level = kConfidence;  // coverage of the intervals of gains
  SolverKind solver = SolverKind::kExact;
  MixedOptions mixed = {};
  StreamOptions stream = {};
  // A centre that was learnt without these agents: each computes its own model from it and its own
  // rows, and columns are the centre's.
  std::shared_ptr<const Model> centre = {};
  std::optional<TdLog::Config> td = {};  // values of states from a log of transitions instead

  // Those that the command line and Python offer; lists of columns are not among them.
  static const Params<FitOptions>& params();
};

}  // namespace affpcl
