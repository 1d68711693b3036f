// One verb a file: parse, call the library, print. Each function adds its subcommand; the returned
// action runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "affpcl/fit/frame.h"
#include "affpcl/study/study.h"

namespace affpcl::cli {

enum Exit { kOk = 0, kFailed = 1, kBadInput = 2, kInterrupted = 130 };

struct Verb {
  CLI::App* app;
  std::function<int()> action;
  bool many_processes = false;  // under mpirun all of them act, not the first alone
};

Verb run_verb(CLI::App& app, const std::string& command_line);
Verb reproduce_verb(CLI::App& app, const std::string& command_line);
Verb affinity_verb(CLI::App& app, const std::string& command_line);
Verb fit_verb(CLI::App& app, const std::string& command_line);
Verb predict_verb(CLI::App& app);
Verb inspect_verb(CLI::App& app);
Verb report_verb(CLI::App& app);
Verb list_verb(CLI::App& app);
Verb bench_verb(CLI::App& app);

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
void add_common(CLI::App& verb, CommonOptions& options, const std::string& out_doc);
// Checkpoints, and what processes share.
void add_long_work(CLI::App& verb, CommonOptions& options);

// What fit and affinity ask about the user's tables.
struct TableQuestions {
  FrameOptions frame = {.paths = {}, .target = "", .agent = ""};
  std::string missing = "error", task = "auto";
  FrameOptions options(std::uint64_t seed) const;
};
inline constexpr char kDataDoc[] =
    "one file with a column that names agents, or several files (a folder), one per agent: CSV, "
    ".npy, .npz, .svm, idx, or LEAF's .json";
void add_table(CLI::App& verb, TableQuestions& options);

// Only the first process has the result.
StudyResult run_with_progress(const Study& study, const CommonOptions& options,
                              const std::string& trace = "");

// --report of the verbs that write result folders: the page DIR/report.html.
void add_report(CLI::App& verb, bool& report);
void refuse_report_without(const std::string& out);   // before the work
std::string write_report(const std::string& folder);  // the page's path

}  // namespace affpcl::cli
