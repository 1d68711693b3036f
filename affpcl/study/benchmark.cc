#include "affpcl/study/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/base/params.h"
#include "affpcl/method/method.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kFirstTuningSeed = 1000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// JSON's numbers, truth values and strings are written in TOML as they are in JSON.
std::string as_toml(const Json& parameters) {
  std::string text;
  if (parameters.is_object())
    for (const JsonMember& m : parameters.members())
      text += fmt::format("{}{} = {}", text.empty() ? "" : "\n", m.key, print_json(m.value));
  return text;
}

// A problem of the plan at one level.
struct Cell {
  const Json* problem;
  double level, participation;
  std::string name() const { return problem->get<std::string>("name"); }
};

// A method with parameters as in a spec.
struct Entry {
  std::string kind = {}, parameters = {};
  bool tuned = false;
};

// A row in the making: what the systems so far say.
struct Sum {
  BenchmarkRow row;
  Entry entry = {};
  std::vector<double> logs = {};
  double agents = 0, harmed = 0;

  void add(const SettingResult& setting, std::size_t method) {
    const MethodResult& it = setting.methods.at(method);
    row.sent = it.sent;
    row.seconds += it.seconds;
    row.replicates += setting.replicates;
    for (const auto& [name, count] : setting.diverged)
      if (name == it.name) row.diverged += count;
    if (!std::isfinite(it.vs_independent.mean) || it.vs_independent.mean <= 0) return;
    logs.push_back(std::log(it.vs_independent.mean));
    row.by_system.push_back(it.vs_independent.mean);
    for (const AgentResult& a : it.agents) {
      row.worst_agent = std::max(row.worst_agent, a.vs_independent.mean);
      agents += 1, harmed += a.vs_independent.lo > 1 ? 1 : 0;
    }
  }

  BenchmarkRow finish() {
    row.harmed = agents > 0 ? harmed / agents : kNone;
    row.ratio = logs.empty() ? Estimate{kNone, kNone, kNone, kNone} : estimate(logs);
    for (double* x : {&row.ratio.mean, &row.ratio.lo, &row.ratio.hi, &row.ratio.median})
      *x = std::exp(*x);
    return row;
  }
};

class Bench {
 public:
  Bench(const BenchmarkOptions& options, const Json& plan) : options_(options), plan_(plan) {
    refuse_unknown();
    for (const Json& problem : plan.at("problems").elements()) {
      if (!chosen(problem)) continue;
      for (const double participation : shares(plan))
        for (const double level : problem.get<std::vector<double>>("levels"))
          cells_.push_back({&problem, level, participation});
    }
    methods_ = options.methods;
    if (methods_.empty())
      for (const MethodKind& kind : method_kinds())
        if (kind.name != "independent") methods_.emplace_back(kind.name);
    for (const std::string& kind : methods_) method_kind(kind);  // refused before the work
  }

  const std::vector<Cell>& cells() const { return cells_; }
  const std::vector<std::string>& methods() const { return methods_; }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  // Methods in one cell, on systems from `seed` on. All run at once on the same samples; where one
  // of them diverges, each runs beside independent learning alone, for a replicate in which any
  // method diverged counts for none.
  std::vector<BenchmarkRow> run(const Cell& cell, const std::vector<Entry>& entries,
                                std::uint64_t seed) {
    std::vector<Sum> sums;
    std::vector<std::size_t> running;  // of the entries, those that are not refused
    for (const Entry& e : entries) {
      sums.push_back({{.problem = cell.name(), .method = e.kind, .tuned = e.tuned}});
      BenchmarkRow& row = sums.back().row;
      row.level = cell.level;
      row.participation = cell.participation;
      row.parameters = e.parameters;
      row.refused = refusal(cell, e);
      if (row.refused.empty()) running.push_back(sums.size() - 1);
      sums.back().entry = e;
    }
    for (std::int64_t s = 0; s < systems() && !stopped() && !running.empty(); ++s)
      add_system(cell, running, seed + static_cast<std::uint64_t>(s), sums);
    std::vector<BenchmarkRow> rows;
    for (Sum& sum : sums) rows.push_back(sum.finish());
    return rows;
  }

 private:
  std::int64_t systems() const {
    return plan_.get<std::int64_t>("systems") * (options_.full ? 4 : 1);
  }

  std::vector<double> shares(const Json& plan) const {
    if (options_.participation == 0) return plan.get<std::vector<double>>("participation");
    if (!(options_.participation > 0 && options_.participation <= 1))
      throw BadInput(
          fmt::format("`participation` is {}, not above 0 and at most 1", options_.participation));
    return {options_.participation};
  }

  void refuse_unknown() const {
    std::vector<std::string> names;
    for (const Json& problem : plan_.at("problems").elements())
      names.push_back(problem.get<std::string>("name"));
    const std::vector<std::string_view> known(names.begin(), names.end());
    for (const std::string& name : options_.problems)
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw BadInput(
            fmt::format("`problems`: the benchmark has no '{}'{}", name, hint(name, known)));
  }

