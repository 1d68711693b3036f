// Who runs the blocks. Work comes in leaves of 256 agents; a worker takes a contiguous run of them
// in ascending order, so sums over leaves have the same bits for any team (math/sum_tree.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/sum_tree.h"

namespace affpcl {

class Team {
 public:
  virtual ~Team() = default;
  virtual int workers() const = 0;
  // work(leaf, worker) for every leaf. The first exception of any worker is rethrown here.
  virtual void each(std::int64_t leaves, FunctionRef<void(std::int64_t, int)> work) = 0;
};

std::unique_ptr<Team> serial_team();
std::unique_ptr<Team> thread_team(int threads);  // keeps its threads; they sleep between calls
int threads_or_all(int threads);                 // 0: as many as the machine has

// A sum over leaves, `width` numbers each, whose memory is kept from call to call.
class TeamSum {
 public:
  TeamSum() = default;
  TeamSum(std::size_t width, int workers) {
    for (int w = 0; w < workers; ++w) trees_.emplace_back(width);
  }
  // work(leaf, worker, numbers) fills one leaf; returns the total, valid until the next call.
  const double* operator()(Team& team, std::int64_t leaves,
                           FunctionRef<void(std::int64_t, int, double*)> work);

 private:
  std::vector<SumTree> trees_;
};

}  // namespace affpcl
