// The sum of a round: what all agents contribute to it, and their errors. In doubles it is added leaf
// by leaf in the tree of sum_tree.h. In fixed point every agent's numbers are brought to integers
// before any addition, so the bits do not depend on who has which agents, and ranks send the sum
// once instead of their nodes of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/fixed.h"
#include "affpcl/math/sum_tree.h"
#include "affpcl/runtime/sums.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

class RoundSum {
 public:
  // Where the agents of a leaf add.
  class Part {
   public:
    Part(double* leaf, Fixed* sum, std::size_t message, std::size_t errors)
        : leaf_(leaf), sum_(sum), message_(message), errors_(errors) {}
    bool fixed() const { return sum_ != nullptr; }
    double* messages() const { return leaf_; }  // of the leaf; not in fixed point
    double* errors() const { return leaf_ + message_; }
    void add_message(std::span<const double> one) const;  // of one agent
    void add_error(std::size_t number, double error) const;

   private:
    double* leaf_;
    Fixed* sum_;
    std::size_t message_, errors_;
  };

  RoundSum() = default;
  // `purpose` is what the sum is for, in words: a site keeps account of what it sends.
  RoundSum(std::string purpose, std::size_t message, std::size_t errors, int workers, Sums sums);

  // work(leaf, worker, part) for every leaf of this process's `run`, of `leaves`. The sum of all
  // processes is valid until the next call. `needed` is false where nothing will be asked of it.
  void operator()(Team& team, Leaves run, std::int64_t leaves, bool needed,
                  FunctionRef<void(std::int64_t, int, const Part&)> work);
  const double* message() const { return total_; }
  const double* errors() const {
    return total_ + message_;
  }  // infinite where one of them is too large
  // Whether a number was not finite, or too large for fixed point, so that the message means nothing.
  bool lost() const { return lost_; }

 private:
  void add_fixed(Team& team, Leaves run, bool needed,
                 FunctionRef<void(std::int64_t, int, const Part&)> work);

  std::string purpose_;
  Sums sums_ = Sums::kFloat;
  std::size_t message_ = 0, errors_ = 0;
  const double* total_ = nullptr;
  bool lost_ = false;
  TeamSum tree_;
  std::vector<std::vector<Fixed>> workers_;  // message, errors, and how many of each were lost
  std::vector<double> numbers_;
};

}  // namespace affpcl