  bool chosen(const Json& problem) const {
    const std::string name = problem.get<std::string>("name");
    if (!options_.problems.empty())
      return std::find(options_.problems.begin(), options_.problems.end(), name) !=
             options_.problems.end();
    return !problem.contains("files") || !options_.data.empty();
  }

  // A replicate in which any method diverged counts for none: such methods run apart from the
  // others.
  void add_system(const Cell& cell, const std::vector<std::size_t>& running, std::uint64_t seed,
                  std::vector<Sum>& sums) const {
    std::vector<Entry> entries;
    for (const std::size_t e : running) entries.push_back(sums[e].entry);
    const SettingResult result = one_system(cell, entries, seed);
    std::vector<std::size_t> fine;
    for (std::size_t k = 0; k < running.size(); ++k)
      if (result.diverged.at(k + 1).second == 0) fine.push_back(running[k]);
    const bool whole = fine.size() == running.size();
    if (whole || running.size() == 1) {
      for (std::size_t k = 0; k < running.size(); ++k) sums[running[k]].add(result, k + 1);
      return;
    }
    if (!fine.empty()) add_system(cell, fine, seed, sums);
    for (const std::size_t e : running)
      if (std::find(fine.begin(), fine.end(), e) == fine.end()) add_system(cell, {e}, seed, sums);
  }

  // Why a method cannot run on a problem; empty: it can. It is asked once, by a run of one step.
  const std::string& refusal(const Cell& cell, const Entry& e) {
    const auto [at, fresh] = refusals_.try_emplace({cell.name(), e.kind + "\n" + e.parameters});
    if (fresh) try {
        one_system(cell, {e}, options_.seed, {"run.steps=1", "run.tail=1", "run.replicates=1"});
      } catch (const BadInput& why) {
        at->second = why.what();
      }
    return at->second;
  }

  std::string spec(const Cell& cell, const std::vector<Entry>& entries) const {
    std::string text = cell.problem->get<std::string>("spec");
    text += "[[method]]\nkind = \"independent\"\n";
    int number = 0;  // the same kind may come with several parameters
    for (const Entry& e : entries) {
      text += fmt::format("[[method]]\nkind = \"{}\"\nname = \"{} {}\"\n{}\n", e.kind, e.kind,
                          ++number, e.parameters);
      if (const Json* more = cell.problem->find(e.kind)) text += as_toml(*more) + "\n";
    }
    return text;
  }

  // One system: its replicates differ in their samples alone, so that agents can be told apart.
  SettingResult one_system(const Cell& cell, const std::vector<Entry>& entries, std::uint64_t seed,
                           const std::vector<std::string>& more = {}) const {
    const std::string text = spec(cell, entries);
    std::vector<std::string> set = {
        "problem.redraw=samples", fmt::format("run.seed={}", seed),
        fmt::format("run.replicates={}", plan_.get<std::int64_t>("replicates")),
        "run.curve_agents=[]"};
    for (const std::string& key : cell.problem->get<std::vector<std::string>>("keys"))
      set.push_back(fmt::format("{}={}", key, cell.level));
    if (cell.participation < 1)
      set.push_back(fmt::format("run.participation={}", cell.participation));
    if (cell.problem->contains("files"))
      for (const std::string& key : cell.problem->get<std::vector<std::string>>("files")) {
        const std::filesystem::path file =
            read_study(text, cell.name()).settings.at(0).spec.problem.text(key);
        const std::filesystem::path below =
            options_.data / file.lexically_relative(std::filesystem::current_path());
        set.push_back(fmt::format("problem.{}={}", key, below.string()));
      }
    set.insert(set.end(), more.begin(), more.end());
    const Study study = read_study(text, cell.name(), set);
    return run_study(study, {.threads = options_.threads, .stop = options_.stop, .progress = {}})
        .settings.at(0);
  }

  const BenchmarkOptions& options_;
  const Json& plan_;
  std::vector<Cell> cells_;
  std::vector<std::string> methods_;
  std::map<std::pair<std::string, std::string>, std::string> refusals_;  // by problem and method
};

std::string cell_name(const BenchmarkRow& row) {
  return fmt::format("{} at {}{}", row.problem, row.level,
                     row.participation < 1 ? fmt::format(", {} present", row.participation) : "");
}

using Key = std::pair<std::string, bool>;  // method, tuned

// Ranks of all methods in each cell, those with default and with tuned parameters apart. A method
// that diverged in every system is last; one that was refused has no rank.
std::map<Key, std::vector<double>> ranks_of(const std::vector<BenchmarkRow>& rows) {
  std::map<std::pair<std::string, bool>, std::vector<const BenchmarkRow*>> cells;
  for (const BenchmarkRow& row : rows)
    if (row.refused.empty()) cells[{cell_name(row), row.tuned}].push_back(&row);
  std::map<Key, std::vector<double>> ranks;
  const auto value = [](const BenchmarkRow* r) {
    return std::isfinite(r->ratio.mean) ? r->ratio.mean : std::numeric_limits<double>::infinity();
  };
  for (const auto& [name, cell] : cells)
    for (const BenchmarkRow* row : cell) {
      double below = 0, same = 0;
      for (const BenchmarkRow* other : cell) {
        below += value(other) < value(row) ? 1 : 0;
        same += value(other) == value(row) ? 1 : 0;
      }
      ranks[{row->method, row->tuned}].push_back(below + (same + 1) / 2);
    }
  return ranks;
}

