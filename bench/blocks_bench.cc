// Why agents are fastest in blocks of 64: A(s) x = A_base x + eps s (s' A_base x) for 4096 agents,
// by our kernels, by Eigen with one column per agent, and by plain loops over blocks.
// docs/decisions/002-blocks.md has the numbers.
#include <benchmark/benchmark.h>

#include <Eigen/Dense>

#include "affpcl/math/kernels.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr int kAgents = 4096;
constexpr double kEps = 0.5;

struct Data {
  explicit Data(int d)
      : A(static_cast<std::size_t>(d * d)), s(d, kAgents), x(d, kAgents), y(d, kAgents) {
    for (std::size_t i = 0; i < A.size(); ++i)
      A[i] = normal({}, 0, Purpose::kSystemA, static_cast<std::uint32_t>(i));
    for (std::int64_t b = 0; b < blocks_of(kAgents); ++b) {
      normals({}, lanes_of(b, kAgents), Purpose::kSample, 0, s.block(b)[{0, d}]);
      normals({}, lanes_of(b, kAgents), Purpose::kMethod, 0, x.block(b)[{0, d}]);
    }
  }
  std::vector<double> A;
  Store s, x, y;
};

void count(benchmark::State& state) {
  state.counters["agents/s"] =
      benchmark::Counter(kAgents, benchmark::Counter::kIsIterationInvariantRate);
}

void Blocks(benchmark::State& state) {
  const int d = static_cast<int>(state.range(0));
  const Data data(d);
  for (auto _ : state) {
    for (std::int64_t b = 0; b < blocks_of(kAgents); ++b) {
      const Out y = data.y.block(b)[{0, d}];
      kernels::matvec(data.A.data(), d, d, data.x.block(b)[{0, d}], y);
      kernels::rank_one(data.s.block(b)[{0, d}], y, kEps, y);
    }
    benchmark::ClobberMemory();
  }
  count(state);
}

void PlainLoops(benchmark::State& state) {
  const int d = static_cast<int>(state.range(0));
  const Data data(d);
  for (auto _ : state) {
    for (std::int64_t b = 0; b < blocks_of(kAgents); ++b) {
      const Out y = data.y.block(b)[{0, d}];
      const In x = data.x.block(b)[{0, d}], s = data.s.block(b)[{0, d}];
      double dot[kLanes] = {};
      for (int r = 0; r < d; ++r) {
        double* out = y.row(r);
        for (int l = 0; l < kLanes; ++l) out[l] = 0;
        for (int c = 0; c < d; ++c)
          for (int l = 0; l < kLanes; ++l)
            out[l] += data.A[static_cast<std::size_t>(r * d + c)] * x.row(c)[l];
        for (int l = 0; l < kLanes; ++l) dot[l] += s.row(r)[l] * out[l];
      }
      for (int r = 0; r < d; ++r)
        for (int l = 0; l < kLanes; ++l) y.row(r)[l] += kEps * s.row(r)[l] * dot[l];
    }
    benchmark::ClobberMemory();
  }
  count(state);
}

void EigenColumns(benchmark::State& state) {
  const int d = static_cast<int>(state.range(0));
  const Eigen::MatrixXd A = Eigen::MatrixXd::Random(d, d), s = Eigen::MatrixXd::Random(d, kAgents),
                        x = Eigen::MatrixXd::Random(d, kAgents);
  Eigen::MatrixXd y(d, kAgents);
  for (auto _ : state) {
    y.noalias() = A * x;
    y += (kEps * s).cwiseProduct(s.cwiseProduct(y).colwise().sum().replicate(d, 1));
    benchmark::ClobberMemory();
  }
  count(state);
}

BENCHMARK(Blocks)->Arg(5)->Arg(20)->Arg(84);
BENCHMARK(PlainLoops)->Arg(5)->Arg(20)->Arg(84);
BENCHMARK(EigenColumns)->Arg(5)->Arg(20)->Arg(84);

void Normals(benchmark::State& state) {
  Store z(20, kAgents);
  std::uint32_t step = 0;
  for (auto _ : state) {
    for (std::int64_t b = 0; b < blocks_of(kAgents); ++b)
      normals({1, 0, step++}, lanes_of(b, kAgents), Purpose::kSample, 0, z.block(b)[{0, 20}]);
    benchmark::ClobberMemory();
  }
  state.counters["normals/s"] =
      benchmark::Counter(20.0 * kAgents, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(Normals);

}  // namespace
}  // namespace affpcl
