#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/output/affinity_file.h"
#include "affpcl/output/federation_file.h"
#include "affpcl/output/model_file.h"
#include "cli/fit_table.h"
#include "cli/job_file.h"
#include "cli/processes.h"
#include "cli/site.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

// The value of a parameter as one writes it: true, 3, 0.1, full.
Value value_in(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const std::optional<double> number = parse_number(text);
  if (!number) return text;
  if (text.find_first_not_of("+-0123456789") == std::string::npos)
    return static_cast<std::int64_t>(*number);
  return *number;
}

// The options of a log of transitions that tables have too.
void take_log(TdLog::Config& td, const FrameOptions& frame) {
  if (frame.paths.size() != 1) throw BadInput("--task td needs one file, the log of all agents");
  if (!frame.target.empty()) throw BadInput("--task td has no --target: it learns from --reward");
  if (!frame.exclude.empty() || !frame.time.empty() || !frame.beside.empty() ||
      frame.missing != Missing::kError)
    throw BadInput(
        "--task td has no --exclude, --time, --with or --missing: it takes rows as they come, and "
        "only the columns that are named");
  td.file = frame.paths[0];
  if (!frame.agent.empty()) td.agent = frame.agent;
  td.features = joined_names(frame.features);
  td.channels = joined_names(frame.channels);
  td.weights = frame.weights;
}

struct FitVerb {
  FitOptions fit;
  TableQuestions table;
  std::string out, centre, solver = "exact", offset_scale = "link", covariance = "average",
                           approximation = "auto", estimate = "auto", sum = "float";
  std::vector<std::string> values;
  TdLog::Config td;
  std::string sort = "gain", forecast;
  std::int64_t seed = 1, top = 0;
  SiteOfJob site;
  bool all = false, force = false, quiet = false, json = false, no_score = false, report = false;
};

constexpr const char* kOfLogs[] = {"--gamma", "--state", "--next-state", "--reward", "--done"};

void add_log(Verb& verb, TdLog::Config& td) {
  verb.option("--gamma", &td.gamma, "NUMBER", "--task td: the discount of later rewards",
              {.lo = 0, .hi = 1});
  verb.option("--state", &td.state, "COLUMN", "--task td: the column of states (or --features)");
  verb.option("--next-state", &td.next_state, "COLUMN", "--task td: the column of next states");
  verb.option("--reward", &td.reward, "COLUMN", "--task td: the column of rewards");
  verb.option("--done", &td.done, "COLUMN",
              "--task td: the column that marks the end of an episode");
}

// The option --NAME of a parameter of the fit; `type` is how the help writes its value.
void add_param(Verb& verb, std::string_view name, Target to, const std::string& type) {
  std::string option = fmt::format("--{}", name);
  std::replace(option.begin(), option.end(), '_', '-');
  for (const Param& p : FitOptions::params().table())
    if (p.name == name)
      verb.option(option, to, type, std::string(p.doc),
                  {.choices = {p.choices.begin(), p.choices.end()},
                   .lo = p.allowed.lo,
                   .hi = p.allowed.hi});
}

void add_solver(Verb& verb, FitVerb& o) {
  add_param(verb, "solver", &o.solver, "exact|stream");
  add_param(verb, "covariance", &o.covariance, "average|scalar|diagonal|full");
  add_param(verb, "estimate", &o.estimate, "auto|ml|reml");
  add_param(verb, "approximation", &o.approximation, "auto|laplace|variational");
  add_param(verb, "plain", &o.fit.mixed.plain, "");
  add_param(verb, "method", &o.fit.stream.method, "METHOD");
  verb.option("--set", &o.values, "KEY=VALUE", "a parameter of that method, such as lambda=0.1");
  verb.flag("--no-score", &o.no_score, "only personalised models, without cross-validation");
  add_param(verb, "repeats", &o.fit.repeats, "N");
  add_param(verb, "level", &o.fit.level, "LEVEL");
  verb.option(
      "--forecast", &o.forecast, "DIR",
      "result folder of `affpcl affinity` on the same data: a note says how its forecast came out");
  add_param(verb, "folds", &o.table.frame.folds, "COLUMN");
  verb.option(
      "--test", &o.table.frame.test, "FILE",
      "exact solver: rows that are held out from everything and on which models are scored; "
      "may be given again");
  add_param(verb, "time", &o.table.frame.time, "COLUMN");
}

void add_family(Verb& verb, FitVerb& o) {
  FrameOptions& frame = o.table.frame;
  frame.family = o.fit.frame.family;
  add_param(verb, "family", &frame.family, "FAMILY");
  add_param(verb, "row_weight", &frame.row_weight, "COLUMN");
  add_param(verb, "trials", &frame.trials, "COLUMN");
  add_param(verb, "offset", &frame.offset, "COLUMN");
  add_param(verb, "offset_scale", &o.offset_scale, "link|response");
  verb.option("--common", &frame.common, "A,B",
              "columns whose effect is the same for all agents: no random effect",
              {.commas = true});
  add_param(verb, "within", &frame.within, "COLUMN");
  add_param(verb, "crossed", &frame.crossed, "COLUMN");
}

