// The result folder's files, from a result made by hand.
#include "affpcl/output/results.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "affpcl/base/json.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Study study() {
  return read_study(
      "[problem]\nkind = \"gaussian\"\nagents = 2\n[run]\nsteps = 20\nseed = 7\n[[method]]\nkind = "
      "\"affpcl\"\nname = \"affpcl, \\\"ours\\\"\"\n[[method]]\nkind = \"independent\"\n[sweep]\n"
      "\"problem.delta_env\" = [0.0, 0.3]\n",
      "my.toml");
}

StudyResult result() {
  MethodResult a;
  a.name = "affpcl, \"ours\"";
  a.mse = {0.5, 0.25, 0.75, 0.4};
  a.vs_independent = {0.1, 0.05, 0.15, 0.1};
  a.central_x = 0.01;
  a.central_theta = kNaN;
  a.agents = {{{0.4, 0.3, 0.5, 0.4}, {0.2, 0.1, 0.3, 0.2}},
              {{0.6, kNaN, kNaN, 0.6}, {kInf, kNaN, kNaN, 1}}};
  a.curves = {{-1, {10, 20}, {{1, 0.5, 1.5, 1}, {0.5, kNaN, kNaN, 0.5}}},
              {1, {10, 20}, {{2, 1, 3, 2}, {1.0 / 3, 0, kInf, 1}}}};
  a.sent = 15;
  a.up = a.down = 15;
  a.seconds = 0.125;
  MethodResult b = a;
  b.name = "independent";
  b.vs_independent = {kNaN, kNaN, kNaN, kNaN};
  b.agents = {{{kNaN, kNaN, kNaN, kNaN}, {kNaN, kNaN, kNaN, kNaN}}};
  b.sent = 0;
  b.up = b.down = 0;
  SettingResult first;
  first.at = {{"problem.delta_env", Value(0.0)}, {"method.x.name", Value(std::string("a,b"))}};
  first.replicates = 10;
  first.used = 9;
  first.diverged = {{"affpcl, \"ours\"", 1}, {"independent", 0}};
  first.steps = 20;
  first.methods = {a, b};
  SettingResult second = first;
  second.at[0].second = Value(0.3);
  StudyResult r;
  r.settings = {first, second};
  r.complete = false;
  r.seconds = 1.5;
  r.threads = 2;
  return r;
}

TEST(SummaryJson, HasTheContractsManifest) {
  const Json m =
      parse_json(summary_json(study(), result(), "affpcl run 'my spec.toml'"))["manifest"];
  for (const char* key : {"version", "spec", "seed", "command", "host", "instruction_set",
                          "compiler", "threads", "ranks", "seconds", "complete"})
    EXPECT_TRUE(m.contains(key)) << key;
  EXPECT_EQ(m["command"], "affpcl run 'my spec.toml'");
  EXPECT_EQ(m["seed"], 7);
  EXPECT_EQ(m["threads"], 2);
  EXPECT_EQ(m["ranks"], 1);
  EXPECT_EQ(m["seconds"], 1.5);
  EXPECT_EQ(m["complete"], false);
  EXPECT_EQ(m["spec"]["problem"]["agents"], 2);
  EXPECT_EQ(m["spec"]["method"][0]["name"], "affpcl, \"ours\"");
}

TEST(SummaryJson, HasTheContractsSettings) {
  const Json j = parse_json(summary_json(study(), result(), ""));
  ASSERT_EQ(j["settings"].size(), 2u);
  const Json& s = j["settings"][1];
  EXPECT_EQ(s["at"]["problem.delta_env"], 0.3);
  EXPECT_EQ(s["at"]["method.x.name"], "a,b");
  EXPECT_EQ(s["replicates"], 10);
  EXPECT_EQ(s["diverged"]["affpcl, \"ours\""], 1);
  EXPECT_EQ(s["diverged"]["independent"], 0);
  ASSERT_EQ(s["methods"].size(), 2u);
  const Json& m = s["methods"][0];
  EXPECT_EQ(m["name"], "affpcl, \"ours\"");
  EXPECT_EQ(m["mse"], parse_json(R"({"mean": 0.5, "lo": 0.25, "hi": 0.75, "median": 0.4})"));
  EXPECT_EQ(m["vs_independent"], parse_json(R"({"mean": 0.1, "lo": 0.05, "hi": 0.15})"));
  EXPECT_EQ(m["central"]["x"], 0.01);
  EXPECT_EQ(m["comm"], parse_json(R"({"up": 15, "down": 15})"));
  EXPECT_EQ(m["seconds"], 0.125);
  ASSERT_EQ(m["agents"].size(), 2u);
  EXPECT_EQ(m["agents"][1]["agent"], 1);
  EXPECT_EQ(m["agents"][0]["mse"]["median"], 0.4);
  EXPECT_EQ(m["agents"][0]["vs_independent"]["lo"], 0.1);
}

