#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/output/federation_file.h"
#include "affpcl/output/fit_headline.h"
#include "affpcl/output/model_file.h"
#include "cli/processes.h"
#include "cli/site.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

constexpr std::size_t kShown = 12;  // agents in the table, half from each end

std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "-"; }

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

std::string spreads(const Model& model) {
  std::string text;
  for (const ChannelModel& c : model.channels) {
    const std::string one = to_text(c.covariance);
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

// The best and the worst agents; with bars of loss chosen over loss independent where they fit.
void print_agents(const FitResult& r, const std::vector<std::size_t>& order, const Style& style) {
  constexpr std::size_t kLongestName = 24, kOthers = 2 + 7 + 2 + 9 + 1 + 11 + 2 + 9 + 1 + 22 + 8 + 2 + 7;
  constexpr std::size_t kLeastBar = 12, kMostBar = 16;
  const Model& m = r.model;
  std::size_t width = 5;
  for (const AgentModel& a : m.agents)
    width = std::max(width, std::min(places(a.name), kLongestName));
  const bool intervals = style.width == 0 || width + kOthers <= style.width;
  const std::size_t bar = width + kOthers + 3 + kLeastBar <= style.width
                              ? std::min(kMostBar, style.width - width - kOthers - 3)
                              : 0;
  fmt::print("  {:<{}} {:>6}  {:>9} {:>11}  {:>9}", "agent", width, "rows", "chosen", "independent",
             "gain");
  fmt::print("{} {:>7}{}  verdict\n", intervals ? fmt::format(" {:<22}", fmt::format("{:g} % interval", 100 * r.level)) : "",
             "chance", bar > 0 ? fmt::format("  {:<{}}", "chosen / independent", bar + 1) : "");
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order.size() > kShown && k == kShown / 2) {
      fmt::print("  … {} more, in summary.json (--out)\n", order.size() - kShown);
      k = order.size() - kShown / 2;
    }
    const std::size_t i = order[k];
    const AgentScore& a = r.agents[i];
    const std::string name = clipped(m.agents[i].name, kLongestName);
    const std::string interval = std::isfinite(a.gain.lo)
                                     ? fmt::format("[{}, {}]", number(a.gain.lo), number(a.gain.hi))
                                     : "";
    std::string row = "  " + name + std::string(width - places(name), ' ');
    row += fmt::format(" {:>6}  {:>9} {:>11}  {:>9}", m.agents[i].rows, number(a.loss.chosen),
                       number(a.loss.independent), number(a.gain.mean));
    if (intervals) row += fmt::format(" {:<22}", interval);
    row += fmt::format(" {:>7.3f}", a.probability);
    if (bar > 0) row += "  " + ratio_bar(a.loss.chosen / a.loss.independent, bar);
    fmt::print("{}  {}{}\n", row, to_text(a.verdict), a.why.empty() ? "" : "; " + a.why);
  }
}

std::string held_out_heading(const FitResult& r) {
  return r.held_out.how == Holdout::kDealt && r.held_out.files.empty()
             ? fmt::format("on {} ({} x {}-fold)", scored_rows(r), r.repeats, r.held_out.folds)
             : "on " + scored_rows(r);
}

void print_result(const FitResult& r, const Style& style) {
  const Model& m = r.model;
  const bool classify = !m.encoding.classes.empty();
  const bool exact = m.solver == SolverKind::kExact;
  const bool values = m.encoding.values;
  fmt::print("{} agents, {} rows, {} columns; {} of '{}'; {}\n", m.agents.size(), m.rows,
             m.encoding.dim() - 1,
             values     ? "temporal differences"
             : classify ? fmt::format("{} classes", m.encoding.classes.size())
             : m.encoding.generalised() ? fmt::format("{} family", to_text(m.encoding.family))
                        : "regression",
             m.encoding.predicted(),
             exact ? "random-effects covariance: " + spreads(m) : "in one pass by " + m.method);
  for (const std::string& note : r.notes)
    fmt::print("  note: {}\n", spell_options(note, OptionStyle::kCommandLine));
  if (!r.scored) {
    fmt::print("not scored\n");
    return;
  }
  fmt::print("{:<29} {:>9} {:>12} {:>12} {:>12}\n",
             exact ? held_out_heading(r) : "predicted, then learnt",
             "chosen", "personalised", "independent", "pooled");
  const auto line = [](const char* name, const Losses& l) {
    fmt::print("  {:<24} {:>12} {:>12} {:>12} {:>12}\n", name, number(l.chosen),
               number(l.personalised), number(l.independent), number(l.pooled));
  };
  line(measure_name(m.encoding), r.loss);
  if (classify) {
    line("accuracy", r.accuracy);
    line("AUC", r.classes.auc);
    line("Brier score", r.brier);
    line("calibration error", r.classes.calibration_error);
  }
  if (m.encoding.numeric() && !values) line("R^2", r.r2);
  if (r.unseen.rows > 0 && m.encoding.outcomes.empty())
    fmt::print("  {} test row{} of {} unseen agent{}: {} {}{}\n", r.unseen.rows,
               r.unseen.rows == 1 ? "" : "s", r.unseen.agents, r.unseen.agents == 1 ? "" : "s",
               measure_name(m.encoding), number(r.unseen.loss),
               classify ? fmt::format(", accuracy {}", number(r.unseen.accuracy)) : "");
  std::vector<std::size_t> order(r.agents.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return r.agents[a].gain.mean > r.agents[b].gain.mean;
  });
  print_agents(r, order, style);
  fmt::print("{}\n", wrapped(verdict_legend(m.solver, r.level), style));
  std::fputs(headline_text(headline(r), style).c_str(), stdout);
}

