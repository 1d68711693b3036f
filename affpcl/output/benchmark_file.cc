#include "affpcl/output/benchmark_file.h"

#include <fmt/format.h>

#include "affpcl/base/json.h"
#include "affpcl/math/kernels.h"
#include "affpcl/output/page.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

Json to_json(const Estimate& e) { return {{"mean", e.mean}, {"lo", e.lo}, {"hi", e.hi}}; }

Json to_json(const BenchmarkRow& r) {
  Json row{{"problem", r.problem}, {"level", r.level}, {"participation", r.participation},
           {"method", r.method},   {"tuned", r.tuned}, {"parameters", r.parameters}};
  if (!r.refused.empty()) {
    row["refused"] = r.refused;
    return row;
  }
  row["vs_independent"] = to_json(r.ratio);
  row["by_system"] = r.by_system;
  row["worst_agent"] = r.worst_agent;
  row["harmed"] = r.harmed;
  row["diverged"] = r.diverged;
  row["replicates"] = r.replicates;
  row["sent"] = r.sent;
  row["seconds"] = r.seconds;
  return row;
}

Json to_json(const BenchmarkSummary& s) {
  return {{"method", s.method},
          {"tuned", s.tuned},
          {"rank", to_json(s.rank)},
          {"cells", s.cells},
          {"gains", s.gains},
          {"harms", s.harms},
          {"best", s.best},
          {"best_cell", s.best_cell},
          {"worst", s.worst},
          {"worst_cell", s.worst_cell},
          {"worst_agent", s.worst_agent},
          {"harmed", s.harmed},
          {"diverged", s.diverged},
          {"seconds", s.seconds}};
}

Json as_json(const BenchmarkResult& result, const std::string& command) {
  Json json{{"kind", "benchmark"},
            {"manifest",
             {{"version", kVersion},
              {"command", command},
              {"instruction_set", instruction_set()},
              {"seconds", result.seconds},
              {"complete", result.complete},
              {"spec", parse_json(benchmark_plan())},
              {"tuned", parse_json(benchmark_tuned())}}},
            {"methods", Json::array()},
            {"rows", Json::array()}};
  for (const BenchmarkSummary& s : result.summaries) json["methods"].push_back(to_json(s));
  for (const BenchmarkRow& r : result.rows) json["rows"].push_back(to_json(r));
  return json;
}

}  // namespace

std::string benchmark_json(const BenchmarkResult& result, const std::string& command) {
  return print_json(as_json(result, command), {.indent = 1, .flat_lists = true}) + "\n";
}

std::string benchmark_page(const BenchmarkResult& result, const std::string& command) {
  Json data{{"results", Json::array()}};
  data["results"].push_back(as_json(result, command));
  return page_of(data);
}

std::string benchmark_table(const BenchmarkResult& result) {
  std::string out;
  bool first = true, tuned = false;
  for (const BenchmarkSummary& s : result.summaries) {
    if (first || s.tuned != tuned) {
      out += fmt::format("{}parameters: {}\n", first ? "" : "\n", s.tuned ? "tuned" : "default");
      out += fmt::format("  {:<14} {:>16} {:>6} {:>6}  {:<32} {:<32} {:>8} {:>7} {:>7}\n", "method",
                         "mean rank", "gains", "harms", "best", "worst", "agent", "harmed", "s");
    }
    first = false, tuned = s.tuned;
    out += fmt::format(
        "  {:<14} {:>4.1f} [{:>4.1f}, {:>4.1f}] {:>3}/{:<2} {:>3}/{:<2}  {:<32} {:<32} {:>8.3g} "
        "{:>6.0f}% {:>7.2f}\n",
        s.method, s.rank.mean, s.rank.lo, s.rank.hi, s.gains, s.cells, s.harms, s.cells,
        fmt::format("{:.3g} {}", s.best, s.best_cell),
        fmt::format("{:.3g} {}", s.worst, s.worst_cell), s.worst_agent, 100 * s.harmed, s.seconds);
  }
  return out;
}

}  // namespace affpcl
