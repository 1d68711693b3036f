#include "affpcl/table/class_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

struct Row {
  std::vector<double> p;
  std::size_t truth;
  double weight = 1;
};

ClassCounts counted(const std::vector<Row>& rows, std::size_t classes) {
  double total = 0;
  for (const Row& r : rows) total += r.weight;
  ClassCounts counts(classes, ClassCounts::unit_of(total));
  for (const Row& r : rows) counts.add(r.p, r.truth, r.weight);
  return counts;
}

// The rank statistic: over all pairs of a row of class k and another row.
double exact_auc(const std::vector<Row>& rows, std::size_t k) {
  double above = 0, pairs = 0;
  for (const Row& a : rows)
    for (const Row& b : rows) {
      if (a.truth != k || b.truth == k) continue;
      const double w = a.weight * b.weight;
      pairs += w;
      above += w * (a.p[k] > b.p[k] ? 1 : a.p[k] == b.p[k] ? 0.5 : 0);
    }
  return above / pairs;
}

std::vector<Row> random_rows(std::size_t count, std::size_t classes, double sharp, bool weighted) {
  std::vector<Row> rows;
  for (std::size_t r = 0; r < count; ++r) {
    const auto draw = [&](std::size_t k) {
      return normal({.seed = 7, .replicate = 0, .step = static_cast<std::uint32_t>(k)},
                    static_cast<std::int64_t>(r), Purpose::kSample, 0);
    };
    Row row{{}, r % classes};
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      row.p.push_back(std::exp(sharp * (draw(k) + (k == row.truth ? 1 : 0))));
      sum += row.p.back();
    }
    for (double& p : row.p) p /= sum;
    if (weighted) row.weight = std::exp(draw(classes));
    rows.push_back(row);
  }
  return rows;
}

TEST(ClassScores, ARowsBrierScore) {
  EXPECT_DOUBLE_EQ(brier_score(std::vector{0.3, 0.7}, 1), 0.09);
  EXPECT_DOUBLE_EQ(brier_score(std::vector{0.3, 0.7}, 0), 0.49);
  EXPECT_DOUBLE_EQ(brier_score(std::vector{0.2, 0.5, 0.3}, 2), 0.04 + 0.25 + 0.49);
}

TEST(ClassScores, AUCByHand) {
  // Of six pairs the second class is above in four and tied in one.
  const ClassCounts c =
      counted({{{.9, .1}, 0}, {{.6, .4}, 0}, {{.3, .7}, 0}, {{.6, .4}, 1}, {{.2, .8}, 1}}, 2);
  EXPECT_DOUBLE_EQ(c.auc(), (1 + 0.5 + 0 + 3) / 6.0);
  EXPECT_DOUBLE_EQ(c.auc_error(), 0.5 / 6);  // the tie might be none, as far as the bins know
  EXPECT_TRUE(std::isnan(counted({{{.9, .1}, 0}}, 2).auc()));
}

TEST(ClassScores, AUCIsWithinItsBoundOfTheRankStatistic) {
  for (const bool weighted : {false, true})
    for (const double sharp : {0.001, 1.0, 30.0}) {
      const std::vector<Row> two = random_rows(400, 2, sharp, weighted);
      const ClassCounts c = counted(two, 2);
      EXPECT_LE(std::abs(c.auc() - exact_auc(two, 1)), c.auc_error() + 1e-12) << sharp;
      EXPECT_LT(c.auc_error(), sharp == 1 ? 1e-3 : 0.51) << sharp;
      const std::vector<Row> four = random_rows(400, 4, sharp, weighted);
      const ClassCounts d = counted(four, 4);
      double mean = 0;
      for (std::size_t k = 0; k < 4; ++k) mean += exact_auc(four, k) / 4;
      EXPECT_LE(std::abs(d.auc() - mean), d.auc_error() + 1e-12) << sharp;
    }
}

TEST(ClassScores, CalibrationByHand) {
  // Bins [.1, .2), [.3, .4) and [.9, 1]: 1 and 3 rows, and 2 that are certain.
  const ClassCounts c = counted({{{.85, .15}, 1},
                                 {{.7, .3}, 0},
                                 {{.65, .35}, 0},
                                 {{.65, .35}, 1},
                                 {{0, 1}, 1},
                                 {{.1, .9}, 1}},
                                2);
  const std::vector<CalibrationBin> bins = c.calibration();
  ASSERT_EQ(bins.size(), 3u);
  EXPECT_NEAR(bins[1].share, 0.5, 1e-12);
  EXPECT_NEAR(bins[1].predicted, 1.0 / 3, 1e-12);
  EXPECT_NEAR(bins[1].observed, 1.0 / 3, 1e-12);
  EXPECT_NEAR(c.calibration_error(), (0.85 + 0 + 0.1) / 6, 1e-12);
}

TEST(ClassScores, CalibrationOfManyClassesIsThatOfTheMostProbable) {
  const ClassCounts c = counted({{{.2, .5, .3}, 1}, {{.2, .55, .25}, 2}, {{.8, .1, .1}, 0}}, 3);
  EXPECT_NEAR(c.calibration_error(), (std::abs(1.05 - 1) + 0.2) / 3, 1e-12);
}

TEST(ClassScores, AWeightOfTwoIsTwoRows) {
  std::vector<Row> rows = random_rows(50, 3, 1, false), twice = rows;
  for (std::size_t r = 0; r < rows.size(); r += 2) rows[r].weight = 2, twice.push_back(twice[r]);
  const ClassCounts a = counted(rows, 3), b = counted(twice, 3);
  EXPECT_NEAR(a.auc(), b.auc(), 1e-12);
  EXPECT_NEAR(a.calibration_error(), b.calibration_error(), 1e-12);
}

TEST(ClassScores, SumsHaveTheSameBitsInAnyOrder) {
  std::vector<Row> rows = random_rows(500, 3, 1, true);
  ClassCounts forth = counted(rows, 3);
  std::reverse(rows.begin(), rows.end());
  ClassCounts back = counted(rows, 3);
  EXPECT_TRUE(std::ranges::equal(forth.numbers(), back.numbers()));
}

// A row counts where its class meets its most probable one.
TEST(ClassCounts, ConfusionHoldsEveryRowOnce) {
  const std::vector<Row> rows = {{{0.7, 0.2, 0.1}, 0},
                                 {{0.1, 0.6, 0.3}, 0, 2.0},
                                 {{0.2, 0.1, 0.7}, 2},
                                 {{0.4, 0.35, 0.25}, 1}};
  EXPECT_EQ(counted(rows, 3).confusion(), (std::vector<double>{1, 2, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_TRUE(ClassCounts(ClassCounts::kMostConfused + 1, 1).confusion().empty());
}

}  // namespace
}  // namespace affpcl
