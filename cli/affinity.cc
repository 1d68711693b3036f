#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>

#include "affpcl/affinity/affinity.h"
#include "affpcl/affinity/affinity_archive.h"
#include "affpcl/affinity/join_pilot.h"
#include "affpcl/affinity/table_affinity.h"
#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/json.h"
#include "affpcl/data/inputs.h"
#include "affpcl/output/affinity_file.h"
#include "affpcl/output/model_file.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/study/study.h"
#include "affpcl/table/known.h"
#include "cli/processes.h"
#include "cli/table_affinity.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

Json to_json(const Score& s) {
  if (!s.why.empty()) return {{"value", nullptr}, {"why", s.why}};
  return {{"value", s.value}, {"se", s.se}};
}

std::string text(const Score& s) {
  if (!s.why.empty()) return "-";
  return s.se > 0 ? fmt::format("{:.3f} ±{:.3f}", s.value, s.se) : fmt::format("{:.3f}", s.value);
}

struct Named {
  const char* key;
  const char* doc;
  Score Affinity::*score;
};
constexpr Named kScores[] = {
    {"delta_env", "largest distance between two environments", &Affinity::delta_env},
    {"delta_obj", "largest distance between two objectives", &Affinity::delta_obj},
    {"nu", "stochastic condition number", &Affinity::nu},
    {"G_b", "largest |theta|", &Affinity::G_b},
    {"G_A", "largest |A(s)|", &Affinity::G_A},
    {"G_x", "largest |x*|", &Affinity::G_x},
    {"sigma", "scale of the system", &Affinity::sigma},
    {"step_limit", "largest constant step at which learning alone is stable",
     &Affinity::step_limit},
    {"lambda_central", "monotonicity of the central system", &Affinity::lambda_central},
    {"lambda_objective", "monotonicity of the central objective", &Affinity::lambda_objective},
};

// What is printed of each agent, where it is known of any.
struct Column {
  const char* name;
  const char* doc;
  Score AgentAffinity::*score;
};
constexpr Column kColumns[] = {
    {"delta_cen", "distance of its environment and objective to the centre",
     &AgentAffinity::delta_cen},
    {"lambda", "monotonicity of its system", &AgentAffinity::lambda},
    {"nu", "its stochastic condition number", &AgentAffinity::nu},
    {"predicted V",
     "noise of AffPCL's step over that of learning alone, at the solution (below 1 collaboration "
     "helps)",
     &AgentAffinity::prediction},
};

// Per agent what a run measured, if one was asked for: vs_independent of the first method of kind
// affpcl.
std::vector<Estimate> measured(const Study& study, std::size_t setting,
                               const CommonOptions& options) {
  Study one = study;
  one.settings = {study.settings[setting]};
  one.settings.front().spec.redraw_system = false;  // the system that was scored, new samples
  const StudyResult result = run_with_progress(one, options);
  std::vector<Estimate> out;
  if (result.settings.empty()) return out;
  const Spec& spec = one.settings.front().spec;
  for (std::size_t m = 0; m < spec.methods.size(); ++m)
    if (spec.methods[m].kind == "affpcl") {
      for (const AgentResult& a : result.settings.front().methods[m].agents)
        out.push_back(a.vs_independent);
      return out;
    }
  throw BadInput(fmt::format(
      "{}: --measure needs a method of kind affpcl beside one of kind independent", study.name));
}

Json as_json(const Setting& setting, const Affinity& a, const std::vector<Estimate>& gains) {
  Json at = Json::object(), j, agents = Json::array();
  for (const auto& [key, value] : setting.at)
    at[key] = std::visit([](const auto& v) { return Json(v); }, value);
  j["at"] = at;
  for (const Named& s : kScores) j[s.key] = to_json(a.*s.score);
  for (std::size_t i = 0; i < a.agents.size(); ++i) {
    const AgentAffinity& one = a.agents[i];
    Json agent{{"agent", i},
               {"delta_cen", to_json(one.delta_cen)},
               {"lambda", to_json(one.lambda)},
               {"kappa", to_json(one.kappa)},
               {"nu", to_json(one.nu)},
               {"predicted", to_json(one.prediction)}};
    if (i < gains.size())
      agent["measured"] = {{"mean", gains[i].mean}, {"lo", gains[i].lo}, {"hi", gains[i].hi}};
    agents.push_back(std::move(agent));
  }
  j["agents"] = std::move(agents);
  if (!gains.empty()) {
    std::vector<double> v, g;
    for (std::size_t i = 0; i < gains.size(); ++i)
      v.push_back(a.agents[i].prediction.value), g.push_back(gains[i].mean);
    j["rank_correlation"] = rank_correlation(v, g);
  }
  return j;
}

