// The processes that work on one job: this one alone, or the ranks of an MPI job (runtime/mpi). All
// of them run the same program and call these functions in the same order.
#pragma once

#include <cstdint>
#include <span>

#include "affpcl/base/function_ref.h"

namespace affpcl {

class Processes {
 public:
  virtual ~Processes() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  bool first() const { return rank() == 0; }

  // Everybody's numbers, in the order of the ranks, to everybody. counts[r] numbers come from r.
  virtual void share(std::span<const double> mine, std::span<const std::size_t> counts,
                     std::span<double> all);
  // Numbers for each process, in the order of the ranks: to[r] of `mine` go to r, and from[r] of
  // `all` come from it.
  virtual void exchange(std::span<const double> mine, std::span<const std::size_t> to,
                        std::span<const std::size_t> from, std::span<double> all);
  // Whether it is true for anybody.
  virtual bool any(bool mine) { return mine; }
  // The first process's numbers, to everybody.
  virtual void spread(std::span<double> numbers) { (void)numbers; }
  // Everybody's numbers go to the first process, where take(numbers) is called for each process, in
  // the order of the ranks.
  virtual void to_first(std::span<const double> mine,
                        FunctionRef<void(std::span<const double>)> take) {
    take(mine);
  }
  // The way back: the first process fills each process's numbers, in the order of the ranks.
  virtual void from_first(std::span<double> mine, FunctionRef<void(std::span<double>)> fill) {
    fill(mine);
  }

  // Of this process so far.
  struct Traffic {
    std::int64_t bytes = 0;  // sent
    double seconds = 0;      // in communication, waiting for others included
  };
  virtual Traffic traffic() const { return {}; }
};

Processes& this_process();  // alone

}  // namespace affpcl
