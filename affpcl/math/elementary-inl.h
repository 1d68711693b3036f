// 2^x, exp, log and the sine and cosine of a turn, inlined into kernels. Highway's own
// (contrib/math) are general; these are for the ranges that occur here and take about half the
// time. Bounds below are tested over the range on every instruction set (elementary_test.cc).

// Included once per instruction set: the guard toggles.
#if defined(AFFPCL_MATH_ELEMENTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AFFPCL_MATH_ELEMENTARY_INL_H_
#undef AFFPCL_MATH_ELEMENTARY_INL_H_
#else
#define AFFPCL_MATH_ELEMENTARY_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// c0 + c1 x + c2 x^2 + …, by Horner's rule.
template <class D>
HWY_INLINE hn::Vec<D> Polynomial(D d, hn::Vec<D>, hn::TFromD<D> last) {
  return hn::Set(d, last);
}
template <class D, class... Rest>
HWY_INLINE hn::Vec<D> Polynomial(D d, hn::Vec<D> x, hn::TFromD<D> first, Rest... rest) {
  return hn::MulAdd(Polynomial(d, x, rest...), x, hn::Set(d, first));
}

// The range of Exp2: neither a result nor its product with a number of usual size is denormal.
template <class T>
inline constexpr T kMostPower = sizeof(T) == 8 ? 900 : 86;

// Whether powers of 2 come from a table: where two registers hold one.
template <class D>
inline constexpr bool kByTable = HWY_TARGET <= HWY_AVX3 && sizeof(hn::Vec<D>) == 64;

// x + kRounding rounds x to whole numbers, with a table to sixteenths (32 in float), and leaves
// them in the low bits.
template <class D>
inline constexpr hn::TFromD<D> kRounding = sizeof(hn::TFromD<D>) == 8
                                               ? (kByTable<D> ? 0x1.8p48 : 0x1.8p52)
                                               : (kByTable<D> ? 0x1.8p18 : 0x1.8p23);

#if HWY_TARGET <= HWY_AVX3
// The bits of 2^(i/16), less i << 48: adding k << 48 then makes those of 2^(k/16), i = k mod 16.
HWY_ALIGN inline constexpr std::uint64_t kSixteenths[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da};
// The same of 2^(i/32), less i << 18.
HWY_ALIGN inline constexpr std::uint32_t kThirtySeconds[32] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};

// Entry i of a table that fills two registers, i in the low bits of each lane.
HWY_INLINE hn::Vec512<std::uint64_t> Entry(hn::Vec512<std::uint64_t> i) {
  return {_mm512_permutex2var_epi64(_mm512_load_si512(kSixteenths), i.raw,
                                    _mm512_load_si512(kSixteenths + 8))};
}
HWY_INLINE hn::Vec512<std::uint32_t> Entry(hn::Vec512<std::uint32_t> i) {
  return {_mm512_permutex2var_epi32(_mm512_load_si512(kThirtySeconds), i.raw,
                                    _mm512_load_si512(kThirtySeconds + 16))};
}

// 2^(k + r) from kRounding + k, |r| <= 1/32 (64 in float): the polynomial is half as long.
template <class D>
HWY_INLINE hn::Vec<D> PowerByTable(D d, hn::Vec<D> shifted, hn::Vec<D> r) {
  constexpr bool kDouble = sizeof(hn::TFromD<D>) == 8;
  const hn::RebindToUnsigned<D> du;
  // 2^r = 1 + r q(r): to 7.1e-18 in double, 5.3e-8 in float.
  hn::Vec<D> q;
  if constexpr (kDouble) {
    q = Polynomial(d, r, 0.69314718055994684054, 0.24022650695910166552, 0.055504108651954577047,
                   0.009618129102053445123, 0.0013333820232909133954, 0.00015404211728455146908);
  } else {
    q = Polynomial(d, r, 0.693157399f, 0.240231819f);
  }
  const auto bits = hn::BitCast(du, shifted);
  const auto power = hn::BitCast(d, hn::Add(Entry(bits), hn::ShiftLeft<(kDouble ? 48 : 18)>(bits)));
  return hn::MulAdd(hn::Mul(power, r), q, power);
}

