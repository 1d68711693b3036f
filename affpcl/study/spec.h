// An experiment as a value: what spec.toml says, checked. Unknown keys, wrong types and impossible
// values are refused in one sentence before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/schedule.h"
#include "affpcl/runtime/compression.h"
#include "affpcl/runtime/run_options.h"
#include "affpcl/runtime/sums.h"

namespace affpcl {

class Problem;

// step_size = 0.01, or {schedule = "log-constant", per = "agent"}.
struct StepRule {
  Schedule::Kind kind = Schedule::Kind::kConstant;
  double value = 0.01;  // constant
  // Relative schedules: alpha^i = alpha_t / lambda^i; false: the smallest lambda for all.
  bool per_agent = true;
  double t0 = -1;  // diminishing; negative: the smallest that obeys the corollaries' bounds
};

struct MethodSpec {
  std::string name, kind;
  Values values;
  int period = 1, batch = 1, last = 1;  // last: samples of a period's last step
  std::int64_t samples = 0;             // of a period, where the spec says so
  std::optional<StepRule> step_size;    // replaces the run's for this method
  Compression compress = {};
  Sums sum = Sums::kFloat;
};

struct Spec {
  std::string problem_kind;
  Values problem;
  bool redraw_system = true;  // each replicate a new system; otherwise one system, new samples
  std::int64_t replicates = 10;
  std::int64_t first = 0;                                 // number of the first replicate
  RunOptions run = {.tail = 0, .curve_agents = {0, -1}};  // without its replicate
  std::string schedule;  // file: which agents take part in which round
  StepRule step_size;
  std::optional<StepRule> step_size_central, step_size_objective, step_size_ratio;
  std::vector<MethodSpec> methods;
};

struct Setting {
  std::vector<std::pair<std::string, Value>> at;  // where in the sweep this is
  Spec spec;
};

struct Study {
  std::string name;   // of the file or figure
  std::string title;  // one line for people, if the spec has one
  std::string toml;   // the spec with all overrides, as text: enough to run it again
  std::string json;   // the same as JSON
  std::vector<Setting> settings;
};

// Parses the text of a spec; `overrides` are "run.replicates=2". `name` is the spec's path, or a
// word: it starts every complaint, and files that the spec names are relative to its folder. Files
// in overrides are relative to the working directory.
Study read_study(const std::string& text, const std::string& name,
                 std::span<const std::string> overrides = {});
Study read_study_file(const std::string& path, std::span<const std::string> overrides = {});

// The keys of [run] and those every [[method]] has, for `affpcl list` and the reference.
std::span<const Param> run_params();
std::span<const Param> method_params();
// The keys of a method's `compress`.
std::span<const Param> compression_params();

// The step sizes a rule means for a problem. BadInput where the rule needs what the problem does
// not have.
StepSizes step_sizes(const Spec& spec, const MethodSpec& method, const Problem& problem);

}  // namespace affpcl
