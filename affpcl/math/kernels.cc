#include "affpcl/math/kernels.h"

#include <algorithm>

// Highway compiles the namespace HWY_NAMESPACE of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/kernels.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

inline int Width() { return static_cast<int>(hn::Lanes(D())); }

// Four rows by two vectors at a time: eight accumulators stay in registers and hide the latency of
// the multiply-add.
void Matvec(const double* A, int rows, int cols, const double* x, double* y, int lanes) {
  const D d;
  const int N = Width();
  int r = 0;
  for (; r + 4 <= rows; r += 4) {
    const double* a0 = A + static_cast<std::ptrdiff_t>(r) * cols;
    const double* a1 = a0 + cols;
    const double* a2 = a1 + cols;
    const double* a3 = a2 + cols;
    double* y0 = y + static_cast<std::ptrdiff_t>(r) * kLanes;
    for (int l = 0; l < lanes; l += 2 * N) {
      V p0 = hn::Zero(d), p1 = p0, p2 = p0, p3 = p0, q0 = p0, q1 = p0, q2 = p0, q3 = p0;
      for (int c = 0; c < cols; ++c) {
        const V u = hn::Load(d, x + c * kLanes + l), v = hn::Load(d, x + c * kLanes + l + N);
        const V b0 = hn::Set(d, a0[c]), b1 = hn::Set(d, a1[c]), b2 = hn::Set(d, a2[c]),
                b3 = hn::Set(d, a3[c]);
        p0 = hn::MulAdd(b0, u, p0), q0 = hn::MulAdd(b0, v, q0);
        p1 = hn::MulAdd(b1, u, p1), q1 = hn::MulAdd(b1, v, q1);
        p2 = hn::MulAdd(b2, u, p2), q2 = hn::MulAdd(b2, v, q2);
        p3 = hn::MulAdd(b3, u, p3), q3 = hn::MulAdd(b3, v, q3);
      }
      hn::Store(p0, d, y0 + l), hn::Store(q0, d, y0 + l + N);
      hn::Store(p1, d, y0 + kLanes + l), hn::Store(q1, d, y0 + kLanes + l + N);
      hn::Store(p2, d, y0 + 2 * kLanes + l), hn::Store(q2, d, y0 + 2 * kLanes + l + N);
      hn::Store(p3, d, y0 + 3 * kLanes + l), hn::Store(q3, d, y0 + 3 * kLanes + l + N);
    }
  }
  for (; r < rows; ++r) {
    const double* a = A + static_cast<std::ptrdiff_t>(r) * cols;
    double* out = y + static_cast<std::ptrdiff_t>(r) * kLanes;
    for (int l = 0; l < lanes; l += 2 * N) {
      V p0 = hn::Zero(d), p1 = p0;
      for (int c = 0; c < cols; ++c) {
        const double* u = x + c * kLanes + l;
        const V b = hn::Set(d, a[c]);
        p0 = hn::MulAdd(b, hn::Load(d, u), p0), p1 = hn::MulAdd(b, hn::Load(d, u + N), p1);
      }
      hn::Store(p0, d, out + l), hn::Store(p1, d, out + l + N);
    }
  }
}

void RankOne(const double* s, const double* y, int rows, int y_width, double eps, double* out,
             int lanes) {
  const D d;
  const int N = Width();
  const auto row = [&](int r, int l) {
    return y_width == 1 ? hn::Set(d, y[r]) : hn::Load(d, y + r * kLanes + l);
  };
  for (int l = 0; l < lanes; l += N) {
    V dot = hn::Zero(d);
    for (int r = 0; r < rows; ++r)
      dot = hn::MulAdd(hn::Load(d, s + r * kLanes + l), row(r, l), dot);
    dot = hn::Mul(dot, hn::Set(d, eps));
    for (int r = 0; r < rows; ++r)
      hn::Store(hn::MulAdd(hn::Load(d, s + r * kLanes + l), dot, row(r, l)), d,
                out + r * kLanes + l);
  }
}

// Lanes beyond `count` may hold anything; the order of the sum is that of a full block with zeros
// there.
double LaneSum(const double* x, int count) {
  const D d;
  const int N = Width();
  V sum = hn::Zero(d);
  int l = 0;
  for (; l + N <= count; l += N) sum = hn::Add(sum, hn::Load(d, x + l));
  if (l < count)
    sum =
        hn::Add(sum, hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count - l)), d, x + l));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Lanes beyond `count` may hold anything.