void print_text(const Setting& setting, const Affinity& a, const std::vector<Estimate>& gains) {
  for (const auto& [key, value] : setting.at) fmt::print("{} = {}  ", key, to_text(value));
  if (!setting.at.empty()) fmt::print("\n");
  for (const Named& s : kScores) {
    const Score& score = a.*s.score;
    fmt::print("  {:<17} {:<16} {}{}\n", s.key, text(score), s.doc,
               score.why.empty() ? "" : ": none, " + score.why);
  }
  const auto known = [&](Score AgentAffinity::*score) {
    return std::any_of(a.agents.begin(), a.agents.end(),
                       [&](const AgentAffinity& one) { return (one.*score).why.empty(); });
  };
  std::vector<Column> columns;
  for (const Column& c : kColumns)
    if (known(c.score)) columns.push_back(c);
  fmt::print("  agent");
  for (const Column& c : columns) fmt::print("  {:<15}", c.name);
  fmt::print("{}\n", gains.empty() ? "" : " measured");
  for (std::size_t i = 0; i < a.agents.size(); ++i) {
    if (a.agents.size() > 40 && i == 20)
      fmt::print("  … ({} agents; all of them with --json or --out)\n", a.agents.size());
    if (a.agents.size() > 40 && i >= 20 && i + 5 < a.agents.size()) continue;
    const AgentAffinity& one = a.agents[i];
    fmt::print("  {:>5}", i);
    for (const Column& c : columns) fmt::print("  {:<15}", text(one.*c.score));
    if (i < gains.size() && std::isfinite(gains[i].mean))
      fmt::print(" {:.3f} [{:.3f}, {:.3f}]", gains[i].mean, gains[i].lo, gains[i].hi);
    else if (i < gains.size())
      fmt::print(" -");
    fmt::print("\n");
  }
  std::string legend;
  for (const Column& c : columns) legend += fmt::format("; {}: {}", c.name, c.doc);
  if (std::any_of(gains.begin(), gains.end(), [](Estimate e) { return !std::isfinite(e.mean); }))
    legend += "; measured -: every replicate diverged, or the agent has no error alone";
  fmt::print("  ±: standard error{}\n", legend);
}

struct AffinityVerb : CommonOptions {
  TableQuestions table;
  std::string centre;
  PilotOptions pilot;
  int rounds = AffinityOptions{}.rounds;
  bool measure = false;
};

// The scores of as many settings as there are ranks, one each: on rank 0, in order.
std::vector<Affinity> score_some(const Study& study, std::size_t from, int rounds, Processes& all) {
  std::vector<std::byte> mine;
  on_all_ranks(all, [&] {
    const std::size_t i = from + static_cast<std::size_t>(all.rank());
    if (i >= study.settings.size()) return;
    const Spec& spec = study.settings[i].spec;
    const std::unique_ptr<Problem> problem =
        problem_kind(spec.problem_kind).make(spec.problem, spec.run.seed, 0);
    mine = pack(affinity(*problem, {.seed = spec.run.seed, .rounds = rounds}));
  });
  std::vector<Affinity> scores;
  all.gather(mine, [&](std::span<const std::byte> theirs) {
    if (!theirs.empty()) scores.push_back(unpack_affinity(theirs));
  });
  return scores;
}

int of_spec(const AffinityVerb& o, const std::string& path, const std::string& command_line) {
  const Study study = read_study_file(path, o.overrides());
  Processes& all = processes();
  const auto ranks = static_cast<std::size_t>(all.count());
  Json scored{{"command", command_line}, {"settings", Json::array()}};
  std::vector<Affinity> some;
  for (std::size_t i = 0; i < study.settings.size(); ++i) {
    if (i % ranks == 0) some = score_some(study, i, o.rounds, all);
    const std::vector<Estimate> gains = o.measure ? measured(study, i, o) : std::vector<Estimate>{};
    if (all.first()) {
      const Affinity& a = some[i % ranks];
      scored["settings"].push_back(as_json(study.settings[i], a, gains));
      if (!o.json && !o.quiet) print_text(study.settings[i], a, gains);
    }
    if (all.any(interruption())) return kInterrupted;
  }
  if (!all.first()) return kOk;
  const std::string text = print_json(scored, {.indent = 1}) + "\n";
  if (o.json) std::fputs(text.c_str(), stdout);
  if (!o.out.empty()) write_file(o.out, text);
  return kOk;
}