struct FitVerb {
  FitOptions fit;
  TableQuestions table;
  std::string out, solver = "exact", offset_scale = "link", covariance = "average",
              approximation = "auto", estimate = "auto", sum = "float";
  std::vector<std::string> values;
  TdLog::Config td;
  std::int64_t seed = 1;
  SiteOfJob site;
  bool force = false, quiet = false, json = false, no_score = false, report = false;
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
      verb.option(option, std::move(to), type, std::string(p.doc),
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
  add_param(verb, "folds", &o.table.frame.folds, "COLUMN");
  verb.option("--test", &o.table.frame.test, "FILE",
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

void add_site(Verb& verb, SiteOfJob& site) {
  verb.option("--site", &site.name, "NAME",
              "take part in a federation as this site, with messages on standard input and output; "
              "`affpcl federate` starts it so");
  verb.option("--job", &site.job, "HASH", "--site: of what all sites agreed to");
  verb.flag("--may-leave", &site.may_leave,
            "--site: the others may go on without this site, and then learn the sums of its rows");
}

void add_output(Verb& verb, FitVerb& o) {
  verb.option("--out", &o.out, "DIR", "folder for model.json and summary.json");
  verb.flag("--force", &o.force, "replace the folder if it exists");
  add_report(verb, o.report);
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
  if (o.table.task == "td") {
    take_log(options.td.emplace(o.td), frame);
    if (verb.given("--solver") && o.solver == "exact")
      throw BadInput("--task td learns in one pass, which is --solver stream");
  } else if (frame.target.empty() == frame.channels.empty()) {
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
  if (!in_one_pass && (!options.stream.method.empty() || !o.values.empty()))
    throw BadInput("--method and --set belong to --solver stream");
  if (in_one_pass && o.no_score)
    throw BadInput("--no-score belongs to --solver exact: a stream scores as it learns");
  if (in_one_pass && (verb.given("--covariance") || verb.given("--estimate") ||
                      verb.given("--approximation") || options.mixed.plain))
    throw BadInput("--covariance, --estimate, --approximation and --plain belong to --solver exact");
  options.mixed.covariance = value_of<CovarianceChoice>(o.covariance, "covariance");
  options.mixed.estimate = value_of<EstimateChoice>(o.estimate, "estimate");
  options.mixed.approximation = value_of<Approximation>(o.approximation, "approximation");
  options.sum = value_of<Sums>(o.sum, "sum");
  options.stream.method_values = method_values(o.values);
  options.score = !o.no_score;
  return options;
}

// Writes the result folder and the page, and prints.
void give_out(const FitResult& result, const FitVerb& o, ResultFolder* folder,
              const SiteProcesses* site = nullptr) {
  if (folder != nullptr) {
    folder->add("model.json", model_json(result.model));
    folder->add("summary.json", fit_summary_json(result));
    if (result.model.solver == SolverKind::kExact)
      folder->add("centre.json", centre_json(result.model));
    if (site != nullptr) folder->add("ledger.json", ledger_json(*site));
    folder->commit();
  }
  const std::string page = o.report ? write_report(o.out) : "";
  if (o.json) {
    std::fputs(fit_summary_json(result).c_str(), stdout);
  } else if (!o.quiet) {
    print_result(result, output_style());
    if (folder != nullptr) fmt::print("model in {}\n", o.out);
    if (o.report) fmt::print("page in {}\n", page);
  }
}

constexpr std::size_t kSiteLevelRows = 10;  // a site names no level with fewer

// This site's part of a federated fit: its own agents' models, in the folder.
int fit_at_site(const FitVerb& o, const Verb& verb, const std::string& command_line) {
  FitOptions options = checked_options(o, verb);
  if (options.solver != SolverKind::kExact)
    throw BadInput("--site needs --solver exact");
  if (o.out.empty()) throw BadInput("--site needs --out, the folder of the site's own models");
  if (!verb.given("--level-rows")) options.frame.level_rows = kSiteLevelRows;
  options.frame.site = o.site.name;
  options.sum = Sums::kFixed;
  options.stop = &interruption();
  if (o.report) refuse_report_without(o.out);
  ResultFolder folder(o.out, o.force);
  const InputScope inputs(&interruption());
  FitResult result;
  at_site(
      o.site,
      [&](SiteProcesses& site) {
        options.processes = &site;
        options.progress = [&](double share) { site.set_progress(share); };
        result = fit(options);
        result.model.command = command_line;
        return centre_json(result.model);
      },
      [&](const SiteProcesses& site) { give_out(result, o, &folder, &site); });
  return kOk;
}

int fit_tables(const FitVerb& o, const Verb& verb, const std::string& command_line) {
  if (!o.site.name.empty()) return fit_at_site(o, verb, command_line);
  FitOptions options = checked_options(o, verb);
  const bool in_one_pass = options.solver == SolverKind::kStream;
  if (in_one_pass && !first_alone("a fit in one pass")) return kOk;
  Processes& all = in_one_pass ? this_process() : processes();
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
  if (!all.first()) return result.complete ? kOk : kInterrupted;
  result.model.command = command_line;
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
  add_family(verb, *o);
  add_log(verb, o->td);
  add_solver(verb, *o);
  add_param(verb, "sum", &o->sum, "float|fixed");
  add_site(verb, o->site);
  add_output(verb, *o);
  return verb;
}

}  // namespace affpcl::cli
