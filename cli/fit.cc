#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>

#include "affpcl/fit/headline.h"
#include "affpcl/fit/model_file.h"
#include "affpcl/study/files.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

constexpr std::size_t kShown = 12;  // agents in the table, half from each end

std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "-"; }

std::string spreads(const Model& model) {
  std::string text;
  for (const ChannelModel& c : model.channels) {
    const std::string one = to_text(c.spread);
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

// The best and the worst; with bars of the error given over the error alone where there is room.
void print_agents(const FitResult& r, const std::vector<std::size_t>& order, const Style& style) {
  constexpr std::size_t kLongestName = 24, kOthers = 2 + 7 + 2 + 9 + 1 + 9 + 2 + 9 + 1 + 22 + 2 + 7;
  constexpr std::size_t kLeastBar = 12, kMostBar = 16;
  const Model& m = r.model;
  std::size_t width = 5;
  for (const AgentModel& a : m.agents)
    width = std::max(width, std::min(places(a.name), kLongestName));
  const bool intervals = style.width == 0 || width + kOthers <= style.width;
  const std::size_t bar = width + kOthers + 3 + kLeastBar <= style.width
                              ? std::min(kMostBar, style.width - width - kOthers - 3)
                              : 0;
  fmt::print("  {:<{}} {:>6}  {:>9} {:>9}  {:>9}", "agent", width, "rows", "given", "alone",
             "gain");
  fmt::print("{}{}  verdict\n", intervals ? fmt::format(" {:<22}", "90 % interval") : "",
             bar > 0 ? fmt::format("  {:<{}}", "given / alone", bar + 1) : "");
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
    row += fmt::format(" {:>6}  {:>9} {:>9}  {:>9}", m.agents[i].rows, number(a.loss.given),
                       number(a.loss.alone), number(a.gain.mean));
    if (intervals) row += fmt::format(" {:<22}", interval);
    if (bar > 0) row += "  " + ratio_bar(a.loss.given / a.loss.alone, bar);
    fmt::print("{}  {}{}\n", row, to_text(a.verdict), a.why.empty() ? "" : "; " + a.why);
  }
}

void print_result(const FitResult& r, const Style& style) {
  const Model& m = r.model;
  const bool classify = !m.encoding.classes.empty();
  fmt::print("{} agents, {} rows, {} columns; {} of '{}'; spread of the agents: {}\n",
             m.agents.size(), m.rows, m.encoding.dim() - 1,
             classify ? fmt::format("{} classes", m.encoding.classes.size()) : "regression",
             m.encoding.target, spreads(m));
  for (const std::string& note : r.notes) fmt::print("  note: {}\n", note);
  if (!r.scored) {
    fmt::print("not scored\n");
    return;
  }
  fmt::print("on rows left out ({}-fold)   {:>12} {:>12} {:>12} {:>12}\n", kFolds, "given",
             "personalised", "alone", "pooled");
  const auto line = [](const char* name, const Losses& l) {
    fmt::print("  {:<24} {:>12} {:>12} {:>12} {:>12}\n", name, number(l.given),
               number(l.personalised), number(l.alone), number(l.pooled));
  };
  line(classify ? "log loss" : "mean squared error", r.loss);
  if (classify) line("accuracy", r.accuracy);
  if (!classify) line("R^2", r.r2);
  std::vector<std::size_t> order(r.agents.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return r.agents[a].gain.mean > r.agents[b].gain.mean;
  });
  print_agents(r, order, style);
  const std::string verdicts =
      "verdicts: one-sided tests on rows left out, 5 % false ones among all agents "
      "(Benjamini-Hochberg); below 1 % of the error is even";
  fmt::print("{}\n", wrapped(verdicts, style));
  std::fputs(headline_text(headline(r), style).c_str(), stdout);
}

}  // namespace

Verb fit_verb(CLI::App& app, const std::string& command_line) {
  struct Options {
    FitOptions fit;
    std::string out, missing = "error", task = "auto";
    std::int64_t seed = 1;
    bool force = false, quiet = false, json = false, no_score = false, report = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "fit", "one model per agent from your data, and what learning together gained each");
  FrameOptions& f = o->fit.frame;
  verb->add_option("data", f.paths,
                   "one CSV file with a column that names agents, or several files (a folder), one "
                   "per agent")
      ->required()
      ->type_name("DATA.csv…");
  verb->add_option("--target", f.target, "the column to predict")->required()->type_name("COLUMN");
  verb->add_option("--agent", f.agent,
                   "the column that says whose row it is (default: agent, else site)")
      ->type_name("COLUMN");
  verb->add_option("--features", f.features, "columns to predict from (default: all others)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B");
  verb->add_option("--exclude", f.exclude, "columns to leave out")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("C,D");
  verb->add_option("--missing", o->missing,
                   "blanks: an error, filled with the column's mean, or their rows dropped")
      ->check(CLI::IsMember({"error", "mean", "drop"}))
      ->type_name("error|mean|drop");
  verb->add_option("--task", o->task, "auto: a text target is a class")
      ->check(CLI::IsMember({"auto", "regress", "classify"}))
      ->type_name("auto|regress|classify");
  verb->add_flag("--no-score", o->no_score, "only the model, without cross-validation");
  verb->add_option("--out", o->out, "folder for model.json and summary.json")->type_name("DIR");
  verb->add_flag("--force", o->force, "replace the folder if it exists");
  add_report(*verb, o->report);
  verb->add_option("--seed", o->seed, "of the split into folds")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  verb->add_option("--threads", o->fit.threads,
                   "threads to use; the numbers do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->add_flag("--json", o->json, "print the summary as JSON and nothing else");
  verb->add_flag("--quiet", o->quiet, "no table, no progress");
  verb->footer(
      "Examples:\n  affpcl fit examples/shops.csv --target sales --agent shop --out model\n"
      "  affpcl fit sites/ --target y --exclude id,date --missing mean");
  return {verb, [o, command_line] {
            FitOptions& fit_options = o->fit;
            FrameOptions& frame = fit_options.frame;
            frame.seed = static_cast<std::uint64_t>(o->seed);
            frame.missing = o->missing == "mean"   ? Missing::kMean
                            : o->missing == "drop" ? Missing::kDrop
                                                   : Missing::kError;
            frame.task = o->task == "regress"    ? Task::kRegress
                         : o->task == "classify" ? Task::kClassify
                                                 : Task::kAuto;
            std::unique_ptr<ResultFolder> folder;  // refused before the work, not after
            if (o->report) refuse_report_without(o->out);
            if (!o->out.empty()) folder = std::make_unique<ResultFolder>(o->out, o->force);
            ProgressLine progress(o->quiet || o->json);
            fit_options.stop = &interruption();
            fit_options.progress = [&](double share) { progress(share); };
            fit_options.score = !o->no_score;
            FitResult result = fit(fit_options);
            result.model.command = command_line;
            if (folder) {
              folder->add("model.json", model_json(result.model));
              folder->add("summary.json", fit_summary_json(result));
              folder->commit();
            }
            const std::string page = o->report ? write_report(o->out) : "";
            if (o->json) {
              std::fputs(fit_summary_json(result).c_str(), stdout);
            } else if (!o->quiet) {
              print_result(result, output_style());
              if (folder) fmt::print("model in {}\n", o->out);
              if (o->report) fmt::print("page in {}\n", page);
            }
            return interruption() ? int{kInterrupted} : int{kOk};
          }};
}

}  // namespace affpcl::cli