std::vector<BenchmarkSummary> summarise(const std::vector<BenchmarkRow>& rows) {
  std::vector<BenchmarkSummary> all;
  for (const auto& [key, ranks] : ranks_of(rows)) {
    BenchmarkSummary s{.method = key.first, .tuned = key.second};
    s.rank = estimate(ranks);
    s.best = std::numeric_limits<double>::infinity();
    for (const BenchmarkRow& row : rows) {
      if (Key(row.method, row.tuned) != key || !row.refused.empty()) continue;
      s.diverged += row.diverged;
      s.seconds += row.seconds;
      if (!std::isfinite(row.ratio.mean)) continue;
      ++s.cells;
      s.gains += row.ratio.hi < 1 ? 1 : 0;
      s.harms += row.ratio.lo > 1 ? 1 : 0;
      s.harmed += row.harmed;
      s.worst_agent = std::max(s.worst_agent, row.worst_agent);
      if (row.ratio.mean < s.best) s.best = row.ratio.mean, s.best_cell = cell_name(row);
      if (row.ratio.mean > s.worst) s.worst = row.ratio.mean, s.worst_cell = cell_name(row);
    }
    s.harmed /= std::max(1, s.cells);
    all.push_back(std::move(s));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.tuned, a.rank.mean) < std::pair(b.tuned, b.rank.mean);
  });
  return all;
}

}  // namespace

BenchmarkResult run_benchmark(const BenchmarkOptions& options) {
  const double begin = now();
  const Json plan = parse_json(benchmark_plan()), tuned = parse_json(benchmark_tuned());
  Bench bench(options, plan);
  BenchmarkResult result;
  const bool with_tuned = options.tuned && !tuned.at("parameters").empty();
  double done = 0;
  for (const Cell& cell : bench.cells()) {
    std::vector<Entry> entries;
    for (const std::string& kind : bench.methods()) {
      entries.push_back({kind, ""});
      const Json* of = tuned.at("parameters").find(cell.name());
      const Json* found = with_tuned && of != nullptr ? of->find(kind) : nullptr;
      if (found != nullptr) entries.push_back({kind, as_toml(*found), true});
    }
    for (BenchmarkRow& row : bench.run(cell, entries, options.seed)) {
      // Where the search found nothing better, the tuned method is the default one.
      const bool same = with_tuned && !row.tuned &&
                        std::none_of(entries.begin(), entries.end(), [&](const Entry& e) {
                          return e.tuned && e.kind == row.method;
                        });
      result.rows.push_back(row);
      if (!same) continue;
      row.tuned = true;
      result.rows.push_back(std::move(row));
    }
    if (options.progress) options.progress(++done / static_cast<double>(bench.cells().size()));
  }
  result.complete = !bench.stopped();
  result.summaries = summarise(result.rows);
  result.seconds = now() - begin;
  return result;
}

std::string tune_benchmark(const BenchmarkOptions& options, const std::string& command) {
  const Json plan = parse_json(benchmark_plan());
  Bench bench(options, plan);
  std::vector<Entry> entries;
  std::vector<const Json*> candidates;  // of each entry; nullptr: the default
  for (const std::string& kind : bench.methods()) {
    const Json* grid = plan.at("grid").find(kind);
    if (grid == nullptr) continue;
    entries.push_back({kind, ""});
    candidates.push_back(nullptr);
    for (const Json& candidate : grid->elements()) {
      entries.push_back({kind, as_toml(candidate)});
      candidates.push_back(&candidate);
    }
  }
  std::map<std::string, std::vector<double>> losses;  // by problem, one per entry
  double done = 0;
  for (const Cell& cell : bench.cells()) {
    std::vector<double>& sums = losses[cell.name()];
    sums.resize(entries.size());
    const std::vector<BenchmarkRow> rows = bench.run(cell, entries, kFirstTuningSeed);
    for (std::size_t e = 0; e < rows.size(); ++e)
      sums[e] +=
          rows[e].refused.empty() && rows[e].diverged == 0 ? std::log(rows[e].ratio.mean) : kNone;
    if (options.progress) options.progress(++done / static_cast<double>(bench.cells().size()));
  }
  if (bench.stopped()) throw Interrupted();
  Json chosen = Json::object();
  for (const auto& [problem, sums] : losses)
    for (std::size_t first = 0, e = 0; first < entries.size(); first = e) {
      std::size_t best = first;  // the default wins ties, and where nothing else is finite
      for (e = first; e < entries.size() && entries[e].kind == entries[first].kind; ++e)
        if (sums[e] < sums[best] || (std::isnan(sums[best]) && !std::isnan(sums[e]))) best = e;
      if (candidates[best] != nullptr) chosen[problem][entries[best].kind] = *candidates[best];
    }
  return print_json(Json{{"command", command}, {"parameters", std::move(chosen)}}, {.indent = 1}) +
         "\n";
}

}  // namespace affpcl