// x, but not beyond `most` on either side, in one operation: the lesser size, the sign of x.
HWY_INLINE hn::Vec512<double> Within(hn::Vec512<double> x, hn::Vec512<double> most) {
  return {_mm512_range_pd(x.raw, most.raw, 0b0010)};
}
HWY_INLINE hn::Vec512<float> Within(hn::Vec512<float> x, hn::Vec512<float> most) {
  return {_mm512_range_ps(x.raw, most.raw, 0b0010)};
}
#endif
template <class V>
HWY_INLINE V Within(V x, V most) {
  return hn::Max(hn::Min(x, most), hn::Neg(most));
}

// 2^(k + r) from kRounding + k, |r| <= 1/2.
template <class D>
HWY_INLINE hn::Vec<D> Power(D d, hn::Vec<D> shifted, hn::Vec<D> r) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kByTable<D>) return PowerByTable(d, shifted, r);
#endif
  constexpr bool kDouble = sizeof(hn::TFromD<D>) == 8;
  const hn::RebindToUnsigned<D> du;
  // 2^r to 1.3e-17 in double, 8e-9 in float. Even and odd powers apart: two short chains instead of
  // a long one.
  const auto square = hn::Mul(r, r);
  hn::Vec<D> even, odd;
  if constexpr (kDouble) {
    even =
        Polynomial(d, square, 1.0, 0.24022650695910074958, 0.0096181291076186583439,
                   0.000154035304247953801, 1.3215451619146606875e-06, 7.0709810833657683114e-09);
    odd = Polynomial(d, square, 0.69314718055994528623, 0.055504108664821583119,
                     0.0013333558146423208756, 1.5252733820805851857e-05, 1.0178067259946989121e-07,
                     4.4541051252934161983e-10);
  } else {
    even = Polynomial(d, square, 1.0f, 0.240226507f, 0.00961810324f, 0.000154448922f);
    odd = Polynomial(d, square, 0.693147181f, 0.05550381f, 0.00133813121f);
  }
  const auto power = hn::ShiftLeft<(kDouble ? 52 : 23)>(hn::BitCast(du, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, hn::MulAdd(odd, r, even)), power));
}

// 2^x to 2 units in the last place for |x| <= kMostPower; beyond, as there. For double and float.
template <class D>
HWY_INLINE hn::Vec<D> Exp2(D d, hn::Vec<D> x) {
  x = Within(x, hn::Set(d, kMostPower<hn::TFromD<D>>));
  const auto shifted = hn::Add(x, hn::Set(d, kRounding<D>));
  return Power(d, shifted, hn::Sub(x, hn::Sub(shifted, hn::Set(d, kRounding<D>))));
}

// exp(x) to 2 units in the last place for |x| <= 700; 0 below, above as there. For double.
template <class D>
HWY_INLINE hn::Vec<D> Exp(D d, hn::Vec<D> x) {
  const auto seen = hn::Ge(x, hn::Set(d, -700.0));
  x = hn::Min(x, hn::Set(d, 700.0));
  // x = k ln 2 + r, where ln 2 has a high part whose product with k is exact.
  const auto shifted = hn::MulAdd(x, hn::Set(d, std::numbers::log2e), hn::Set(d, kRounding<D>));
  const auto k = hn::Sub(shifted, hn::Set(d, kRounding<D>));
  auto r = hn::NegMulAdd(k, hn::Set(d, 6.93147180369123816490e-01), x);
  r = hn::NegMulAdd(k, hn::Set(d, 1.90821492927058770002e-10), r);
  return hn::IfThenElseZero(seen, Power(d, shifted, hn::Mul(r, hn::Set(d, std::numbers::log2e))));
}

