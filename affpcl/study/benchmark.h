// The benchmark: methods on many problems at rising heterogeneity, each against independent
// learning on the same samples, with default parameters and with tuned ones. studies/benchmark
// holds the plan and the tuned parameters, both embedded in the library.
//
// A cell is a problem at a level. In each cell every method runs on the same few systems, each with
// several replicates of its samples; a method that was registered by the caller is one more row.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/math/statistics.h"

namespace affpcl {

struct BenchmarkOptions {
  std::vector<std::string> methods = {};   // kinds; empty: all of the catalogue
  std::vector<std::string> problems = {};  // names of the plan; empty: all that need no data
  std::string data = {};                   // a folder of recorded data: its problems run too
  bool tuned = true;                       // also with tuned parameters, where tuned.json has any
  bool full = false;                       // four times the systems
  double participation = 0;                // share of agents in a round; 0: what the plan says
  std::uint64_t seed = 1;                  // of the first system
  int threads = 0;                         // 0: as many as the machine has
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress = {};  // the share of the work done
};

// One method in one cell. Ratios are errors over those of independent learning.
struct BenchmarkRow {
  std::string problem = {}, method = {};
  bool tuned = false;
  double level = 0, participation = 1;
  std::string parameters = {};  // that differ from the defaults, as in a spec
  Estimate ratio = {};          // geometric mean over systems, with its t interval
  std::vector<double> by_system = {};
  double worst_agent = 0;  // largest ratio of an agent in any system
  double harmed = 0;       // share of agents whose 90 % interval lies above 1
  std::int64_t diverged = 0, replicates = 0;
  std::int64_t sent = 0;     // numbers an agent sends in a round
  double seconds = 0;        // of the method's own work, all replicates
  std::string refused = {};  // why there is no result
};

// One method over all cells.
struct BenchmarkSummary {
  std::string method = {};
  bool tuned = false;
  Estimate rank = {};  // mean rank among the methods of a cell, with its t interval over cells
  int cells = 0, gains = 0,
      harms = 0;  // gains, harms: cells with the whole interval below, above 1
  std::string best_cell = {}, worst_cell = {};  // "td at 0.3"
  double best = 0, worst = 0, worst_agent = 0, harmed = 0;
  std::int64_t diverged = 0;
  double seconds = 0;
};

struct BenchmarkResult {
  std::vector<BenchmarkRow> rows;
  std::vector<BenchmarkSummary> summaries;  // best mean rank first; default parameters, then tuned
  bool complete = true;
  double seconds = 0;
};

BenchmarkResult run_benchmark(const BenchmarkOptions& options);

// Searches the plan's grid of parameters on systems of its own, 1000 and on: for every problem and
// method the choice with the least mean log ratio over all levels. The text of tuned.json.
std::string tune_benchmark(const BenchmarkOptions& options, const std::string& command);

// The embedded files.
std::string_view benchmark_plan();
std::string_view benchmark_tuned();

}  // namespace affpcl
