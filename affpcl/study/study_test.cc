#include "affpcl/study/study.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/output/results.h"
#include "affpcl/study/limits.h"
#include "affpcl/study/replica.h"

namespace affpcl {
namespace {

const std::string kSpec = R"([problem]
kind = "gaussian"
agents = 6
dim = 2
[run]
steps = 24
replicates = 5
seed = 3
step_size = 0.01
tail = 6
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
period = 5
)";

Study study(const std::vector<std::string>& set = {}, const std::string& more = "") {
  return read_study(kSpec + more, "my.toml", set);
}
StudyOptions options(int threads, const std::atomic<bool>* stop = nullptr,
                     std::function<void(double)> progress = {}, const std::string& trace = "") {
  return {threads, stop, std::move(progress), trace};
}
StudyResult run(const Study& s, int threads = 1) { return run_study(s, options(threads)); }

// The summary without what may differ between two runs of one spec.
std::string core(const Study& s, const StudyResult& r) {
  Json j = parse_json(summary_json(s, r, ""));
  j.erase("manifest");
  for (Json& setting : j["settings"].elements())
    for (Json& method : setting["methods"].elements()) method.erase("seconds");
  return print_json(j) + curves_csv(r) + agents_csv(r);
}

// One replicate, without run_study.
std::vector<Record> by_hand(const Spec& spec, std::uint32_t replicate) {
  const auto team = serial_team();
  const Replica one = make_replica(spec, replicate, *team);
  one.run->advance(spec.run.steps);
  return one.run->finish();
}

void expect_same(const Estimate& a, const Estimate& b) {
  EXPECT_DOUBLE_EQ(a.mean, b.mean);
  EXPECT_DOUBLE_EQ(a.lo, b.lo);
  EXPECT_DOUBLE_EQ(a.hi, b.hi);
}

// For pairing two results: the errors of the replicates, by number.
TEST(RunStudy, KeepsTheErrorOfEachReplicate) {
  const StudyResult r = run(study({"run.first=7", "run.replicates=3"}));
  const SettingResult& s = r.settings.front();
  EXPECT_EQ(s.numbers, (std::vector<std::int64_t>{7, 8, 9}));
  for (const MethodResult& m : s.methods) {
    ASSERT_EQ(m.by_replicate.size(), 3u);
    EXPECT_EQ(estimate(m.by_replicate).mean, m.mse.mean);
  }
  EXPECT_EQ(s.methods[0].kind, "affpcl");
}

TEST(RunStudy, KnowsHowFarAgentsAreFromTheCentre) {
  const std::vector<std::string> same = {"problem.delta_env=0.0", "problem.delta_obj=0.0"};
  const StudyResult alike = run(study(same));
  for (double distance : alike.settings.front().distance) EXPECT_NEAR(distance, 0, 1e-12);

  const Study apart = study({"problem.delta_obj=0.5", "run.replicates=1"});
  const Spec& spec = apart.settings.front().spec;
  const auto problem = make_problem(spec, 0);
  const Truth& truth = *problem->truth();
  const StudyResult far = run(apart);
  ASSERT_EQ(far.settings.front().distance.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    const In x = truth.x.block(0)[{0, 2}];
    EXPECT_DOUBLE_EQ(far.settings.front().distance[static_cast<std::size_t>(i)],
                     std::hypot(x.at(0, i) - truth.xc[0], x.at(1, i) - truth.xc[1]));
  }
}

TEST(Study, SummarisesItsReplicates) {
  for (const char* redraw : {"system", "samples"}) {
    const Study s = study({std::string("problem.redraw=") + redraw});
    const StudyResult r = run(s);
    EXPECT_TRUE(r.complete);
    ASSERT_EQ(r.settings.size(), 1u);
    const SettingResult& setting = r.settings.front();
    EXPECT_EQ(setting.replicates, 5);
    EXPECT_EQ(setting.used, 5);
    EXPECT_EQ(setting.steps, 24);
    EXPECT_TRUE(setting.at.empty());
    std::vector<std::vector<Record>> all;
    for (std::uint32_t k = 0; k < 5; ++k) all.push_back(by_hand(s.settings.front().spec, k));
    const auto over = [&](auto&& of) {
      std::vector<double> v;
      for (const auto& records : all) v.push_back(of(records));
      return v;
    };
    const auto alone = over([](const auto& rec) { return rec[1].mse; });
    for (std::size_t m = 0; m < 3; ++m) {
      const MethodResult& method = setting.methods[m];
      const auto mine = over([m](const auto& rec) { return rec[m].mse; });
      expect_same(method.mse, estimate(mine));
      EXPECT_DOUBLE_EQ(method.mse.median, median(mine));
      expect_same(method.vs_independent, ratio_of_means(mine, alone));
      ASSERT_EQ(method.agents.size(), 6u);
      for (std::size_t i = 0; i < 6; ++i) {
        const auto a = over([&](const auto& rec) { return rec[m].agent_mse[i]; });
        expect_same(method.agents[i].mse, estimate(a));
        expect_same(method.agents[i].vs_independent,
                    ratio_of_means(a, over([&](const auto& rec) { return rec[1].agent_mse[i]; })));
      }
      ASSERT_EQ(method.curves.size(), 3u);  // all, the first, the last
      EXPECT_EQ(method.curves[0].agent, -1);
      EXPECT_EQ(method.curves[1].agent, 0);
      EXPECT_EQ(method.curves[2].agent, 5);
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(method.curves[c].steps, all[0][m].steps);
        for (std::size_t t = 0; t < method.curves[c].steps.size(); ++t)
          expect_same(method.curves[c].mse[t], estimate(over([&](const auto& rec) {
                        return c == 0 ? rec[m].curve[t] : rec[m].agents[c - 1][t];
                      })));
      }
      EXPECT_EQ(method.sent, all[0][m].sent);
    }
    EXPECT_DOUBLE_EQ(setting.methods[0].central_x,
                     mean(over([](const auto& rec) { return rec[0].central_x; })));
    EXPECT_TRUE(std::isnan(setting.methods[1].central_x));
    EXPECT_EQ(setting.methods[1].vs_independent.mean, 1);
  }
}

