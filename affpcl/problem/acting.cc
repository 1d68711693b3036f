#include "affpcl/problem/acting.h"

#include <cmath>

#include "affpcl/math/instruction_sets-inl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/problem/acting.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

using D = hn::CappedTag<double, kLaneStep>;
using V = hn::Vec<D>;

// Where nothing is to be divided by, nothing is left of it.
HWY_INLINE V OneOver(V x) {
  const D d;
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Div(hn::Set(d, 1.0), x));
}

inline int Width() { return static_cast<int>(hn::Lanes(D())); }

// chain(o, o') = sum_a pi(a|o) P(o'|o, a) of one vector of lanes. P and pi are rows of a block;
// chain has its vectors one after the other, so that it stays in the first cache.
HWY_INLINE void MakeChain(const double* P, const double* pi, int S, int A, double* chain) {
  const D d;
  for (int o = 0; o < S; ++o)
    for (int next = 0; next < S; ++next, chain += Width()) {
      V sum = hn::Zero(d);
      for (int c = o * A; c < (o + 1) * A; ++c)
        sum =
            hn::MulAdd(hn::Load(d, pi + c * kLanes), hn::Load(d, P + (c * S + next) * kLanes), sum);
      hn::Store(sum, d, chain);
    }
}

// The stationary law of one vector of lanes, and the chain is destroyed (Grassmann, Taksar and
// Heyman): no differences, so no cancellation.
HWY_INLINE void Stationary(double* chain, int S, double* law) {
  const D d;
  const int N = Width();
  const auto at = [=](int i, int j) { return chain + (i * S + j) * N; };
  for (int n = S - 1; n > 0; --n) {
    V sum = hn::Zero(d);
    for (int j = 0; j < n; ++j) sum = hn::Add(sum, hn::Load(d, at(n, j)));
    const V share = OneOver(sum);
    for (int i = 0; i < n; ++i) {
      const V in = hn::Mul(hn::Load(d, at(i, n)), share);
      hn::Store(in, d, at(i, n));
      for (int j = 0; j < n; ++j)
        hn::Store(hn::MulAdd(in, hn::Load(d, at(n, j)), hn::Load(d, at(i, j))), d, at(i, j));
    }
  }
  V all = hn::Set(d, 1.0);
  hn::Store(all, d, law);
  for (int n = 1; n < S; ++n) {
    V sum = hn::Zero(d);
    for (int i = 0; i < n; ++i)
      sum = hn::MulAdd(hn::Load(d, law + i * N), hn::Load(d, at(i, n)), sum);
    hn::Store(sum, d, law + n * N);
    all = hn::Add(all, sum);
  }
  const V share = OneOver(all);
  for (int n = 0; n < S; ++n) hn::Store(hn::Mul(hn::Load(d, law + n * N), share), d, law + n * N);
}

// chain and law: space for states^2 and states vectors.
void ChainLaw(const double* P, const double* pi, int S, int A, double* chain, double* law,
              const Out& q) {
  const D d;
  const int N = Width();
  for (int l = 0; l < q.lanes; l += N) {
    MakeChain(P + l, pi + l, S, A, chain);
    Stationary(chain, S, law);
    for (int c = 0; c < S * A; ++c) {
      const V pair = hn::Mul(hn::Load(d, law + c / A * N), hn::Load(d, pi + c * kLanes + l));
      for (int r = c * S; r < (c + 1) * S; ++r)
        hn::Store(hn::Mul(pair, hn::Load(d, P + r * kLanes + l)), d, q.row(r) + l);
    }
  }
}

// exp(y - max y) with y = x'W, x having its numbers `step` apart.
HWY_INLINE void ExpScores(const double* W, int rows, int cols, const double* x, int step,
                          double* out) {
  const D d;
  const int N = Width(), stride = lanes_to_write(cols);
  V most = hn::Set(d, -HUGE_VAL);
  for (int c = 0; c < cols; c += N) {
    V a = hn::Zero(d), b = a;  // two chains
    int r = 0;
    for (; r + 2 <= rows; r += 2) {
      a = hn::MulAdd(hn::LoadU(d, W + r * stride + c), hn::Set(d, x[r * step]), a);
      b = hn::MulAdd(hn::LoadU(d, W + (r + 1) * stride + c), hn::Set(d, x[(r + 1) * step]), b);
    }
    if (r < rows) a = hn::MulAdd(hn::LoadU(d, W + r * stride + c), hn::Set(d, x[r * step]), a);
    a = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(cols - c)), hn::Add(a, b),
                       hn::Set(d, -HUGE_VAL));
    hn::StoreU(a, d, out + c);
    most = hn::Max(most, a);
  }
  most = hn::MaxOfLanes(d, most);
  for (int c = 0; c < cols; c += N)
    hn::StoreU(Exp(d, hn::Sub(hn::LoadU(d, out + c), most)), d, out + c);
}

void ChooseActions(const double* weights, int actions, const In& x, const double* state,
                   const double* u, int count, double* action) {
  const std::ptrdiff_t size = std::ptrdiff_t{x.rows} * lanes_to_write(actions);
  HWY_ALIGN double w[kMostActions];  // pi up to a factor
  for (int l = 0; l < count; ++l) {
    const bool shared = x.width == 1;
    ExpScores(weights + static_cast<std::ptrdiff_t>(state[l]) * size, x.rows, actions,
              shared ? x.p : x.p + l, shared ? 1 : kLanes, w);
    double all = 0, sum = 0;
    for (int a = 0; a < actions; ++a) all += w[a];
    int chosen = 0;  // without a branch that depends on chance
    for (int a = 0; a < actions - 1; ++a) {
      sum += w[a];
      chosen += u[l] * all >= sum ? 1 : 0;
    }
    action[l] = chosen;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(ChainLaw);
HWY_EXPORT(ChooseActions);

void chain_law(In P, In pi, int states, int actions, Scratch& scratch, Out q) {
  const auto space = [&](int n) {
    return scratch.numbers(static_cast<std::size_t>(n) * kLaneStep);
  };
  double *chain = space(states * states), *law = space(states);
  HWY_DYNAMIC_DISPATCH(ChainLaw)(P.p, pi.p, states, actions, chain, law, q);
}

void choose_actions(const double* weights, int actions, In x, In state, In u, Lanes lanes,
                    double* action) {
  HWY_DYNAMIC_DISPATCH(ChooseActions)(weights, actions, x, state.p, u.p, lanes.count, action);
}

}  // namespace affpcl
#endif