// log(x) to 2 units in the last place, for normal x > 0 (fdlibm's e_log.c).
template <class D>
HWY_INLINE hn::Vec<D> Log(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  // x = 2^k m with m in [sqrt(1/2), sqrt(2))
  const std::uint64_t root_half = 0x3FE6A09E00000000;
  const auto moved = hn::Add(hn::BitCast(du, x), hn::Set(du, 0x3FF0000000000000 - root_half));
  const auto m = hn::BitCast(
      d, hn::Add(hn::And(moved, hn::Set(du, 0x000FFFFFFFFFFFFF)), hn::Set(du, root_half)));
  const auto k =
      hn::Sub(hn::BitCast(d, hn::Or(hn::ShiftRight<52>(moved), hn::Set(du, 0x4330000000000000))),
              hn::Set(d, 0x1p52 + 1023));
  const auto f = hn::Sub(m, hn::Set(d, 1.0));
  const auto s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const auto z = hn::Mul(s, s);
  const auto R = hn::Mul(
      z, Polynomial(d, z, 6.666666666666735130e-01, 3.999999999940941908e-01,
                    2.857142874366239149e-01, 2.222219843214978396e-01, 1.818357216161805012e-01,
                    1.531383769920937332e-01, 1.479819860511658591e-01));
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  const auto low =
      hn::MulAdd(k, hn::Set(d, 1.90821492927058770002e-10), hn::Mul(s, hn::Add(half_square, R)));
  return hn::MulAdd(k, hn::Set(d, 6.93147180369123816490e-01),
                    hn::Sub(f, hn::Sub(half_square, low)));
}

// sin(2 pi t) and cos(2 pi t) for t in [0, 1], each to 1.5 * 2^-52.
template <class D>
HWY_INLINE void SinCosTurn(D d, hn::Vec<D> t, hn::Vec<D>& sine, hn::Vec<D>& cosine) {
  const hn::RebindToUnsigned<D> du;
  // The nearest quarter turn, and what is left: exact.
  const auto magic = hn::Set(d, 0x1.8p52);
  const auto shifted = hn::MulAdd(t, hn::Set(d, 4.0), magic);
  const auto left = hn::NegMulAdd(hn::Sub(shifted, magic), hn::Set(d, 0.25), t);
  const auto x = hn::Mul(left, hn::Set(d, 6.283185307179586476925));
  const auto z = hn::Mul(x, x);
  const auto small_sine =
      hn::MulAdd(hn::Mul(x, z),
                 Polynomial(d, z, -1.66666666666666324348e-01, 8.33333333332248946124e-03,
                            -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                            -2.50507602534068634195e-08, 1.58969099521155010221e-10),
                 x);
  const auto small_cosine =
      hn::MulAdd(z,
                 Polynomial(d, z, -0.5, 4.16666666666666019037e-02, -1.38888888888741095749e-03,
                            2.48015872894767294178e-05, -2.75573143513906633035e-07,
                            2.08757232129817482790e-09, -1.13596475577881948265e-11),
                 hn::Set(d, 1.0));
  // Odd quarters swap the two; quarters 2 and 3 turn the sine's sign, 1 and 2 the cosine's.
  const auto quarter = hn::BitCast(du, shifted);
  const auto one = hn::Set(du, 1);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  const auto sign = hn::Set(du, 0x8000000000000000);
  const auto sine_sign = hn::And(hn::ShiftLeft<62>(quarter), sign);
  const auto cosine_sign = hn::And(hn::ShiftLeft<62>(hn::Add(quarter, one)), sign);
  sine = hn::Xor(hn::IfThenElse(odd, small_cosine, small_sine), hn::BitCast(d, sine_sign));
  cosine = hn::Xor(hn::IfThenElse(odd, small_sine, small_cosine), hn::BitCast(d, cosine_sign));
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