TEST(Study, GivesTheSameNumbersForAnyNumberOfThreads) {
  // Few agents (whole replicates go to threads), many agents and one replicate (blocks do).
  const std::string sweep = "[sweep]\n\"problem.delta_env+problem.delta_obj\" = [0.0, 0.3]\n";
  for (const std::vector<std::string>& set : {std::vector<std::string>{},
                                              {"problem.agents=700", "run.replicates=1"},
                                              {"problem.kind=tabular", "run.replicates=2"}}) {
    const Study s = study(set, sweep);
    const std::string one = core(s, run(s, 1));
    EXPECT_EQ(core(s, run(s, 2)), one);
    EXPECT_EQ(core(s, run(s, 3)), one);
    EXPECT_EQ(core(s, run(s, 1)), one);
  }
}

TEST(Study, SettingsComeInOrderAndStandAlone) {
  const Study swept = study({}, "[sweep]\n\"problem.delta_env\" = [0.0, 0.3, 0.8]\n");
  const StudyResult r = run(swept, 2);
  ASSERT_EQ(r.settings.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double delta = std::get<double>(r.settings[i].at.front().second);
    const StudyResult alone = run(study({"problem.delta_env=" + std::to_string(delta)}));
    expect_same(alone.settings.front().methods[0].mse, r.settings[i].methods[0].mse);
  }
}

TEST(Study, RedrawSamplesKeepsTheSystem) {
  // With a step so small that nothing moves, the error is |x*|^2: the same in every replicate, or
  // not.
  const std::vector<std::string> still = {"run.step_size=1e-300", "problem.delta_obj=0.5"};
  std::vector<std::string> samples = still;
  samples.push_back("problem.redraw=samples");
  const Estimate a = run(study(still)).settings.front().methods[1].mse,
                 b = run(study(samples)).settings.front().methods[1].mse;
  EXPECT_GT(a.hi - a.lo, 1e-3 * a.mean);
  EXPECT_NEAR(b.hi - b.lo, 0, 1e-12 * b.mean);
}

