#include "affpcl/output/study_headline.h"

#include <gtest/gtest.h>

#include <limits>

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Estimate kNone{kNaN, kNaN, kNaN, kNaN};

AgentResult agent(double ratio, double lo, double hi) {
  return {{1, 1, 1, 1}, {ratio, lo, hi, ratio}, {}};
}

MethodResult method(const std::string& name, const std::string& kind, double error,
                    const std::vector<double>& curve) {
  MethodResult m;
  m.name = name;
  m.kind = kind;
  m.mse = {error, error / 2, error * 2, error};
  m.vs_independent = kNone;
  Curve c;
  for (std::size_t t = 0; t < curve.size(); ++t) {
    c.steps.push_back(static_cast<double>(10 * (t + 1)));
    c.mse.push_back({curve[t], kNaN, kNaN, curve[t]});
  }
  m.curves = {c};
  return m;
}

// Alone is at its own error after 40 of 50 steps, AffPCL is there after 10.
SettingResult setting() {
  MethodResult fedavg = method("fedavg", "fedavg", 9, {9, 9, 9, 9, 9});
  MethodResult ours = method("ours", "affpcl", 0.5, {1, 0.5, 0.5, 0.5, 0.5});
  ours.vs_independent = {0.5, 0.4, 0.6, 0.5};
  ours.agents = {agent(0.5, 0.4, 0.6), agent(0.98, 0.95, 1.02), agent(0.9, 0.8, 0.99)};
  MethodResult alone = method("alone", "independent", 1, {8, 4, 2, 1, 1.1});
  alone.vs_independent = {1, 1, 1, 1};
  SettingResult s;
  s.replicates = s.used = 10;
  s.steps = 50;
  s.methods = {fedavg, ours, alone};
  return s;
}

TEST(Headline, SaysWhereAffPclIsIndependentLearning) {
  SettingResult s = setting();
  for (MethodResult& m : s.methods) m.by_replicate = {1, 2};
  EXPECT_NE(headline(s).text.find("independent learning to the bit"), std::string::npos);
  s.methods[1].by_replicate[1] = 2.1;
  EXPECT_EQ(headline(s).text.find("to the bit"), std::string::npos);
}

TEST(Headline, SaysWhatWasSavedWhoGainedAndHowTheWorstFared) {
  const Headline h = headline(setting());
  EXPECT_EQ(h.method, "ours");
  EXPECT_EQ(h.samples, 10);
  EXPECT_EQ(h.samples_alone, 40);
  EXPECT_EQ(h.gained, 2);
  EXPECT_EQ(h.even, 1);
  EXPECT_EQ(h.lost, 0);
  EXPECT_EQ(h.worst, 1);
  EXPECT_EQ(
      h.text,
      "ours ended with 0.5 [0.4, 0.6] of the error of learning alone and reached it with 4.0x "
      "fewer samples; 2 of 3 agents gained; worst agent 0.98 [0.95, 1.02]");
}

TEST(Headline, CountsSamplesNotSteps) {
  SettingResult s = setting();
  s.methods[1].batch = 8;
  EXPECT_EQ(headline(s).samples, 80);
  EXPECT_NE(headline(s).text.find("2.0x as many samples"), std::string::npos);
}

TEST(Headline, DoesNotFlatterWhoNeverGotThere) {
  SettingResult s = setting();
  s.methods[1] = method("ours", "affpcl", 5.9, {9, 8, 7, 6, 5.9});
  s.methods[1].vs_independent = {5.9, 5.1, 6.7, 5.9};
  s.methods[1].agents = {agent(5.9, 5.1, 6.7)};
  EXPECT_EQ(
      headline(s).text,
      "ours ended with 5.9 [5.1, 6.7] of the error of learning alone; 0 of 1 agents gained, 1 "
      "lost; worst agent 5.9 [5.1, 6.7]");
}

