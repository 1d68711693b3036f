// affpcl: personalised collaborative learning from the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"
#include "affpcl/math/kernels.h"
#include "affpcl/version.h"
#include "cli/processes.h"
#include "cli/verbs.h"

namespace {

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool plain =
        !arg.empty() && arg.find_first_of(" \t\"'$\\*?[]{}()<>|&;#`~!") == std::string::npos;
    std::string quoted = "'";
    for (char c : arg) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    line += (i == 0 ? "" : " ") + (plain ? arg : quoted + "'");
  }
  return line;
}

// AFFPCL_INSTRUCTION_SET=AVX2 gives the bits of a machine that has no more than that.
void use_set_asked_for() {
  const char* name = std::getenv("AFFPCL_INSTRUCTION_SET");
  if (name == nullptr || *name == '\0') return;
  const std::vector<std::string> known = affpcl::available_instruction_sets();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw affpcl::BadInput(fmt::format("AFFPCL_INSTRUCTION_SET = {} is not to be had here: {}",
                                       name, fmt::join(known, ", ")));
  affpcl::use_instruction_set(name);
}

// Of a verb and its groups of options, without dashes.
std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  const auto is_group = [](const CLI::App* part) { return part->get_name().empty(); };
  for (const CLI::App* group : verb.get_subcommands(is_group))
    for (const std::string& name : option_names(*group)) names.push_back(name);
  return names;
}

// What to say of the first option that nobody knows; empty where all are known.
std::string unknown_option(const CLI::App& app) {
  std::vector<const CLI::App*> parts = {&app};
  for (const CLI::App* verb : app.get_subcommands()) parts.push_back(verb);
  for (const CLI::App* part : parts)
    for (const std::string& word : part->remaining()) {
      if (!word.starts_with("-")) continue;
      const std::string given = word.substr(0, word.find('='));
      const std::vector<std::string> names = option_names(*part);
      const std::string nearest =
          affpcl::did_you_mean(given.substr(std::min(given.find_first_not_of('-'), given.size())),
                               std::vector<std::string_view>(names.begin(), names.end()));
      const std::string verb = part == &app ? "affpcl" : "affpcl " + part->get_name();
      return fmt::format("there is no option '{}'; {}", given,
                         nearest.empty() ? verb + " --help lists the options"
                                         : fmt::format("did you mean '--{}'?", nearest));
    }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace affpcl::cli;
  CLI::App app(
      "affpcl: n agents, each with its own data and goal, learn together; each gets its own "
      "model.");
  app.set_version_flag("--version", affpcl::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Every verb has --help with an example. Exit codes: 0 ok, 1 failed, 2 bad input, 130 "
      "interrupted.");
  const std::string line = command_line(argc, argv);
  const std::vector<Verb> verbs = {
      run_verb(app, line), reproduce_verb(app, line), affinity_verb(app, line), fit_verb(app, line),
      predict_verb(app),   inspect_verb(app),         report_verb(app),         list_verb(app),
      bench_verb(app)};
  try {
    if (argc > 1 && argv[1][0] != '-') {  // CLI11 would only say that a verb is missing
      std::vector<std::string> names;
      for (const Verb& verb : verbs) names.push_back(verb.app->get_name());
      const std::vector<std::string_view> known(names.begin(), names.end());
      if (std::find(known.begin(), known.end(), argv[1]) == known.end())
        throw affpcl::BadInput(
            fmt::format("there is no verb '{}'{}", argv[1], affpcl::hint(argv[1], known)));
    }
    app.parse(argc, argv);
    use_set_asked_for();
    for (const Verb& verb : verbs)
      if (verb.app->parsed() && (verb.many_processes || launched().rank == 0)) return verb.action();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0)
      return launched().rank == 0 ? app.exit(e) : kOk;  // --help, --version
    const std::string unknown = unknown_option(app);
    return fail(fmt::format("{}{}", unknown.empty() ? e.what() : unknown,
                            argc == 1 ? "; affpcl --help lists the verbs" : ""),
                kBadInput);
  } catch (const affpcl::BadInput& e) {
    return fail(e.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return fail("there is not enough memory for this run", kFailed);
  } catch (const std::exception& e) {
    return fail(e.what(), kFailed);
  }
  return kOk;
}