TEST(Study, WithoutIndependentThereIsNothingToCompareWith) {
  const Study s = read_study(
      "[problem]\nkind = \"gaussian\"\nagents = 3\n[run]\nsteps = 5\nreplicates = "
      "2\n[[method]]\nkind = "
      "\"fedavg\"\n",
      "x");
  const MethodResult m = run(s).settings.front().methods.front();
  EXPECT_TRUE(std::isnan(m.vs_independent.mean));
  EXPECT_TRUE(std::isnan(m.agents.front().vs_independent.mean));
  EXPECT_TRUE(std::isfinite(m.mse.lo));
}

TEST(Study, OneReplicateHasNoInterval) {
  const MethodResult m = run(study({"run.replicates=1"})).settings.front().methods.front();
  EXPECT_TRUE(std::isfinite(m.mse.mean));
  EXPECT_TRUE(std::isnan(m.mse.lo));
  EXPECT_TRUE(std::isnan(m.vs_independent.lo));
}

TEST(Study, CurveAgentsAreSortedAndNamedOnce) {
  const StudyResult r = run(study({"run.curve_agents=[-1, 2, 5, 2]"}));
  const auto& curves = r.settings.front().methods.front().curves;
  ASSERT_EQ(curves.size(), 3u);
  EXPECT_EQ(curves[1].agent, 2);
  EXPECT_EQ(curves[2].agent, 5);
}

TEST(Study, ProgressRisesToOne) {
  double last = 0;
  bool rising = true;
  run_study(study(), options(2, nullptr, [&](double share) {
              rising = rising && share >= last;
              last = share;
            }));
  EXPECT_TRUE(rising);
  EXPECT_NEAR(last, 1, 1e-9);
}

// ---- divergence ----

TEST(StudyDivergence, ReplicatesInWhichAnyMethodDivergedAreLeftOutOfEveryMean) {
  // A step at which some replicates leave the allowed range and some do not.
  const Study s =
      study({"run.replicates=20", "method.independent.step_size=0.11", "run.diverged_above=3"});
  const StudyResult r = run(s);
  const SettingResult& setting = r.settings.front();
  std::vector<std::int64_t> diverged(3);
  std::vector<double> clean, clean_alone;
  for (std::uint32_t k = 0; k < 20; ++k) {
    const std::vector<Record> records = by_hand(s.settings.front().spec, k);
    bool any = false;
    for (std::size_t m = 0; m < 3; ++m)
      if (records[m].diverged_at >= 0) ++diverged[m], any = true;
    if (!any) clean.push_back(records[0].mse), clean_alone.push_back(records[1].mse);
  }
  ASSERT_GT(clean.size(), 2u) << "choose another step: too many diverge";
  ASSERT_LT(clean.size(), 18u) << "choose another step: too few diverge";
  EXPECT_EQ(setting.replicates, 20);
  EXPECT_EQ(setting.used, static_cast<std::int64_t>(clean.size()));
  for (std::size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(setting.diverged[m].first, setting.methods[m].name);
    EXPECT_EQ(setting.diverged[m].second, diverged[m]);
  }
  expect_same(setting.methods[0].mse, estimate(clean));
  expect_same(setting.methods[0].vs_independent, ratio_of_means(clean, clean_alone));
}

