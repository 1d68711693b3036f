// Runs a study: every setting of the sweep, every replicate, all methods on the same samples; and
// makes of it means, intervals and ratios. The command line and the Python package both call this.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/method/method.h"
#include "affpcl/runtime/processes.h"
#include "affpcl/study/spec.h"

namespace affpcl {

struct Curve {
  std::int64_t agent = -1;  // -1: the average over all
  std::vector<double> steps;
  std::vector<Estimate> mse;
  std::vector<std::vector<double>> by_replicate = {};  // by step; of the average only
};

struct AgentResult {
  Estimate mse, vs_independent;
  std::vector<double> columns = {};  // what the method knows of the agent, by MethodResult::columns
};

struct ErrorResult {  // another measure of error that the problem has
  std::string name;
  Estimate mse, vs_independent;
};

// Agents whose importance correction has a mean that is not 0 (column drift_z), at a false-alarm
// rate below 1 % for all agents together.
struct Alarm {
  std::vector<std::int64_t> agents;
  double largest = 0;      // drift_z
  bool too_short = false;  // too few rounds and replicates for a test
};

struct MethodResult {
  std::string name, kind;
  int batch = 1;                 // samples of a step
  Estimate mse, vs_independent;  // the latter is all NaN where no method of kind independent ran
  double central_x = 0, central_theta = 0;  // NaN where the method has none
  std::vector<double> by_replicate;         // the error in each of SettingResult::numbers
  std::vector<AgentResult> agents;
  std::vector<Curve> curves;
  std::vector<ErrorResult> errors;
  std::vector<double> solution;  // [agents][unknowns], mean over replicates; if agents have names
  std::vector<std::string> columns;
  Alarm alarm;
  std::int64_t sent = 0;  // numbers that an agent adds to the sum of a round it takes part in
  // Per agent and round, on average over the rounds it takes part in and the others, in numbers of
  // 64 bits.
  double up = 0, down = 0;
  double present = 1;      // the share of its rounds that an agent takes part in
  Traffic published = {};  // the same as its authors send it; 0: no other way
  double seconds = 0;
};

struct SettingResult {
  std::vector<std::pair<std::string, Value>> at;
  std::int64_t replicates = 0;  // that were run
  // Of them, those in which no method diverged; where there is none, those in which no method that
  // still has results did.
  std::int64_t used = 0;
  std::vector<std::int64_t> numbers;  // of those used
  std::vector<double> distance;       // |x^i_* - x^c_*| by agent, mean over replicates; if known
  std::vector<std::pair<std::string, std::int64_t>> diverged;  // replicates, by method
  std::vector<std::string> agent_names, unknown_names;         // where they have any
  std::int64_t steps = 0;  // done; fewer than asked for where the run was interrupted early
  std::vector<MethodResult> methods;
};

struct StudyResult {
  std::vector<SettingResult> settings;
  bool complete = true;
  double seconds = 0;
  int threads = 1;                   // of each rank
  int ranks = 1;                     // rank 0 has the settings
  std::int64_t bytes_sent = 0;       // between ranks
  double communication_seconds = 0;  // of the rank that spent most
  double peak_bytes = 0;             // of memory, sum over ranks
};

struct StudyOptions {
  int threads = 0;                          // 0: as many as the machine has
  const std::atomic<bool>* stop = nullptr;  // turns true on Ctrl-C
  // The share of the work done, 0 to 1. Called from any thread, one at a time.
  std::function<void(double)> progress;
  std::string trace = {};  // a file for every iterate; needs one setting and a small run

  Processes* processes = nullptr;  // the ranks of the study; nullptr: this process alone
  enum class Split { kAuto, kAgents, kReplicates };
  Split split = Split::kAuto;  // what the ranks divide

  std::string checkpoint = {};  // a folder for checkpoints; empty: none
  std::int64_t every = 0;       // steps of a worker between two; 0: so many as take about a minute
  bool resume = false;          // go on from the newest, where there is one
  std::function<void(const std::string&)> note = {};  // gets a sentence for people about it
  std::function<void()> stopped =
      {};  // called where `stop` ended the work, before results are kept
};

StudyResult run_study(const Study& study, const StudyOptions& options = {});

}  // namespace affpcl
