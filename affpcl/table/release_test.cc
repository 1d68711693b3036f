#include "affpcl/table/release.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/random/seeded_bits_test.h"

namespace affpcl {
namespace {

PrivacyTerms terms(const std::string& privacy, const std::string& bounds = "y=-1:1,a=-1:1,b=-1:1") {
  return PrivacyTerms::parse(privacy, bounds);
}

// One agent's rows of (1, a, b, y), scaled.
Frame frame_of(const std::vector<std::array<double, 3>>& rows) {
  Frame f;
  f.d = 3, f.rows = f.all_rows = rows.size();
  f.held_out.folds = 1;
  f.agents = {"one"};
  f.starts = {0, rows.size()};
  f.X.assign(rows.size(), 1.0);
  for (const std::size_t j : {0, 1})
    for (const auto& row : rows) f.X.push_back(row[j]);
  for (const auto& row : rows) f.Y.push_back(row[2]);
  return f;
}

TEST(Release, HasTheMomentsOfTheClippedRows) {
  const Release r =
      exact_moments(frame_of({{0.5, -0.25, 1}, {2, -7, 0.5}}));  // the second row is 1, 1, -1, .5
  EXPECT_EQ(r.moments(), 10u);
  EXPECT_DOUBLE_EQ(r.moment(0, 0, 0), 2);
  EXPECT_DOUBLE_EQ(r.moment(0, 0, 1), 1.5);
  EXPECT_DOUBLE_EQ(r.moment(0, 2, 0), -1.25);
  EXPECT_DOUBLE_EQ(r.moment(0, 1, 2), 0.5 * -0.25 - 1);
  EXPECT_DOUBLE_EQ(r.moment(0, 3, 3), 1.25);
  EXPECT_DOUBLE_EQ(r.moment(0, 3, 2), -0.25 - 0.5);
}

// Over all corners and a grid: no row moves the integers farther than the sensitivity says.
TEST(Release, NoRowMovesItFartherThanItsSensitivity) {
  const PrivacyTerms t = terms("epsilon=1,delta=1e-5");
  const Release none = exact_moments(frame_of({}));
  double most = 0;
  for (double a = -1.5; a <= 1.5; a += 0.5)
    for (double b = -1.5; b <= 1.5; b += 0.5)
      for (double y = -1.5; y <= 1.5; y += 0.5) {
        const Release one = exact_moments(frame_of({{a, b, y}}));
        double squares = 0;
        for (std::size_t k = 0; k < one.numbers.size(); ++k) {
          const double moved =
              static_cast<double>(one.numbers[k] - none.numbers[k]) * kUnit * kUnit;
          squares += moved * moved;
        }
        most = std::max(most, std::sqrt(squares));
      }
  EXPECT_LE(most, t.sensitivity + 1e-12);
  EXPECT_NEAR(most, t.sensitivity, 1e-12);  // it is reached
  EXPECT_NEAR(t.sensitivity, std::sqrt(4 * 5 / 2.0), 1e-12);
  EXPECT_GE(static_cast<double>(t.sigma), t.multiplier * t.sensitivity / (kUnit * kUnit));
}

// A column of texts counts once, however many levels it has: a row has at most one 1.
TEST(Release, LevelsCountOnce) {
  const PrivacyTerms two = terms("epsilon=1,delta=1e-5", "y=0:1,a=b|c"),
                     many = terms("epsilon=1,delta=1e-5", "y=0:1,a=b|c|d|e|f|g");
  EXPECT_EQ(two.sensitivity, many.sensitivity);
}

TEST(Release, TextsOfTermsAreRefusedInOneSentence) {
  const std::string bounds = "y=0:1";
  for (const char* bad :
       {"epsilon=4", "delta=1e-5", "epsilon=0,delta=1e-5", "epsilon=4,delta=1", "epsilon=4,delta=0",
        "epsilon=nan,delta=1e-5", "epsilon=4,delta=1e-5,alpha=2", "epsilon=4,epsilon=4,delta=1e-5",
        "4,1e-5"})
    EXPECT_THROW(terms(bad, bounds), BadInput) << bad;
  for (const char* bad : {"", "y=1:0", "y=0:0", "y=a", "y=a|a", "y=a|", "y=0:inf", "=0:1",
                          "y=0:1,y=0:2", "y=0:1:2", "no-such-file"})
    EXPECT_THROW(terms("epsilon=4,delta=1e-5", bad), BadInput) << bad;
  const std::vector<Bound> found = parse_bounds("\"a,b=-1e3:2\",kind=x|y z|w");
  EXPECT_EQ(found[0].column, "a,b");
  EXPECT_EQ(found[0].low, -1000);
  EXPECT_EQ(found[1].levels, (std::vector<std::string>{"x", "y z", "w"}));
}

class KeptRelease : public testing::Test {
 protected:
  KeptRelease()
      : folder_((std::filesystem::temp_directory_path() / "affpcl-release-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  ~KeptRelease() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(KeptRelease, IsMadeOnceInAJob) {
  const std::string file = folder_ + "/north.release";
  const PrivacyTerms t = terms("epsilon=4,delta=1e-5");
  const Frame rows = frame_of({{0.5, 0, 1}}), others = frame_of({{0.5, 0, 0.9}});
  SeededBits bits(1);
  const Release first = released_once(file, "job", t, rows, bits);
  EXPECT_EQ(released_once(file, "job", t, rows, bits).numbers,
            first.numbers);  // a resume draws nothing anew
  EXPECT_THROW(released_once(file, "job", t, others, bits), BadInput);
  EXPECT_THROW(released_once(file, "job", terms("epsilon=8,delta=1e-5"), rows, bits), BadInput);
  EXPECT_EQ(released_once(file, "job", t, rows, bits).numbers, first.numbers);
  EXPECT_NE(released_once(file, "other job", t, rows, bits).numbers, first.numbers);
  EXPECT_NE(released_once("", "", t, rows, bits).numbers,
            released_once("", "", t, rows, bits).numbers);
  std::ofstream(file) << "{";
  EXPECT_THROW(released_once(file, "other job", t, rows, bits), BadInput);
}

// Probability below which `hits` of `trials` or fewer come by chance: a bound on a probability from above
// (Clopper and Pearson), by bisection on the binomial distribution.
double upper_bound(int hits, int trials, double chance) {
  double low = 0, high = 1;
  for (int step = 0; step < 60; ++step) {
    const double p = (low + high) / 2;
    double below = 0;
    for (int k = 0; k <= hits; ++k)
      below +=
          std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) -
                   std::lgamma(trials - k + 1.0) + k * std::log(p) + (trials - k) * std::log1p(-p));
    (below > chance ? low : high) = p;
  }
  return high;
}

// An audit: who knows all rows but one, and the one, guesses from a release whether it is in. The best
// guess is by the length along what the row adds. Of what it gets right follows a bound that epsilon
// cannot lie below; it must lie below what was promised, and near enough to mean something.
TEST(Release, AnAuditFindsNoMoreThanWasPromised) {
  const PrivacyTerms t = terms("epsilon=1,delta=1e-5");
  const Release without = exact_moments(frame_of({{0.3, 0.1, 0.2}})),
                with = exact_moments(frame_of({{0.3, 0.1, 0.2}, {1, -1, 1}}));
  std::vector<double> toward;
  for (std::size_t k = 0; k < with.numbers.size(); ++k)
    toward.push_back(static_cast<double>(with.numbers[k] - without.numbers[k]) * kUnit * kUnit);
  constexpr int kTrials = 20'000;
  SeededBits bits(11);
  const auto length = [&](const Release& exact) {
    Release r = exact;
    add_noise(t, bits, r);
    double sum = 0;
    for (std::size_t k = 0; k < toward.size(); ++k)
      sum += toward[k] * static_cast<double>(r.numbers[k] - without.numbers[k]) * kUnit * kUnit;
    return sum / t.sensitivity;
  };
  std::vector<double> in(kTrials), out(kTrials);
  for (double& v : in) v = length(with);
  for (double& v : out) v = length(without);
  double found = 0;
  constexpr double kChance = 1e-4;  // of a false alarm, for each of the thresholds and both rates
  for (double limit = 2 * t.noise() - 0.5 * t.noise(); limit < 3 * t.noise();
       limit += 0.25 * t.noise()) {
    const auto beyond = [&](const std::vector<double>& v) {
      return static_cast<int>(
          std::count_if(v.begin(), v.end(), [&](double x) { return x > limit; }));
    };
    const double missed = upper_bound(kTrials - beyond(in), kTrials, kChance),
                 fooled = upper_bound(beyond(out), kTrials, kChance);
    found = std::max(found, std::log(std::max(1e-300, 1 - missed - t.delta) / fooled));
  }
  RecordProperty("epsilon_audited", std::to_string(found));
  EXPECT_LT(found, t.epsilon);
  EXPECT_GT(found, 0.2);  // an audit without power finds nothing
}

}  // namespace
}  // namespace affpcl