// A thinned curve may skip the steps at which the error was reached.
TEST(Headline, AnEndBelowTheErrorCountsThoughNoKeptPointIs) {
  SettingResult s = setting();
  s.methods[1].curves[0].mse.assign(5, {1.01, kNaN, kNaN, 1.01});
  EXPECT_EQ(headline(s).samples, 50);
}

TEST(Headline, WithoutIntervalsItSaysSo) {
  SettingResult s = setting();
  s.methods[1].vs_independent.lo = s.methods[1].vs_independent.hi = kNaN;
  for (AgentResult& a : s.methods[1].agents) a.vs_independent.lo = a.vs_independent.hi = kNaN;
  EXPECT_NE(headline(s).text.find("3 of 3 agents have a smaller error, in one replicate"),
            std::string::npos)
      << headline(s).text;
}

TEST(Headline, SaysWhyThereIsNothingToCompare) {
  SettingResult s = setting();
  s.used = 0;
  EXPECT_EQ(headline(s).text, "all 10 replicates diverged: there is nothing to compare");
  s = setting();
  s.methods.pop_back();
  EXPECT_NE(headline(s).text.find("learning alone was not run"), std::string::npos);
  s = setting();
  for (MethodResult& m : s.methods) m.mse = kNone;
  EXPECT_NE(headline(s).text.find("the truth is not known"), std::string::npos);
  s.methods.clear();
  EXPECT_EQ(headline(s).text, "there is no method here");
  EXPECT_EQ(headline(StudyResult{}), "nothing was finished");
}

TEST(Headline, NamesReplicatesThatWereLeftOut) {
  SettingResult s = setting();
  s.used = 8;
  EXPECT_NE(headline(s).text.find("; 2 of 10 replicates diverged and are left out"),
            std::string::npos);
}

TEST(Headline, OfASweepNamesTheBestAndTheWorstSetting) {
  StudyResult r;
  r.settings = {setting(), setting()};
  r.settings[0].at = {{"problem.delta_env", Value(0.0)}, {"problem.delta_obj", Value(0.0)}};
  r.settings[1].at = {{"problem.delta_env", Value(0.8)}, {"problem.delta_obj", Value(0.2)}};
  r.settings[1].methods[1].vs_independent = {1.5, 1.2, 1.8, 1.5};
  r.settings[1].methods[1].agents = {agent(1.5, 1.2, 1.8)};
  EXPECT_EQ(headline(r),
            "ours had a smaller error than learning alone in 1 of 2 settings: 0.5 [0.4, 0.6] of it "
            "at best (problem.delta_env = problem.delta_obj = 0), 1.5 [1.2, 1.8] at worst "
            "(problem.delta_env = 0.8, problem.delta_obj = 0.2); 2 of 4 agents gained, 1 lost");
  r.complete = false;
  EXPECT_EQ(headline(r).find("interrupted"), 0u);
}

TEST(Headline, SaysThatTheMethodDivergedAndWhatTheOthersDid) {
  SettingResult s = setting();
  s.methods[1].mse = kNone;
  s.methods[1].vs_independent = kNone;
  s.diverged = {{"fedavg", 0}, {"ours", 10}, {"alone", 0}};
  EXPECT_EQ(
      headline(s).text,
      "ours diverged in 10 of 10 replicates; fedavg has an error of 9 [4.5, 18], alone has an "
      "error of 1 [0.5, 2]");
}

TEST(Headline, AllDivergedOnlyWhereNothingIsLeft) {
  StudyResult all;
  EXPECT_FALSE(all_diverged(all));
  all.settings = {setting(), setting()};
  all.settings[0].used = 0;
  EXPECT_FALSE(all_diverged(all));
  all.settings[1].used = 0;
  EXPECT_TRUE(all_diverged(all));
  EXPECT_NE(headline(all).find("all replicates of all 2 settings diverged"), std::string::npos);
}

}  // namespace
}  // namespace affpcl
