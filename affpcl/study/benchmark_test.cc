#include "affpcl/study/benchmark.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/method/method.h"
#include "affpcl/output/benchmark_file.h"
#include "affpcl/problem/catalogue.h"

namespace affpcl {
namespace {

const BenchmarkResult& small() {
  static const BenchmarkResult kResult = run_benchmark(
      {.methods = {"fedavg", "ditto", "wga"}, .problems = {"tabular", "logistic"}, .threads = 1});
  return kResult;
}

TEST(Benchmark, EveryMethodHasARowInEveryCell) {
  // 2 problems, 3 levels, 3 methods, default and tuned.
  const bool tuned = !parse_json(benchmark_tuned()).at("parameters").empty();
  EXPECT_EQ(small().rows.size(), 2u * 3 * 3 * (tuned ? 2 : 1));
  for (const BenchmarkRow& row : small().rows) {
    if (row.method == "wga" && row.problem == "logistic") {
      EXPECT_NE(row.refused.find("linear"), std::string::npos);
      continue;
    }
    EXPECT_EQ(row.refused, "");
    EXPECT_EQ(row.by_system.size(), 5u);
    EXPECT_LE(row.ratio.lo, row.ratio.mean);
    EXPECT_GE(row.worst_agent, row.ratio.mean);  // no mean is above its largest member
    EXPECT_GT(row.sent, 0);
    double logs = 0;
    for (double r : row.by_system) logs += std::log(r) / 5;
    EXPECT_NEAR(row.ratio.mean, std::exp(logs), 1e-12);
  }
}

// FedAvg gains where agents are alike and harms where they are not.
TEST(Benchmark, FedAvgGainsAtLevel0AndHarmsAtTheHighest) {
  for (const BenchmarkRow& row : small().rows) {
    if (row.method != "fedavg" || row.problem != "tabular") continue;
    if (row.level == 0) {
      EXPECT_LT(row.ratio.hi, 1);
    }
    if (row.level == 0.8) {
      EXPECT_GT(row.ratio.lo, 1);
      EXPECT_GT(row.harmed, 0.5);
    }
  }
}

// Two of 20 agents in a round: AffPCL gains less than with all of them.
TEST(Benchmark, SomeAgentsInEachRound) {
  BenchmarkOptions options{
      .methods = {"affpcl"}, .problems = {"tabular"}, .tuned = false, .threads = 1};
  const BenchmarkResult all = run_benchmark(options);
  options.participation = 0.1;
  const BenchmarkResult some = run_benchmark(options);
  ASSERT_EQ(some.rows.size(), all.rows.size());
  for (std::size_t r = 0; r < all.rows.size(); ++r) {
    EXPECT_EQ(some.rows[r].refused, "");
    EXPECT_EQ(some.rows[r].participation, 0.1);
    EXPECT_EQ(all.rows[r].participation, 1);
    EXPECT_GT(some.rows[r].ratio.mean, all.rows[r].ratio.mean);
  }
  options.participation = 2;
  EXPECT_THROW(run_benchmark(options), BadInput);
}

// Ranks of a cell add up: 3 methods on tabular, 2 on logistic.
TEST(Benchmark, RanksAreThoseOfTheCells) {
  double sum = 0;
  for (const BenchmarkSummary& s : small().summaries) {
    if (s.tuned) continue;
    const int cells = s.method == "wga" ? 3 : 6;
    EXPECT_EQ(s.cells, cells);
    sum += s.rank.mean * cells;
  }
  EXPECT_NEAR(sum, 3 * (1 + 2 + 3) + 3 * (1 + 2), 1e-9);
}

TEST(Benchmark, RepeatsToTheBitOnMoreThreads) {
  const BenchmarkResult again =
      run_benchmark({.methods = {"ditto"}, .problems = {"tabular"}, .tuned = false, .threads = 2});
  for (const BenchmarkRow& row : again.rows)
    for (const BenchmarkRow& before : small().rows)
      if (before.method == row.method && before.problem == row.problem && !before.tuned &&
          before.level == row.level) {
        EXPECT_EQ(row.by_system, before.by_system);
        EXPECT_EQ(row.worst_agent, before.worst_agent);
      }
}

TEST(Benchmark, RefusesWhatItDoesNotHave) {
  EXPECT_THROW(run_benchmark({.methods = {"fedavgg"}}), BadInput);
  EXPECT_THROW(run_benchmark({.problems = {"nothing"}}), BadInput);
}

// Every parameter of the plan's grid and of the tuned ones is one that its method has, and every
// method of the catalogue that has a parameter of its own is in the grid.
TEST(Benchmark, ThePlanNamesMethodsAndParametersThatExist) {
  const auto check = [](const std::string& kind, const Json& candidate) {
    for (const JsonMember& m : candidate.members()) {
      bool known = false;
      for (const Param& p : method_kind(kind).params) known |= p.name == m.key;
      EXPECT_TRUE(known) << kind << '.' << m.key;
    }
  };
  const Json plan = parse_json(benchmark_plan()), tuned = parse_json(benchmark_tuned());
  for (const JsonMember& m : plan.at("grid").members())
    for (const Json& candidate : m.value.elements()) check(m.key, candidate);
  for (const JsonMember& problem : tuned.at("parameters").members())
    for (const JsonMember& m : problem.value.members()) check(m.key, m.value);
  for (const MethodKind& kind : method_kinds())
    EXPECT_EQ(plan.at("grid").contains(kind.name), !kind.params.empty()) << kind.name;
}

TEST(Benchmark, ItsFilesHoldTheRows) {
  const Json json = parse_json(benchmark_json(small(), "command"));
  EXPECT_EQ(json.at("rows").size(), small().rows.size());
  EXPECT_EQ(json.at("methods").size(), small().summaries.size());
  EXPECT_EQ(json.at("manifest").get<std::string>("command"), "command");
  EXPECT_NE(benchmark_table(small()).find("ditto"), std::string::npos);
}

}  // namespace
}  // namespace affpcl