void AddProduct(const double* psi, int p, const double* g, int dim, int count, double* M) {
  const D d;
  const int N = Width(), whole = count / N * N;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(count - whole));
  int e = 0;
  for (; e + 4 <= p; e += 4) {
    const double* a = psi + static_cast<std::ptrdiff_t>(e) * kLanes;
    double* m = M + static_cast<std::ptrdiff_t>(e) * dim;
    for (int r = 0; r < dim; ++r) {
      const double* b = g + static_cast<std::ptrdiff_t>(r) * kLanes;
      V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (int l = 0; l < whole; l += N) {
        const V v = hn::Load(d, b + l);
        s0 = hn::MulAdd(hn::Load(d, a + l), v, s0);
        s1 = hn::MulAdd(hn::Load(d, a + kLanes + l), v, s1);
        s2 = hn::MulAdd(hn::Load(d, a + 2 * kLanes + l), v, s2);
        s3 = hn::MulAdd(hn::Load(d, a + 3 * kLanes + l), v, s3);
      }
      if (whole < count) {
        const V v = hn::MaskedLoad(rest, d, b + whole);
        s0 = hn::MulAdd(hn::MaskedLoad(rest, d, a + whole), v, s0);
        s1 = hn::MulAdd(hn::MaskedLoad(rest, d, a + kLanes + whole), v, s1);
        s2 = hn::MulAdd(hn::MaskedLoad(rest, d, a + 2 * kLanes + whole), v, s2);
        s3 = hn::MulAdd(hn::MaskedLoad(rest, d, a + 3 * kLanes + whole), v, s3);
      }
      m[r] += hn::GetLane(hn::SumOfLanes(d, s0));
      m[dim + r] += hn::GetLane(hn::SumOfLanes(d, s1));
      m[2 * dim + r] += hn::GetLane(hn::SumOfLanes(d, s2));
      m[3 * dim + r] += hn::GetLane(hn::SumOfLanes(d, s3));
    }
  }
  for (; e < p; ++e)
    for (int r = 0; r < dim; ++r) {
      const double* a = psi + static_cast<std::ptrdiff_t>(e) * kLanes;
      const double* b = g + static_cast<std::ptrdiff_t>(r) * kLanes;
      V s = hn::Zero(d);
      for (int l = 0; l < whole; l += N) s = hn::MulAdd(hn::Load(d, a + l), hn::Load(d, b + l), s);
      if (whole < count)
        s = hn::MulAdd(hn::MaskedLoad(rest, d, a + whole), hn::MaskedLoad(rest, d, b + whole), s);
      M[static_cast<std::ptrdiff_t>(e) * dim + r] += hn::GetLane(hn::SumOfLanes(d, s));
    }
}

void MixtureExp(double* rows, int count, const double* bias, const double* weight,
                const double* shift, double* Z, int lanes) {
  const D d;
  const int N = Width();
  const V most = hn::Set(d, 700.0);  // exp overflows above 709
  for (int l = 0; l < lanes; l += N) {
    const V own = hn::Load(d, shift + l);
    V z = hn::Zero(d);
    for (int e = 0; e < count; ++e) {
      double* p = rows + static_cast<std::ptrdiff_t>(e) * kLanes + l;
      const V logit = hn::Sub(hn::Add(hn::Load(d, p), hn::Set(d, bias[e])), own);
      const V w = hn::Exp(d, hn::Min(logit, most));
      hn::Store(w, d, p);
      z = hn::MulAdd(w, hn::Set(d, weight[e]), z);
    }
    hn::Store(z, d, Z + l);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Matvec);
HWY_EXPORT(RankOne);
HWY_EXPORT(LaneSum);
HWY_EXPORT(AddProduct);
HWY_EXPORT(MixtureExp);

std::string instruction_set() {
  const std::int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);  // the lowest bit is the best target
}

std::vector<std::string> available_instruction_sets() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::string> names;
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(rest & -rest));
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return names;
}

void use_instruction_set(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1)
    if (name == hwy::TargetName(rest & -rest)) hwy::SetSupportedTargetsForTest(rest & -rest);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

namespace kernels {

void matvec(const double* A, int rows, int cols, In x, Out y) {
  HWY_DYNAMIC_DISPATCH(Matvec)(A, rows, cols, x.p, y.p, y.lanes);
}

void rank_one(In s, In y, double eps, Out out) {
  HWY_DYNAMIC_DISPATCH(RankOne)(s.p, y.p, s.rows, y.width, eps, out.p, out.lanes);
}

double lane_sum(const double* x, int count) { return HWY_DYNAMIC_DISPATCH(LaneSum)(x, count); }

void add_product(In psi, In g, int count, double* M) {
  if (psi.width == 1 || g.width == 1) {  // spread what is shared; the space is kept
    thread_local Buffer space;
    const std::size_t need = static_cast<std::size_t>(psi.rows + g.rows) * kLanes;
    if (space.size() < need) space = Buffer(need);
    double* p = space.data();
    const auto spread = [&](In in) {
      if (in.width != 1) return in;
      double* start = p;
      for (int r = 0; r < in.rows; ++r, p += kLanes) std::fill_n(p, kLanes, in.p[r]);
      return In{start, in.rows, kLanes};
    };
    psi = spread(psi);
    g = spread(g);
  }
  HWY_DYNAMIC_DISPATCH(AddProduct)(psi.p, psi.rows, g.p, g.rows, count, M);
}

void mixture_exp(Out rows, const double* bias, const double* weight, In shift, Out Z) {
  HWY_DYNAMIC_DISPATCH(MixtureExp)(rows.p, rows.rows, bias, weight, shift.p, Z.p, Z.lanes);
}

}  // namespace kernels
}  // namespace affpcl
#endif
