// One verb a file: parse, call the library, print. Each function adds its subcommand; the returned
// action runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "affpcl/study/study.h"

namespace affpcl::cli {

enum Exit { kOk = 0, kFailed = 1, kBadInput = 2, kInterrupted = 130 };

struct Verb {
  CLI::App* app;
  std::function<int()> action;
};

Verb run_verb(CLI::App& app, const std::string& command_line);
Verb reproduce_verb(CLI::App& app, const std::string& command_line);
Verb affinity_verb(CLI::App& app, const std::string& command_line);
Verb fit_verb(CLI::App& app, const std::string& command_line);
Verb predict_verb(CLI::App& app);
Verb inspect_verb(CLI::App& app);
Verb list_verb(CLI::App& app);
Verb bench_verb(CLI::App& app);

struct CommonOptions {
  std::string out;
  std::vector<std::string> set;
  std::int64_t seed = -1;
  int threads = 0;
  bool force = false, quiet = false, json = false;
  std::vector<std::string> overrides() const;  // --set and --seed
};
void add_common(CLI::App& verb, CommonOptions& options, const std::string& out_doc);
StudyResult run_with_progress(const Study& study, const CommonOptions& options,
                              const std::string& trace = "");

}  // namespace affpcl::cli
