// The processes that work on one job: this one alone, or the ranks of an MPI job (runtime/mpi). All
// of them run the same program and call the same collectives in the same order. These move bytes;
// runtime/collectives.h has them for numbers and strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/fixed.h"

namespace affpcl {

class Processes {
 public:
  using Bytes = std::span<std::byte>;
  using ConstBytes = std::span<const std::byte>;
  using Counts = std::span<const std::size_t>;  // of bytes, by rank

  virtual ~Processes() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }
  bool first() const { return rank() == 0; }
  // Each has rows that no other may read: sites of different organisations (federation/site.h). Such
  // processes add (sum) and exchange strings (all_gather), and nothing else. What is gathered to rank
  // 0 stays where it is.
  virtual bool apart() const { return false; }
  virtual std::string name() const { return {}; }  // of a site that is apart
  // What the following sums are for, in words: a site keeps account of what it sends.
  virtual void set_purpose(std::string_view) {}

  // The bytes of every rank, in the order of the ranks, on every rank: counts[r] come from rank r.
  virtual void all_gather(ConstBytes mine, Counts counts, Bytes all);
  // to[r] bytes of `mine` go to rank r, and from[r] of `all` come from it, in the order of the
  // ranks.
  virtual void all_to_all(ConstBytes mine, Counts to, Counts from, Bytes all);
  // The bytes of rank 0, on every rank.
  virtual void broadcast(Bytes) {}
  // Rank 0 calls take(bytes) for every rank, in the order of the ranks.
  virtual void gather(ConstBytes mine, FunctionRef<void(ConstBytes)> take) { take(mine); }
  // Rank 0 calls fill(bytes) for every rank, in the order of the ranks; these arrive there in
  // `mine`.
  virtual void scatter(Bytes mine, FunctionRef<void(Bytes)> fill) { fill(mine); }
  // The sums over all ranks, number by number, modulo 2^128.
  virtual void sum(std::span<Fixed> numbers);
  // Whether it is true on any rank.
  virtual bool any(bool mine) { return mine; }

  // What this rank has spent on communication so far.
  struct Traffic {
    std::int64_t bytes = 0;  // sent to other ranks
    double seconds = 0;      // including the time in which it waited for other ranks
  };
  virtual Traffic traffic() const { return {}; }
};

Processes& this_process();  // alone: one rank

}  // namespace affpcl