TEST(StudyDivergence, AMethodThatAlwaysDivergesHasNoMeanAndNoNaNInTheFiles) {
  const Study s = study({"method.independent.step_size=5"});
  const StudyResult r = run(s);
  const SettingResult& setting = r.settings.front();
  EXPECT_EQ(setting.used, 5);
  EXPECT_EQ(setting.diverged[1].second, 5);
  EXPECT_EQ(setting.diverged[0].second, 0);
  const Json j = parse_json(summary_json(s, r, ""));
  EXPECT_TRUE(j["settings"][0]["methods"][0]["mse"]["mean"].is_number());
  EXPECT_TRUE(j["settings"][0]["methods"][1]["mse"]["mean"].is_null());
  EXPECT_TRUE(j["settings"][0]["methods"][0]["vs_independent"].is_null());
  EXPECT_EQ(curves_csv(r).find("nan"), std::string::npos);
  EXPECT_EQ(agents_csv(r).find("nan"), std::string::npos);
}

// ---- interruption ----

TEST(StudyInterruption, KeepsTheReplicatesThatAreDone) {
  const Study s = study();
  std::atomic<bool> stop{false};
  const StudyResult r = run_study(s, options(1, &stop, [&](double share) { stop = share > 0.5; }));
  EXPECT_FALSE(r.complete);
  ASSERT_EQ(r.settings.size(), 1u);
  EXPECT_EQ(r.settings.front().replicates, 2);  // the third was under way
  EXPECT_EQ(r.settings.front().steps, 24);
  std::vector<double> first_two;
  for (std::uint32_t k = 0; k < 2; ++k)
    first_two.push_back(by_hand(s.settings.front().spec, k)[0].mse);
  expect_same(r.settings.front().methods[0].mse, estimate(first_two));
}

TEST(StudyInterruption, WithinTheFirstReplicateShowsHowFarItCame) {
  const Study s = study({"run.replicates=1"});
  std::atomic<bool> stop{false};
  const StudyResult r = run_study(s, options(1, &stop, [&](double share) { stop = share > 0.4; }));
  EXPECT_FALSE(r.complete);
  ASSERT_EQ(r.settings.size(), 1u);
  const SettingResult& setting = r.settings.front();
  EXPECT_GT(setting.steps, 0);
  EXPECT_LT(setting.steps, 24);
  const Curve& curve = setting.methods[0].curves[0];
  ASSERT_FALSE(curve.steps.empty());
  EXPECT_EQ(curve.steps.back(), static_cast<double>(setting.steps));
  EXPECT_EQ(setting.methods[0].mse.mean, curve.mse.back().mean);
}

TEST(StudyInterruption, WholeSettingsAreKeptAndTheRestLeftOut) {
  const Study s = study({}, "[sweep]\n\"problem.delta_env\" = [0.0, 0.3, 0.8]\n");
  std::atomic<bool> stop{false};
  const StudyResult r = run_study(s, options(1, &stop, [&](double share) { stop = share > 0.35; }));
  EXPECT_FALSE(r.complete);
  ASSERT_EQ(r.settings.size(), 2u);
  EXPECT_EQ(r.settings[0].replicates, 5);
  EXPECT_LT(r.settings[1].replicates, 5);
}

TEST(StudyInterruption, BeforeAnythingIsDoneLeavesNothing) {
  const std::atomic<bool> stop{true};
  const StudyResult r = run_study(study(), options(2, &stop));
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(r.settings.empty());
  EXPECT_NO_THROW(parse_json(summary_json(study(), r, "")));
}

// ---- refusals at run time ----