void add_privacy(Verb& verb, FitOptions& fit) {
  add_param(verb, "privacy", &fit.privacy, "EPSILON,DELTA");
  add_param(verb, "bounds", &fit.bounds, "BOUNDS");
}

void add_output(Verb& verb, FitVerb& o) {
  verb.option("--out", &o.out, "DIR", "folder for model.json and summary.json");
  verb.flag("--force", &o.force, "replace the folder if it exists");
  add_report(verb, o.report);
  verb.option("--top", &o.top, "N", "show the first N agents (default: six from each end)",
              {.lo = 1});
  verb.option("--sort", &o.sort, "ORDER",
              "order of the agents shown: gain, least-gain and loss (of the chosen model) put the "
              "largest, smallest and largest first; rows the most; name by name",
              {.choices = {EnumNames<AgentOrder>::all.begin(), EnumNames<AgentOrder>::all.end()}});
  verb.flag("--all", &o.all, "show all agents");
  add_param(verb, "seed", &o.seed, "N");
  verb.option("--threads", &o.fit.threads, "N",
              "threads to use; the numbers do not depend on it (default: all cores)",
              {.lo = 1, .hi = 4096});
  verb.flag("--json", &o.json, "print the summary as JSON and nothing else");
  verb.flag("--quiet", &o.quiet, "no table, no progress");
}

std::map<std::string, Value> method_values(const std::vector<std::string>& texts) {
  std::map<std::string, Value> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw BadInput(fmt::format("--set {} lacks a value: KEY=VALUE", text));
    values[text.substr(0, equals)] = value_in(text.substr(equals + 1));
  }
  return values;
}

// The options of the fit; BadInput where they contradict each other.
FitOptions checked_options(const FitVerb& o, const Verb& verb) {
  FitOptions options = o.fit;
  options.frame = o.table.options(static_cast<std::uint64_t>(o.seed));
  if (o.offset_scale == "response") options.frame.offset_scale = OffsetScale::kResponse;
  const FrameOptions& frame = options.frame;
  if (!o.centre.empty()) options.centre = std::make_shared<const Model>(read_model(o.centre));
  if (o.table.task == "td") {
    take_log(options.td.emplace(o.td), frame);
    if (verb.given("--solver") && o.solver == "exact")
      throw BadInput("--task td learns in one pass, which is --solver stream");
  } else if (frame.target.empty() == frame.channels.empty() && !options.centre) {
    throw BadInput(frame.target.empty()
                       ? "--target COLUMN says what to predict (or --channels A,B with "
                         "--weights FILE)"
                       : "--target and --channels exclude each other");
  }
  for (const char* option : kOfLogs)
    if (!options.td && verb.given(option))
      throw BadInput(fmt::format("{} belongs to --task td", option));
  const bool in_one_pass = options.td || o.solver == "stream";
  options.solver = in_one_pass ? SolverKind::kStream : SolverKind::kExact;
  if (o.all && o.top > 0) throw BadInput("--all and --top exclude each other");
  if (!in_one_pass && (!options.stream.method.empty() || !o.values.empty()))
    throw BadInput("--method and --set belong to --solver stream");
  if (in_one_pass && o.no_score)
    throw BadInput("--no-score belongs to --solver exact: a stream scores as it learns");
  if (in_one_pass && (verb.given("--covariance") || verb.given("--estimate") ||
                      verb.given("--approximation") || options.mixed.plain))
    throw BadInput(
        "--covariance, --estimate, --approximation and --plain belong to --solver exact");
  options.mixed.covariance = value_of<CovarianceChoice>(o.covariance, "covariance");
  options.mixed.estimate = value_of<EstimateChoice>(o.estimate, "estimate");
  options.mixed.approximation = value_of<Approximation>(o.approximation, "approximation");
  options.sum = value_of<Sums>(o.sum, "sum");
  options.stream.method_values = method_values(o.values);
  options.score = !o.no_score;
  if (!o.forecast.empty() && !options.score)
    throw BadInput("--forecast needs the scores that --no-score leaves out");
  return options;
}

// Writes the result folder and the page, and prints.
void give_out(const FitResult& result, const FitVerb& o, ResultFolder* folder,
              const SiteProcesses* site = nullptr) {
  if (folder != nullptr) {
    folder->add("model.json", model_json(result.model));
    folder->add("summary.json", fit_summary_json(result));
    if (result.model.solver == SolverKind::kExact && !result.model.joined)
      folder->add("centre.json", centre_json(result.model, site != nullptr));
    if (site != nullptr) folder->add("ledger.json", ledger_json(*site, result.model));
    folder->commit();
  }
  const std::string page = o.report ? write_report(o.out) : "";
  if (o.json) {
    std::fputs(fit_summary_json(result).c_str(), stdout);
  } else if (!o.quiet) {
    print_fit(result,
              {.sort = value_of<AgentOrder>(o.sort, "sort"),
               .top = static_cast<std::size_t>(o.top),
               .all = o.all},
              output_style());
    if (folder != nullptr) fmt::print("model in {}\n", o.out);
    if (o.report) fmt::print("page in {}\n", page);
  }
}