TEST(SummaryJson, WhatIsNotFiniteIsNull) {
  const std::string text = summary_json(study(), result(), "");
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf\""), std::string::npos);
  const Json s = parse_json(text)["settings"][0];
  EXPECT_TRUE(s["methods"][0]["central"]["theta"].is_null());
  EXPECT_TRUE(s["methods"][0]["agents"][1]["mse"]["lo"].is_null());
  EXPECT_TRUE(s["methods"][0]["agents"][1]["vs_independent"]["mean"].is_null());
  EXPECT_TRUE(s["methods"][1]["vs_independent"].is_null());  // null as a whole without independent
  EXPECT_TRUE(s["methods"][1]["agents"][0]["mse"]["mean"].is_null());
}

// Splits one CSV record as RFC 4180 says.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      out.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}
std::vector<std::vector<std::string>> rows(const std::string& csv) {
  std::vector<std::vector<std::string>> out;
  std::stringstream in(csv);
  for (std::string line; std::getline(in, line);) out.push_back(cells(line));
  return out;
}
using Row = std::vector<std::string>;

TEST(CurvesCsv, HasTheContractsColumns) {
  const auto csv = rows(curves_csv(result()));
  EXPECT_EQ(csv[0], (Row{"problem.delta_env", "method.x.name", "method", "agent", "step",
                         "mse_mean", "mse_lo", "mse_hi", "mse_median"}));
  ASSERT_EQ(csv.size(), 1u + 2 * 2 * 4);
  EXPECT_EQ(csv[1], (Row{"0", "a,b", "affpcl, \"ours\"", "all", "10", "1", "0.5", "1.5", "1"}));
  EXPECT_EQ(csv[2], (Row{"0", "a,b", "affpcl, \"ours\"", "all", "20", "0.5", "", "", "0.5"}));
  EXPECT_EQ(csv[4][3], "1");
  EXPECT_EQ(std::stod(csv[4][5]), 1.0 / 3);  // full precision
  EXPECT_EQ(csv[4][7], "");
  EXPECT_EQ(csv[9][0], "0.3");
}

TEST(AgentsCsv, HasTheContractsColumns) {
  const auto csv = rows(agents_csv(result()));
  EXPECT_EQ(csv[0], (Row{"problem.delta_env", "method.x.name", "method", "agent", "mse_mean",
                         "mse_lo", "mse_hi", "vs_independent", "vs_lo", "vs_hi"}));
  ASSERT_EQ(csv.size(), 1u + 2 * 3);
  EXPECT_EQ(csv[1],
            (Row{"0", "a,b", "affpcl, \"ours\"", "0", "0.4", "0.3", "0.5", "0.2", "0.1", "0.3"}));
  EXPECT_EQ(csv[2], (Row{"0", "a,b", "affpcl, \"ours\"", "1", "0.6", "", "", "", "", ""}));
  EXPECT_EQ(csv[3], (Row{"0", "a,b", "independent", "0", "", "", "", "", "", ""}));
}

TEST(Csv, OfNothingIsTheHeader) {
  EXPECT_EQ(curves_csv({}), "method,agent,step,mse_mean,mse_lo,mse_hi,mse_median\n");
  EXPECT_EQ(agents_csv({}), "method,agent,mse_mean,mse_lo,mse_hi,vs_independent,vs_lo,vs_hi\n");
}

TEST(WriteResults, WritesAllThreeAtOnce) {
  namespace fs = std::filesystem;
  const fs::path out =
      fs::path(::testing::TempDir()) / ("affpcl_results_" + std::to_string(getpid()));
  {
    ResultFolder folder(out.string(), false);
    write_results(folder, study(), result(), "cmd");
  }
  for (const char* name : {"summary.json", "curves.csv", "agents.csv"})
    EXPECT_TRUE(fs::exists(out / name)) << name;
  fs::remove_all(out);
}

}  // namespace
}  // namespace affpcl
