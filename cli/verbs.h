// The verbs, one a file: each declares its options; its action calls the library and prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/study/study.h"
#include "affpcl/table/frame.h"
#include "cli/options.h"

namespace affpcl::cli {

enum Exit { kOk = 0, kFailed = 1, kBadInput = 2, kInterrupted = 130 };

Verb run_verb(const std::string& command_line);
Verb reproduce_verb(const std::string& command_line);
Verb affinity_verb(const std::string& command_line);
Verb fit_verb(const std::string& command_line);
Verb federate_verb();
Verb predict_verb();
Verb inspect_verb();
Verb report_verb();
Verb list_verb();
Verb bench_verb();

struct CommonOptions {
  std::string out;
  std::vector<std::string> set;
  std::int64_t seed = -1;
  int threads = 0;
  bool force = false, quiet = false, json = false, report = false;
  std::string checkpoint, split = "auto";
  std::int64_t every = 0;
  bool resume = false, mpi = false;
  std::vector<std::string> overrides() const;  // --set and --seed
};
void add_common(Verb& verb, CommonOptions& options, const std::string& out_doc);
// Checkpoints, and what processes share.
void add_long_work(Verb& verb, CommonOptions& options);

// What fit and affinity ask about the user's tables.
struct TableQuestions {
  FrameOptions frame = {.paths = {}, .target = "", .agent = ""};
  std::map<std::string, Value> choices = {};  // of TableChoices
  std::string task = "auto";
  FrameOptions options(std::uint64_t seed) const;
};
inline constexpr char kDataDoc[] =
    "one file with a column that names agents, or several files (a folder), one per agent: CSV, "
    ".npy, .npz, .svm, idx, LEAF's .json, each packed or not, Parquet or Arrow; - is standard "
    "input";
void add_table(Verb& verb, TableQuestions& options);

// --centre of fit and affinity.
void add_centre(Verb& verb, std::string& centre);

// With --resume: whether `out` holds the whole result of this study, which is said. A result that was
// interrupted may be replaced.
bool finished_already(const Study& study, CommonOptions& o, const std::string& out);

// Only the first process has the result.
StudyResult run_with_progress(const Study& study, const CommonOptions& options,
                              const std::string& trace = "");

// --level of the verbs that show intervals.
void add_level(Verb& verb, double& level);

// --report of the verbs that write result folders: the page DIR/report.html.
void add_report(Verb& verb, bool& report);
void refuse_report_without(const std::string& out);   // before the work
std::string write_report(const std::string& folder);  // the page's path

}  // namespace affpcl::cli
