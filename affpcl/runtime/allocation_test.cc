// The round loop allocates nothing, and memory that a process does not need is freed: operator new
// is replaced for the whole test program and counts. Not under the sanitizers, which have an
// operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "affpcl/problem/agent_share.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/run.h"
#include "tests/conformance.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<long> g_allocations{0};
std::atomic<long> g_bytes{0};  // in use
std::atomic<long> g_most{0};   // at any time

// Not inlined: GCC would warn of free() on what operator new returned.
[[gnu::noinline]] void release(void* p) {
  g_bytes -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (g_counting.load(std::memory_order_relaxed)) ++g_allocations;
  if (size == 0) size = 1;
  void* p = alignment == 0
                ? std::malloc(size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  g_bytes += static_cast<long>(malloc_usable_size(p));
  if (g_bytes > g_most) g_most = g_bytes.load();
  return p;
}

}  // namespace

// The other forms (arrays, nothrow) call these.
void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) {
  return allocate(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace affpcl {
namespace {

using conformance::constant_step;
using conformance::make_method;
using Loop = Run;

long allocations_in(const std::function<void()>& work) {
  g_allocations = 0;
  g_counting = true;
  work();
  g_counting = false;
  return g_allocations;
}

TEST(Allocation, IsCounted) {  // the test must be able to fail
  std::vector<double*> kept;
  kept.reserve(2);
  EXPECT_EQ(allocations_in([&] { kept.push_back(new double(1)); }), 1);
  EXPECT_EQ(allocations_in([&] { const Buffer b(100); }), 1);
  EXPECT_EQ(allocations_in([&] { kept.push_back(new double[7]); }), 1);
  EXPECT_EQ(allocations_in([] {}), 0);
  delete kept[0];
  delete[] kept[1];
}

long allocations_of_rounds(const Problem& problem, const std::vector<std::string>& kinds,
                           int period, int batch) {
  const std::unique_ptr<Team> team = serial_team();
  std::vector<RunMethod> methods;
  for (const std::string& kind : kinds)
    methods.push_back(make_method(method_kind(kind), constant_step(1e-4), period, batch));
  RunOptions options;
  options.steps = 120;
  options.curve_agents = {0};
  Loop run(problem, std::move(methods), options, *team);
  run.advance(24);  // the first rounds find out how much space they need
  return allocations_in([&] { run.advance(120); });
}

TEST(Allocation, NoneInTheRoundLoop) {
  const Gaussian problem({.agents = 70, .dim = 5}, 1, 0);  // the second block is ragged
  const std::vector<std::string> kinds = {"affpcl", "independent", "fedavg"};
  EXPECT_EQ(allocations_of_rounds(problem, kinds, 1, 1), 0);
  EXPECT_EQ(allocations_of_rounds(problem, kinds, 3, 2), 0);
}

TEST(Allocation, NoneInTheRoundLoopOfAnyMethod) {
  const Gaussian gaussian({.agents = 300, .dim = 3}, 1, 0);
  const Tabular tabular(Tabular::generate({.agents = 70}, 1, 0), Tabular::Coe::kAuto);
  for (const MethodKind& kind : method_kinds())
    for (const Problem* problem :
         {static_cast<const Problem*>(&gaussian), static_cast<const Problem*>(&tabular)})
      EXPECT_EQ(allocations_of_rounds(*problem, {std::string(kind.name)}, 1, 1), 0)
          << kind.name << (problem == &gaussian ? " on gaussian" : " on tabular");
}

// Of a process's share: 1 of 100 blocks. One environment, so that nothing else grows with agents.
TEST(Allocation, AProblemKeepsTheMemoryOfItsOwnBlocksOnly) {
  for (const char* kind : {"gaussian", "least_squares"}) {
    const long before = g_bytes;
    const std::unique_ptr<Problem> problem = conformance::make_problem(
        problem_kind(kind), 100 * kLanes, {{"environments", std::int64_t{1}}});
    const long all = g_bytes - before;
    problem->keep(40, 41);
    EXPECT_LT(g_bytes - before, all / 20) << kind << ": " << all << " bytes";
  }
}

// Makes one leaf of many, and stands for no other process.
struct OneLeaf final : AgentShare {
  Leaves own(std::int64_t) const override { return {20, 21}; }
  std::vector<double> sum(std::int64_t agents, std::size_t width, Add add) const override {
    std::vector<double> numbers(width);
    add_leaf(20, agents, add, numbers.data());
    return numbers;
  }
};

TEST(Allocation, AProcessMakesTheMemoryOfItsOwnBlocksOnly) {
  for (const ProblemKind& kind : problem_kinds()) {
    if (!kind.make_share) continue;
    const Values values(kind.params, {{"agents", std::int64_t{100 * kLeaf}}}, "");
    const long before = g_bytes;
    const std::unique_ptr<Problem> all = kind.make(values, 1, 0);
    const long of_all = g_bytes - before;
    g_most = g_bytes.load();
    const long start = g_most;
    const std::unique_ptr<Problem> part = kind.make_share(values, 1, 0, OneLeaf());
    EXPECT_LT(g_most - start, of_all / 10) << kind.name << ": " << of_all << " bytes";
  }
}

}  // namespace
}  // namespace affpcl

#endif
