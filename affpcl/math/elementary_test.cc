// The bounds that elementary-inl.h states, over the range and on every instruction set, against
// long double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "affpcl/math/instruction_sets-inl.h"
#include "affpcl/math/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/elementary_test.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

template <class T>
using One = hn::CappedTag<T, 1>;  // the same arithmetic as a whole vector's, but for Exp2
template <class T>
using All = hn::ScalableTag<T>;

double Exp2Of(double x) { return hn::GetLane(Exp2(All<double>(), hn::Set(All<double>(), x))); }
float Exp2OfFloat(float x) { return hn::GetLane(Exp2(All<float>(), hn::Set(All<float>(), x))); }
double Exp2OfOne(double x) { return hn::GetLane(Exp2(One<double>(), hn::Set(One<double>(), x))); }
float Exp2OfOneFloat(float x) { return hn::GetLane(Exp2(One<float>(), hn::Set(One<float>(), x))); }
double ExpOf(double x) { return hn::GetLane(Exp(All<double>(), hn::Set(All<double>(), x))); }
double ExpOfOne(double x) { return hn::GetLane(Exp(One<double>(), hn::Set(One<double>(), x))); }
double LogOf(double x) { return hn::GetLane(Log(One<double>(), hn::Set(One<double>(), x))); }
void TurnOf(double t, double* sine, double* cosine) {
  const One<double> d;
  hn::Vec<One<double>> s, c;
  SinCosTurn(d, hn::Set(d, t), s, c);
  *sine = hn::GetLane(s), *cosine = hn::GetLane(c);
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Exp2Of);
HWY_EXPORT(Exp2OfFloat);
HWY_EXPORT(Exp2OfOne);
HWY_EXPORT(Exp2OfOneFloat);
HWY_EXPORT(ExpOf);
HWY_EXPORT(ExpOfOne);
HWY_EXPORT(LogOf);
HWY_EXPORT(TurnOf);

namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();
constexpr double kUlpF = std::numeric_limits<float>::epsilon();
constexpr int kPoints = 200'000;

class Elementary : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }
  void TearDown() override { use_instruction_set(""); }
};

// f against what long double says, up to `most` on both sides and closely around 0.
void check_powers(double (*f)(double), long double (*truth)(long double), double most) {
  for (int k = 0; k <= kPoints; ++k)
    for (const double scale : {most, most / 1000}) {
      const double x = scale * (2.0 * k / kPoints - 1);
      const long double want = truth(x);
      ASSERT_LE(std::abs(f(x) - want), 2 * kUlp * want) << x;
    }
  EXPECT_EQ(f(1e300), f(most));
}
void check_exp2(double (*exp2)(double)) {
  check_powers(
      exp2, [](long double x) { return std::exp2(x); }, 900);
  for (int k = -900; k <= 900; ++k) EXPECT_EQ(exp2(k), std::ldexp(1, k));
  for (const double far : {900.1, 1e300, HUGE_VAL}) {
    EXPECT_EQ(exp2(far), exp2(900));
    EXPECT_EQ(exp2(-far), exp2(-900));
  }
}
void check_exp2(float (*exp2)(float)) {
  for (int k = 0; k <= kPoints; ++k) {
    const auto x = static_cast<float>(-86 + 172.0 * k / kPoints);
    const double want = std::exp2(static_cast<double>(x));
    ASSERT_LE(std::abs(exp2(x) - want), 2 * kUlpF * want) << x;
  }
  for (int k = -86; k <= 86; ++k) EXPECT_EQ(exp2(static_cast<float>(k)), std::ldexp(1.0f, k));
  for (const float far : {86.1f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(exp2(far), exp2(86));
    EXPECT_EQ(exp2(-far), exp2(-86));
  }
}
void check_exp(double (*exp)(double)) {
  check_powers(
      exp, [](long double x) { return std::exp(x); }, 700);
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-700.1), 0);
  EXPECT_EQ(exp(-1e300), 0);
  EXPECT_EQ(exp(-HUGE_VAL), 0);
}

TEST_P(Elementary, PowersOfTwo) {
  check_exp2([](double x) { return HWY_DYNAMIC_DISPATCH(Exp2Of)(x); });
  check_exp2([](float x) { return HWY_DYNAMIC_DISPATCH(Exp2OfFloat)(x); });
}
TEST_P(Elementary, PowersOfTwoInPartOfAVector) {
  check_exp2([](double x) { return HWY_DYNAMIC_DISPATCH(Exp2OfOne)(x); });
  check_exp2([](float x) { return HWY_DYNAMIC_DISPATCH(Exp2OfOneFloat)(x); });
}
TEST_P(Elementary, Exp) {
  check_exp([](double x) { return HWY_DYNAMIC_DISPATCH(ExpOf)(x); });
  check_exp([](double x) { return HWY_DYNAMIC_DISPATCH(ExpOfOne)(x); });
}

TEST_P(Elementary, Log) {  // of uniforms in (0, 1), down to the least one, and above
  for (int k = 1; k <= kPoints; ++k)
    for (const double x : {k / (kPoints + 1.0), std::pow(2.0, -60.0 * k / kPoints),
                           1 - std::pow(2.0, -52.0 * k / kPoints), 1 + 40.0 * k / kPoints}) {
      if (x <= 0) continue;
      const long double want = std::log(static_cast<long double>(x));
      ASSERT_LE(std::abs(HWY_DYNAMIC_DISPATCH(LogOf)(x) - want), 2 * kUlp * std::abs(want)) << x;
    }
  EXPECT_EQ(HWY_DYNAMIC_DISPATCH(LogOf)(1), 0);
}

TEST_P(Elementary, SineAndCosineOfATurn) {
  for (int k = 0; k <= kPoints; ++k) {
    const double t = static_cast<double>(k) / kPoints;
    double sine = 0, cosine = 0;
    HWY_DYNAMIC_DISPATCH(TurnOf)(t, &sine, &cosine);
    const long double angle = 2 * std::numbers::pi_v<long double> * t;
    ASSERT_NEAR(sine, static_cast<double>(std::sin(angle)), 1.5 * kUlp) << t;
    ASSERT_NEAR(cosine, static_cast<double>(std::cos(angle)), 1.5 * kUlp) << t;
  }
  for (int quarter = 0; quarter <= 4; ++quarter) {  // exact where it can be
    double sine = 9, cosine = 9;
    HWY_DYNAMIC_DISPATCH(TurnOf)(quarter / 4.0, &sine, &cosine);
    EXPECT_EQ(sine, quarter == 1 ? 1 : quarter == 3 ? -1 : 0);
    EXPECT_EQ(cosine, quarter % 4 == 0 ? 1 : quarter == 2 ? -1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, Elementary,
                         ::testing::ValuesIn(available_instruction_sets()),
                         [](const auto& set) { return set.param; });

}  // namespace
}  // namespace affpcl
#endif
