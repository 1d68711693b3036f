#include "affpcl/output/fit_headline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

FitResult result() {
  FitResult r;
  r.scored = true;
  r.loss = {.chosen = 147.16, .personalised = 147.16, .independent = 175.39, .pooled = 234.7};
  r.gain = {28.23, 20.16, 36.3, 28.23};
  r.gained = 1;
  r.expect_gain = 1.6;
  r.even = 1;
  for (const char* name : {"Aarhus", "Faro"}) {
    AgentModel agent;
    agent.name = name;
    r.model.agents.push_back(agent);
    r.agents.emplace_back();
  }
  r.agents[0].gain = {96.67, 41.2, 152.1, 96.67};
  r.agents[1].gain = {7.75, -25.79, 41.29, 7.75};
  return r;
}

TEST(FitHeadline, SaysTheGainWhoGainedAndTheWorst) {
  EXPECT_EQ(
      headline(result()),
      "learning together took the mean squared error on held-out rows from 175.4 to 147.2 (16.1 % "
      "less; RMSE 13.24 to 12.13; gain 28.2 [20.2, 36.3]); an estimated 80 % of 2 agents gained: 1 "
      "surely, 0 surely lost; worst agent Faro: gain 7.75 [-25.8, 41.3]");
}

TEST(FitHeadline, ClassesHaveALogLoss) {
  FitResult r = result();
  r.model.encoding.classes = {"no", "yes"};
  r.accuracy = {.chosen = 0.84, .personalised = 0.84, .independent = 0.8, .pooled = 0.7};
  EXPECT_NE(headline(r).find("took the log loss"), std::string::npos);
  EXPECT_NE(headline(r).find("(16.1 % less; accuracy 0.8 to 0.84; gain"), std::string::npos)
      << headline(r);
}

TEST(FitHeadline, ALossIsSaidToBeOne) {
  FitResult r = result();
  r.loss.chosen = 200;
  EXPECT_NE(headline(r).find("from 175.4 to 200 (14 % more; RMSE 13.24 to 14.14;"),
            std::string::npos)
      << headline(r);
}

TEST(FitHeadline, AStreamPredictsRowsBeforeItLearns) {
  FitResult r = result();
  r.model.solver = SolverKind::kStream;
  EXPECT_NE(
      headline(r).find("mean squared error, on rows before they were learnt from, from 175.4 to"),
      std::string::npos)
      << headline(r);
  EXPECT_EQ(headline(r).find("left out"), std::string::npos);
}

TEST(FitHeadline, ValuesHaveATdError) {
  FitResult r = result();
  r.model.solver = SolverKind::kStream;
  r.model.encoding.values = true;
  EXPECT_NE(headline(r).find("took the squared TD error, on rows before"), std::string::npos)
      << headline(r);
}

TEST(FitHeadline, OneAgentHasNoWorstAndNoScoreNoGain) {
  FitResult r = result();
  r.agents.pop_back();
  EXPECT_EQ(headline(r).find("worst"), std::string::npos);
  r.scored = false;
  EXPECT_EQ(headline(r), "2 agents have a model each; not scored, so no gain is known");
}

TEST(FitHeadline, WithoutAnIntervalItShowsNone) {
  EXPECT_EQ(with_interval({0.98, 0.95, 1.02, 1}), "0.98 [0.95, 1.02]");
  EXPECT_EQ(with_interval({0.98, NAN, NAN, 1}), "0.98");
}

}  // namespace
}  // namespace affpcl
