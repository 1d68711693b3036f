// One verb a file: parse, call the library, print. Each function adds its subcommand; the returned
// function runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace affpcl::cli {

enum Exit { kOk = 0, kFailed = 1, kBadInput = 2, kInterrupted = 130 };

using Action = std::function<int()>;

struct Verb {
  CLI::App* app;
  Action action;
};

Verb run_verb(CLI::App& app, const std::string& command_line);
Verb list_verb(CLI::App& app);

}  // namespace affpcl::cli