std::string complaint(const Study& s, const StudyOptions& o = options(1)) {
  try {
    run_study(s, o);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "accepted";
}

TEST(StudyRefuses, WhatNeedsMoreMemoryThanThereIs) {
  const std::string said = complaint(study({"problem.agents=3000000000"}));
  EXPECT_NE(said.find("problem.agents = 3000000000"), std::string::npos) << said;
  EXPECT_NE(said.find("GB"), std::string::npos) << said;
  EXPECT_NO_THROW(refuse_too_large(study().settings.front().spec));
  EXPECT_EQ(agents_hint(study().settings.front().spec), 6);
}

// n environments make M n x d numbers per leaf and a block's ratios n x 64: agents are not the only
// thing that fills the memory.
TEST(StudyRefuses, LongPeriodsAndBatchesCountToo) {
  EXPECT_THROW(
      refuse_too_large(study({"problem.agents=100000", "method.period=10000", "method.batch=100"})
                           .settings.front()
                           .spec),
      BadInput);
}

TEST(StudyRefuses, BadSystemFilesByName) {
  const std::string path =
      ::testing::TempDir() + "affpcl_study_" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"A": [[[1]]], "mu": [[0.9]], "b": [[[1]]]})";
  const Study s = read_study("[problem]\nkind = \"tabular\"\nfile = \"" + path +
                                 "\"\n[[method]]\nkind = \"independent\"\n",
                             "x");
  const std::string said = complaint(s);
  EXPECT_NE(said.find(path), std::string::npos) << said;
  EXPECT_NE(said.find("mu[0] sums to 0.9"), std::string::npos) << said;
  for (int threads : {1, 2}) EXPECT_THROW(run(s, threads), BadInput);
  std::remove(path.c_str());
  EXPECT_NE(complaint(s).find(path), std::string::npos);
}

TEST(StudyRefuses, CurveAgentsAFileDoesNotHave) {
  const std::string path =
      ::testing::TempDir() + "affpcl_agents_" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"A": [[[1]]], "mu": [[1]], "b": [[[1]]]})";
  const Study s =
      read_study("[problem]\nkind = \"tabular\"\nfile = \"" + path +
                     "\"\n[run]\ncurve_agents = [3]\n[[method]]\nkind = \"independent\"\n",
                 "my.toml");
  const std::string said = complaint(s);
  std::remove(path.c_str());
  EXPECT_NE(said.find("run.curve_agents"), std::string::npos) << said;
  EXPECT_NE(said.find("my.toml"), std::string::npos) << said;
}

TEST(StudyRefuses, MethodsTheProblemCannotServe) {
  const Study s = study({"method.affpcl.objective=tabular"});  // needs finitely many states
  const std::string said = complaint(s);
  EXPECT_NE(said.find("my.toml"), std::string::npos) << said;
  EXPECT_NE(said.find("tabular"), std::string::npos) << said;
}

// ---- trace ----

class StudyTrace : public ::testing::Test {
 protected:
  ~StudyTrace() override { std::remove(path.c_str()); }
  std::vector<std::vector<std::string>> read() const {
    std::ifstream in(path);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(in, line);) {
      rows.emplace_back();
      std::stringstream cells(line);
      for (std::string c; std::getline(cells, c, ',');) rows.back().push_back(c);
    }
    return rows;
  }
  const std::string path =
      ::testing::TempDir() + "affpcl_trace_" + std::to_string(getpid()) + ".csv";
};

TEST_F(StudyTrace, HasEveryIterateToFullPrecision) {
  const Study s = study({"run.replicates=2", "run.steps=6"});
  run_study(s, options(2, nullptr, {}, path));
  const auto rows = read();
  using Row = std::vector<std::string>;
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0], (Row{"method", "replicate", "step", "what", "agent", "index", "value"}));
  std::map<std::string, int> count;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 7u);
    ++count[rows[i][0] + ' ' + rows[i][3]];
    EXPECT_EQ(rows[i][4].empty(), rows[i][3] != "x");
  }
  // replicates x (rounds + start) x agents x d
  EXPECT_EQ(count["affpcl x"], 2 * 7 * 6 * 2);
  EXPECT_EQ(count["affpcl xc"], 2 * 7 * 2);
  EXPECT_EQ(count["affpcl thetac"], 2 * 7 * 2);
  EXPECT_EQ(count["independent x"], 2 * 7 * 6 * 2);
  EXPECT_EQ(count["independent xc"], 0);
  EXPECT_EQ(count["fedavg x"], 2 * 3 * 6 * 2);  // period 5 of 6 steps: rounds end at 5 and 6
  EXPECT_EQ(count["fedavg xc"], 2 * 3 * 2);
  EXPECT_EQ(count["fedavg thetac"], 0);

  // The last iterate of the second replicate, to the bit.
  const Spec& spec = s.settings.front().spec;
  const auto team = serial_team();
  const Replica second = make_replica(spec, 1, *team);
  second.run->advance(6);
  int found = 0;
  for (const Row& row : rows)
    if (row[0] == "affpcl" && row[1] == "1" && row[2] == "6" && row[3] == "x") {
      EXPECT_EQ(std::strtod(row[6].c_str(), nullptr),
                second.run->solution(0, std::stoi(row[4]), std::stoi(row[5])));
      ++found;
    }
  EXPECT_EQ(found, 12);
}

