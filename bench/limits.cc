#include "bench/limits.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "affpcl/math/instruction_sets-inl.h"
#include "affpcl/random/streams.h"
#include "bench/stopwatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limits.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

// Twelve chains: more than latency times units of any processor there is. Returns the flops done.
template <class T>
double Fma(int times, T* result) {
  const hn::ScalableTag<T> d;
  hn::Vec<hn::ScalableTag<T>> x[12];
  for (int i = 0; i < 12; ++i) x[i] = hn::Set(d, T(i));
  const auto a = hn::Set(d, T(0.999)), b = hn::Set(d, result[0]);
  for (int k = 0; k < times; ++k)
    for (int i = 0; i < 12; ++i) x[i] = hn::MulAdd(x[i], a, b);
  for (int i = 1; i < 12; ++i) x[0] = hn::Add(x[0], x[i]);
  result[0] = hn::GetLane(hn::SumOfLanes(d, x[0]));
  return 24.0 * times * static_cast<double>(hn::Lanes(d));
}
double Fma64(int times, double* result) { return Fma(times, result); }
double Fma32(int times, float* result) { return Fma(times, result); }

template <class T>
void ExpAll(T* numbers, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t N = hn::Lanes(d);
  for (std::size_t k = 0; k + 4 * N <= count; k += 4 * N)
    for (std::size_t i = 0; i < 4; ++i) {
      const auto x = hn::LoadU(d, numbers + k + i * N);
      hn::StoreU(hn::Sub(Exp2(d, x), hn::Set(d, T(1))), d, numbers + k + i * N);
    }
}
void Exp64(double* numbers, std::size_t count) { ExpAll(numbers, count); }
void Exp32(float* numbers, std::size_t count) { ExpAll(numbers, count); }

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Fma64);
HWY_EXPORT(Fma32);
HWY_EXPORT(Exp64);
HWY_EXPORT(Exp32);

namespace bench {
namespace {

constexpr std::size_t kInCache = 2048;
constexpr std::size_t kInMemory = std::size_t{64} << 20;

}  // namespace

void measure(Limits& limits) {
  const auto raise = [](double& limit, double now) { limit = std::max(limit, now); };
  double seed = 0.001;
  float seed_single = 0.001f;
  double flops = 0;
  const double t64 = fastest([&] { flops = HWY_DYNAMIC_DISPATCH(Fma64)(20000, &seed); });
  raise(limits.fma64, flops / t64);
  const double t32 = fastest([&] { flops = HWY_DYNAMIC_DISPATCH(Fma32)(20000, &seed_single); });
  raise(limits.fma32, flops / t32);
  std::vector<double> wide(kInCache, -0.5);
  std::vector<float> narrow(kInCache, -0.5f);
  constexpr int kTimes = 50;
  raise(limits.exp64, kTimes * kInCache / fastest([&] {
                        for (int k = 0; k < kTimes; ++k)
                          HWY_DYNAMIC_DISPATCH(Exp64)(wide.data(), kInCache);
                      }));
  raise(limits.exp32, kTimes * kInCache / fastest([&] {
                        for (int k = 0; k < kTimes; ++k)
                          HWY_DYNAMIC_DISPATCH(Exp32)(narrow.data(), kInCache);
                      }));
  constexpr int kRows = 20;
  const Store block(kRows, kLanes);
  std::uint32_t step = 0;
  raise(limits.normals,
        kTimes * kRows * kLanes / fastest([&] {
          for (int k = 0; k < kTimes; ++k)
            normals({1, 0, step++}, {0, kLanes}, Purpose::kSample, 0, block.block(0)[{0, kRows}]);
        }));
  if (limits.bandwidth > 0) return;
  std::vector<char> from(kInMemory, 1), to(kInMemory, 2);
  limits.bandwidth =
      2.0 * kInMemory / fastest([&] { std::memcpy(to.data(), from.data(), kInMemory); });
}

}  // namespace bench
}  // namespace affpcl
#endif