constexpr std::size_t kSiteLevelRows = 10;  // a site names no level with fewer

// This site's part of a federated fit: its own agents' models, in the folder.
int fit_at_site(const FitVerb& o, const Verb& verb, const std::string& command_line) {
  FitOptions options = checked_options(o, verb);
  if (options.solver != SolverKind::kExact) throw BadInput("--site needs --solver exact");
  if (options.centre)
    throw BadInput(
        "--centre is for agents that join later, and --site for those of the fit itself");
  if (o.out.empty()) throw BadInput("--site needs --out, the folder of the site's own models");
  if (!verb.given("--level-rows")) options.frame.level_rows = kSiteLevelRows;
  options.frame.site = o.site.name;
  options.sum = Sums::kFixed;
  options.job = o.site.job, options.release = kept_beside(o.out, o.site, "release");
  SiteOfJob site_of_job = o.site;
  site_of_job.sent = kept_beside(o.out, o.site, "sent");
  std::vector<std::string> files = data_files(options.frame.paths);
  files.insert(files.end(), options.frame.beside.begin(), options.frame.beside.end());
  site_of_job.rows = hash_of_files(o.site.job, files);
  options.stop = &interruption();
  if (o.report) refuse_report_without(o.out);
  ResultFolder folder(o.out, o.force);
  const InputScope inputs(&interruption());
  FitResult result;
  at_site(
      site_of_job,
      [&](SiteProcesses& site) {
        options.processes = &site;
        options.progress = [&](double share) { site.set_progress(share); };
        result = fit(options);
        take_time_to_write();
        result.model.command = command_line;
        return centre_json(result.model, true);
      },
      [&](const SiteProcesses& site) { give_out(result, o, &folder, &site); });
  std::filesystem::remove(site_of_job.sent);  // the ledger has it
  return kOk;
}

int fit_tables(const FitVerb& o, const Verb& verb, const std::string& command_line) {
  if (!o.site.name.empty()) return fit_at_site(o, verb, command_line);
  FitOptions options = checked_options(o, verb);
  Processes& all = processes();
  options.processes = &all;
  if (options.threads == 0) options.threads = default_threads();
  std::unique_ptr<ResultFolder> folder;  // refused before the work, not after
  if (o.report) refuse_report_without(o.out);
  if (!o.out.empty() && all.first()) folder = std::make_unique<ResultFolder>(o.out, o.force);
  ProgressLine progress(o.quiet || o.json || !all.first());
  options.stop = &interruption();
  options.progress = [&](double share) { progress(share); };
  const InputScope inputs(&interruption());
  FitResult result = fit(options);
  take_time_to_write();
  if (!all.first()) return result.complete ? kOk : kInterrupted;
  result.model.command = command_line;
  if (!o.forecast.empty() && result.scored)
    result.notes.push_back(forecast_note(o.forecast, result));
  give_out(result, o, folder.get());
  return interruption() || !result.complete ? kInterrupted : kOk;
}

}  // namespace

Verb fit_verb(const std::string& command_line) {
  auto o = std::make_shared<FitVerb>();
  Verb verb{
      .name = "fit",
      .doc = "one model per agent from your data, and what learning together gained each",
      .examples =
          "Examples:\n  affpcl fit examples/shops.csv --target sales --agent shop --out model\n"
          "  affpcl fit sites/ --target y --exclude id,date --missing mean\n"
          "  affpcl fit my.csv --centre centre.json --out mine\n"
          "  affpcl fit features.npy --with labels.csv --target label --agent writer\n"
          "  mpirun -np 8 affpcl fit big.csv --target y --agent site --out model",
      .action = [o, command_line](const Verb& v) { return fit_tables(*o, v, command_line); },
      .many_processes = true};
  FrameOptions& frame = o->table.frame;
  verb.option("data", &frame.paths, "DATA…", kDataDoc, {.required = true});
  add_table(verb, o->table);
  verb.option("--channels", &frame.channels, "A,B",
              "instead of a target: outcomes of which each agent has its own weighted sum",
              {.commas = true});
  add_param(verb, "weights", &frame.weights, "FILE.csv");
  add_centre(verb, o->centre);
  add_family(verb, *o);
  add_log(verb, o->td);
  add_solver(verb, *o);
  add_param(verb, "sum", &o->sum, "float|fixed");
  add_privacy(verb, o->fit);
  add_site(verb, o->site);
  add_output(verb, *o);
  return verb;
}

}  // namespace affpcl::cli
