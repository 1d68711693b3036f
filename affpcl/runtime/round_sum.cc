#include "affpcl/runtime/round_sum.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace affpcl {

void RoundSum::Part::add_message(std::span<const double> one) const {
  if (fixed()) {
    if (const std::size_t lost = affpcl::add_fixed(one, sum_); lost > 0)
      sum_[message_ + errors_] += to_fixed(static_cast<double>(lost));
  } else {
    for (std::size_t k = 0; k < one.size(); ++k) leaf_[k] += one[k];
  }
}

void RoundSum::Part::add_error(std::size_t number, double error) const {
  if (!fixed())
    errors()[number] += error;
  else if (affpcl::add_fixed({&error, 1}, sum_ + message_ + number) > 0)
    sum_[message_ + errors_ + 1] += to_fixed(1);
}

RoundSum::RoundSum(std::string purpose, std::size_t message, std::size_t errors, int workers,
                   Sums sums)
    : purpose_(std::move(purpose)), sums_(sums), message_(message), errors_(errors) {
  if (sums == Sums::kFloat) {
    tree_ = TeamSum(message + errors, workers);
  } else {
    workers_.resize(static_cast<std::size_t>(workers));
    for (std::vector<Fixed>& w : workers_) w.resize(message + errors + 2);
    numbers_.resize(message + errors + 2);
  }
}

void RoundSum::operator()(Team& team, Leaves run, std::int64_t leaves, bool needed,
                          FunctionRef<void(std::int64_t, int, const Part&)> work) {
  if (sums_ == Sums::kFixed) return add_fixed(team, run, needed, work);
  total_ = tree_(team, leaves, [&](std::int64_t leaf, int worker, double* numbers) {
    work(leaf, worker, Part(numbers, nullptr, message_, errors_));
  });
}

void RoundSum::add_fixed(Team& team, Leaves run, bool needed,
                         FunctionRef<void(std::int64_t, int, const Part&)> work) {
  for (std::vector<Fixed>& w : workers_) std::fill(w.begin(), w.end(), Fixed{});
  team.each(run, [&](std::int64_t leaf, int worker) {
    work(leaf, worker,
         Part(nullptr, workers_[static_cast<std::size_t>(worker)].data(), message_, errors_));
  });
  if (!needed) return;
  std::vector<Fixed>& sum = workers_[0];
  for (std::size_t w = 1; w < workers_.size(); ++w)
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += workers_[w][k];
  team.processes().set_purpose(purpose_);
  team.processes().sum(sum);
  std::transform(sum.begin(), sum.end(), numbers_.begin(), to_double);
  total_ = numbers_.data();
  const std::size_t lost = message_ + errors_;
  lost_ = numbers_[lost] > 0;
  if (numbers_[lost + 1] > 0)
    std::fill_n(numbers_.begin() + static_cast<std::ptrdiff_t>(message_), errors_,
                std::numeric_limits<double>::infinity());
}

}  // namespace affpcl