int of_data(const AffinityVerb& o, const Verb& verb, const std::string& command_line) {
  if (o.table.task == "td") throw BadInput("--task td belongs to fit: affinity needs a --target");
  if (o.table.frame.target.empty() && o.centre.empty())
    throw BadInput("--target COLUMN is missing: affinity of data needs the column to predict");
  PilotOptions options = o.pilot;
  options.threads = o.threads;
  options.stop = &interruption();
  if (o.seed >= 0) options.seed = static_cast<std::uint64_t>(o.seed);
  std::unique_ptr<ResultFolder> folder;  // refused before the work, not after
  if (o.report) refuse_report_without(o.out);
  if (!o.out.empty()) folder = std::make_unique<ResultFolder>(o.out, o.force);
  const InputScope inputs(&interruption());
  FrameOptions frame = o.table.options(options.seed);
  if (!o.centre.empty()) {
    options.centre = std::make_shared<const Model>(read_model(o.centre));
    frame = join_options(frame, *options.centre);
    if (!verb.given("--pilot")) options.share = kJoinPilot;
  }
  const PilotResult result = pilot(build_frame(frame), options);
  take_time_to_write();
  const std::string summary = pilot_summary_json(
      result, {.share = options.share, .seed = options.seed, .command = command_line});
  if (folder) {
    folder->add("summary.json", summary);
    folder->add("affinity.csv", pilot_agents_csv(result));
    if (!result.distance.empty()) folder->add("matrix.csv", pilot_matrix_csv(result));
    folder->commit();
  }
  const std::string page = o.report ? write_report(o.out) : "";
  if (o.json) {
    std::fputs(summary.c_str(), stdout);
  } else if (!o.quiet) {
    print_pilot(result);
    if (folder) fmt::print("all agents in {}\n", o.out);
    if (o.report) fmt::print("page in {}\n", page);
  }
  return kOk;
}

bool is_spec(const std::string& path) { return path.ends_with(".toml"); }

constexpr char kOfSpecs[] = "Of a spec", kOfData[] = "Of data";  // groups of options

void refuse_useless_options(const Verb& verb, bool spec, const std::string& path) {
  for (const Option& option : verb.options)
    if (option.given > 0 && option.group == (spec ? kOfData : kOfSpecs))
      throw BadInput(fmt::format("{} is of no use with {}: it is for {}", option.name, path,
                                 spec ? "data" : "a spec (a file ending in .toml)"));
  if (!spec && verb.given("--set"))
    throw BadInput(fmt::format("--set is of no use with {}: it is for a spec", path));
}

int score(const AffinityVerb& o, const Verb& verb, const std::string& command_line) {
  const std::vector<std::string>& paths = o.table.frame.paths;
  const bool spec = std::any_of(paths.begin(), paths.end(), is_spec);
  if (spec && paths.size() > 1)
    throw BadInput(
        fmt::format("affinity takes one spec, or data, and got {} files with a .toml among them",
                    paths.size()));
  refuse_useless_options(verb, spec, paths[0]);
  if (spec) return of_spec(o, paths[0], command_line);
  return first_alone("affinity of data") ? of_data(o, verb, command_line) : kOk;
}

}  // namespace

Verb affinity_verb(const std::string& command_line) {
  auto o = std::make_shared<AffinityVerb>();
  Verb verb{
      .name = "affinity",
      .doc = "before training: how alike the agents are, and what each should gain",
      .examples =
          "Examples:\n  affpcl affinity examples/demo.toml --set problem.delta_env=0.5 --measure\n"
          "  affpcl affinity examples/shops.csv --target sales --agent shop --out alike --report\n"
          "  affpcl affinity my.csv --centre centre.json",
      .action = [o, command_line](const Verb& v) { return score(*o, v, command_line); },
      .many_processes = true};
  verb.option("what", &o->table.frame.paths, "SPEC.toml|DATA…",
              fmt::format("an experiment (TOML), or data: {}", kDataDoc), {.required = true});
  verb.group = kOfSpecs;
  verb.flag("--measure", &o->measure,
            "also run the spec on that system and put each agent's measured ratio beside");
  verb.option("--rounds", &o->rounds, "N", "Monte Carlo rounds where there is no closed form",
              {.lo = 20, .hi = 10000000});
  verb.group = kOfData;
  add_table(verb, o->table);
  add_centre(verb, o->centre);
  verb.option(
      "--pilot", &o->pilot.share, "SHARE",
      fmt::format(
          "share of every agent's rows to look at, at least {} of them (default: {}, with --centre "
          "all)",
          kFewestPilot, PilotOptions{}.share));
  add_report(verb, o->report);
  verb.group = "";
  add_common(verb, *o, "file for a spec's scores as JSON; folder for those of data");
  return verb;
}

}  // namespace affpcl::cli
