// Claims are judged by what a result says, here one made by hand: the error falls as n^-1.
#include "affpcl/study/claims.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"
#include "affpcl/study/studies.h"

namespace affpcl {
namespace {

StudyResult result() {
  StudyResult r;
  for (const std::int64_t n : {1, 2, 4, 8}) {
    const double x = static_cast<double>(n);
    SettingResult s;
    s.at = {{"problem.agents", Value(n)}, {"problem.delta_env", Value(n < 4 ? 0.3 : 0.5)}};
    s.replicates = 10;
    s.diverged = {{"a", n == 8 ? 5 : 0}, {"b", 0}};
    MethodResult a, b;
    a.name = "a";
    a.mse.mean = 3 / x;
    a.mse.median = 2 / x;
    a.mse.hi = 9;
    a.vs_independent.mean = 1 / (x * x);
    a.central_x = 0.25;
    a.agents.resize(2);
    a.agents[1].mse.mean = 7;
    a.agents[0].vs_independent.mean = 0.5;
    b.name = "b";
    b.mse.mean = 6;
    s.methods = {a, b};
    r.settings.push_back(s);
  }
  return r;
}

Verdict verdict(const std::string& claim) {
  const std::vector<Verdict> all =
      judge("[[claim]]\nsays = \"x\"\nrange = [0, 1]\n" + claim, "study", result());
  EXPECT_EQ(all.size(), 1u);
  return all.front();
}

const std::string kAt = "at = {\"problem.agents\" = 4}\n";

TEST(Claims, AboutAValue) {
  const std::string value = "kind = \"value\"\nmethod = \"a\"\n" + kAt;
  EXPECT_EQ(verdict(value + "quantity = \"mse\"\n").measured, 0.75);
  EXPECT_EQ(verdict(value + "quantity = \"median\"\n").measured, 0.5);
  EXPECT_EQ(verdict(value + "quantity = \"vs_independent\"\n").measured, 1.0 / 16);
  EXPECT_EQ(verdict(value + "quantity = \"central.x\"\n").measured, 0.25);
  EXPECT_EQ(verdict(value + "quantity = \"agent.-1.mse\"\n").measured, 7);
  EXPECT_EQ(verdict(value + "quantity = \"agent.0.vs_independent\"\n").measured, 0.5);
  EXPECT_EQ(verdict(value + "quantity = \"diverged\"\n").measured, 0);
  EXPECT_EQ(verdict(value + "quantity = \"mse\"\nover = \"b\"\n").measured, 0.125);
  EXPECT_TRUE(verdict(value + "quantity = \"mse\"\n").holds);
  EXPECT_FALSE(verdict(value + "quantity = \"agent.1.mse\"\n").holds);  // 7 is not in [0, 1]
}

TEST(Claims, AboutTheLargestAndTheSmallest) {
  const std::string largest = "kind = \"largest\"\nmethod = \"a\"\nquantity = \"mse\"\n",
                    smallest = "kind = \"smallest\"\nmethod = \"a\"\nquantity = \"mse\"\n";
  EXPECT_EQ(verdict(largest).measured, 3);
  EXPECT_EQ(verdict(smallest).measured, 3.0 / 8);
  EXPECT_EQ(verdict(largest + "at = {\"problem.agents\" = [2, 8]}\n").measured, 1.5);
  EXPECT_EQ(verdict(largest + "over = [\"a\", \"b\"]\n").measured, 1);
  EXPECT_EQ(verdict(smallest + "over = [\"a\", \"b\"]\n").measured, 3.0 / 48);
}

// Ratios with paired intervals: of the last steps, and at every point of the curve between two.
TEST(Claims, AboutPairedRatios) {
  StudyResult r = result();
  r.settings.resize(1);
  MethodResult &a = r.settings[0].methods[0], &b = r.settings[0].methods[1];
  a.by_replicate = {1, 2, 3}, b.by_replicate = {2, 4, 6};
  a.curves.resize(1), b.curves.resize(1);
  a.curves[0].steps = b.curves[0].steps = {10, 20, 30};
  a.curves[0].by_replicate = {{9, 9, 9}, {1, 2, 1}, {3, 3, 3}};
  b.curves[0].by_replicate = {{1, 1, 1}, {2, 2, 2}, {2, 3, 4}};
  const auto measured = [&](const std::string& more) {
    return judge("[[claim]]\nsays = \"x\"\nrange = [0, 1]\nmethod = \"a\"\n" + more, "study", r)
        .front()
        .measured;
  };
  const std::string over = "over = \"b\"\n", mean = "quantity = \"ratio.mean\"\n",
                    hi = "quantity = \"ratio.hi\"\n", lo = "quantity = \"ratio.lo\"\n";
  EXPECT_DOUBLE_EQ(measured("kind = \"value\"\n" + mean + over), 0.5);
  EXPECT_NEAR(measured("kind = \"value\"\n" + hi + over), 0.5, 1e-12);  // the pairs agree exactly
  const std::string steps = "steps = [20, 30]\n";  // not the point at 10, where the ratio is 9
  EXPECT_DOUBLE_EQ(measured("kind = \"largest\"\n" + mean + over + steps), 1);
  EXPECT_DOUBLE_EQ(measured("kind = \"smallest\"\n" + mean + over + steps), 4.0 / 6);
  const Estimate last = ratio_of_means(a.curves[0].by_replicate[2], b.curves[0].by_replicate[2]);
  EXPECT_GT(last.hi, 1.1);
  EXPECT_EQ(measured("kind = \"largest\"\n" + hi + over + steps), last.hi);
  EXPECT_EQ(measured("kind = \"largest\"\n" + lo + over + "steps = [30, 30]\n"), last.lo);
  for (const std::string& bad :
       {mean, mean + over + "steps = [1]\n", std::string("quantity = \"ratio.luck\"\n") + over})
    EXPECT_THROW(measured("kind = \"largest\"\n" + bad), BadInput) << bad;
  EXPECT_THROW(measured("kind = \"value\"\n" + mean + over + steps), BadInput);  // two points
  // A run that ended before the first of the steps shows nothing.
  EXPECT_TRUE(std::isnan(measured("kind = \"largest\"\n" + mean + over + "steps = [40, 50]\n")));
}

TEST(Claims, AboutTheEndsOfIntervals) {
  const std::string value = "kind = \"value\"\nmethod = \"a\"\n" + kAt;
  EXPECT_EQ(verdict(value + "quantity = \"mse.lo\"\n").measured, 0);
  EXPECT_EQ(verdict(value + "quantity = \"mse.hi\"\n").measured, 9);
  EXPECT_FALSE(verdict(value + "quantity = \"central.x.hi\"\n").holds);  // it has no interval
}

TEST(Claims, AboutASlope) {
  const std::string slope = "kind = \"slope\"\nmethod = \"a\"\nalong = \"problem.agents\"\n";
  EXPECT_NEAR(verdict(slope + "quantity = \"mse\"\n").measured, -1, 1e-12);
  EXPECT_NEAR(verdict(slope + "quantity = \"vs_independent\"\n").measured, -2, 1e-12);
  EXPECT_FALSE(verdict(slope + "quantity = \"mse\"\n").holds);
}

TEST(Claims, WhatIsNotANumberDoesNotHold) {
  StudyResult r = result();
  r.settings[2].methods[0].mse.mean = std::nan("");
  const std::vector<Verdict> all = judge(
      "[[claim]]\nsays = \"x\"\nrange = [-inf, inf]\nkind = "
      "\"value\"\nmethod = \"a\"\nquantity = \"mse\"\n" +
          kAt,
      "study", r);
  EXPECT_FALSE(all.front().holds);
  EXPECT_TRUE(parse_json(claims_json(all))[0]["measured"].is_null());
}

TEST(Claims, BadOnesAreRefusedByName) {
  const auto refused = [](const std::string& claims) {
    try {
      judge(claims, "my-study", result());
    } catch (const BadInput& e) {
      return std::string(e.what()).find("my-study") != std::string::npos;
    } catch (const std::exception&) {  // not a sentence for people
    }
    return false;
  };
  const std::string good =
      "[[claim]]\nsays = \"x\"\nrange = [0, 1]\nkind = \"value\"\nmethod = \"a\"\n";
  EXPECT_TRUE(refused(good + kAt));                                         // no quantity
  EXPECT_TRUE(refused(good + kAt + "quantity = \"luck\"\n"));               // an unknown one
  EXPECT_TRUE(refused(good + kAt + "quantity = \"agent.9.mse\"\n"));        // no such agent
  EXPECT_TRUE(refused(good + kAt + "quantity = \"agent.x.mse\"\n"));        // no agent at all
  EXPECT_TRUE(refused(good + "quantity = \"mse\"\n"));                      // about four settings
  EXPECT_TRUE(refused(good + kAt + "quantity = \"mse\"\nover = \"c\"\n"));  // no such method
  EXPECT_TRUE(refused("[[claim]]\nsays = \"x\"\nkind = \"value\"\n"));      // no range
  EXPECT_TRUE(refused("[[claim]]\nsays = \n"));                             // no TOML
}

TEST(Claims, EmbeddedStudiesReadAndFindTheirNames) {
  ASSERT_FALSE(embedded_studies().empty());
  for (const EmbeddedStudy& s : embedded_studies()) {
    const Study study = read_study(std::string(s.spec), std::string(s.name));
    EXPECT_FALSE(study.title.empty()) << s.name;
    EXPECT_EQ(&embedded_study(s.name), &s);
  }
  EXPECT_THROW(embedded_study("fig-nothing"), BadInput);
}

}  // namespace
}  // namespace affpcl