TEST_F(StudyTrace, DoesNotDependOnThreads) {
  const Study s = study({"run.steps=6"});
  run_study(s, options(1, nullptr, {}, path));
  const auto one = read();
  run_study(s, options(3, nullptr, {}, path));
  EXPECT_EQ(read(), one);
}

TEST_F(StudyTrace, IsRefusedWhereItMakesNoSense) {
  EXPECT_NE(complaint(study({}, "[sweep]\n\"problem.delta_env\" = [0, 1]\n"),
                      options(1, nullptr, {}, path))
                .find("one setting"),
            std::string::npos);
  EXPECT_NE(complaint(study({"run.steps=10000000"}), options(1, nullptr, {}, path)).find("rows"),
            std::string::npos);
  EXPECT_NE(complaint(study(), options(1, nullptr, {}, "/nowhere/t.csv")).find("/nowhere/t.csv"),
            std::string::npos);
  EXPECT_TRUE(read().empty());
}

// A resumed study does not begin anew what was under way: its progress starts where it had stopped.
TEST(StudyResumed, GoesOnWithinAReplicate) {
  const Study s = study({"run.replicates=1", "run.steps=100"});
  const std::string folder = ::testing::TempDir() + "affpcl_resumed";
  std::filesystem::remove_all(folder);
  std::atomic<bool> stop{false};
  StudyOptions o = options(1, &stop, [&](double share) { stop = share > 0.6; });
  o.checkpoint = folder;
  EXPECT_FALSE(run_study(s, o).complete);
  std::vector<double> shares;
  StudyOptions again = options(1, nullptr, [&](double share) { shares.push_back(share); });
  again.checkpoint = folder;
  again.resume = true;
  const StudyResult r = run_study(s, again);
  EXPECT_TRUE(r.complete);
  ASSERT_FALSE(shares.empty());
  EXPECT_GT(shares.front(), 0.6);
  EXPECT_NEAR(shares.back(), 1, 1e-12);
  EXPECT_EQ(core(s, r), core(s, run(s)));
  std::filesystem::remove_all(folder);
}

// theta^c is given a step with which it diverges: plain AffPCL does too, and the others are still
// shown; guarded, the agents go on alone.
TEST(Study, ADivergingMethodLeavesTheOthersTheirResults) {
  const Study study = read_study(
      "[problem]\nkind = \"gaussian\"\nagents = 4\n[run]\nsteps = 300\nreplicates = 3\n"
      "step_size_objective = 10\n[[method]]\nkind = \"affpcl\"\n[[method]]\nkind = \"affpcl\"\n"
      "name = \"guarded\"\nguard = \"full\"\n[[method]]\nkind = \"independent\"\n",
      "test", {});
  const SettingResult s = run_study(study, {1, nullptr, {}, ""}).settings.front();
  EXPECT_EQ(s.diverged[0].second, 3);
  EXPECT_EQ(s.diverged[1].second, 0);
  EXPECT_EQ(s.used, 3);
  EXPECT_TRUE(std::isnan(s.methods[0].mse.mean));
  EXPECT_TRUE(s.methods[0].curves.empty());
  EXPECT_NEAR(s.methods[1].vs_independent.mean, 1, 0.05);
  EXPECT_EQ(s.methods[2].by_replicate.size(), 3u);
}

}  // namespace
}  // namespace affpcl
