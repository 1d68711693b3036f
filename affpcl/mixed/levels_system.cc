#include "affpcl/mixed/levels_system.h"

#include <algorithm>
#include <cmath>

namespace affpcl {
namespace {

constexpr std::size_t kRows = 64;  // at a time: bits do not depend on the team

template <class Work>
void each_run(std::size_t levels, Team& team, Work work) {
  const auto runs = static_cast<std::int64_t>((levels + kRows - 1) / kRows);
  team.each({0, runs}, [&](std::int64_t run, int) {
    const auto first = run * static_cast<std::int64_t>(kRows);
    work(Leaves{first, std::min(first + static_cast<std::int64_t>(kRows),
                                static_cast<std::int64_t>(levels))});
  });
}

}  // namespace

void LevelSystem::set(Team& team, FunctionRef<void(Leaves, MatrixSpan)> add) {
  E_ = Matrix(levels_, levels_);
  each_run(levels_, team, [&](Leaves run) { add(run, E_); });
}

void LevelSystem::factor(double tau2) {
  if (diagonal_) {
    S_.assign(levels_, 1.0);
    for (std::size_t g = 0; g < levels_; ++g) S_[g] += tau2 * diagonal_E_[g];
    Vector logs = S_;
    logarithms(logs);
    log_determinant_ = sum(logs);
    return;
  }
  Matrix S = E_;
  for (double& v : S.all()) v *= tau2;
  for (std::size_t g = 0; g < levels_; ++g) S(g, g) += 1;
  cholesky_.factor(S);
  log_determinant_ = cholesky_.log_determinant();
}

void LevelSystem::solve(MatrixSpan rows) const {
  if (!diagonal_) {
    cholesky_.forward(rows);
    cholesky_.backward(rows);
    return;
  }
  for (std::size_t r = 0; r < rows.rows(); ++r)
    for (std::size_t g = 0; g < levels_; ++g) rows(r, g) /= S_[g];
}

void LevelSystem::invert(Team& team) {
  if (diagonal_) return;
  if (inverse_.rows() != levels_) inverse_ = Matrix(levels_, levels_);
  each_run(levels_, team, [&](Leaves run) {
    const auto first = static_cast<std::size_t>(run.first);
    cholesky_.inverse_rows(
        first, {inverse_.row(first).data(), static_cast<std::size_t>(run.count()), levels_});
  });
  each_run(levels_, team, [&](Leaves run) {
    for (auto g = static_cast<std::size_t>(run.first); g < static_cast<std::size_t>(run.last); ++g)
      for (std::size_t h = 0; h < static_cast<std::size_t>(run.first); ++h)
        inverse_(g, h) = inverse_(h, g);
  });
}

double LevelSystem::information(std::size_t g) const {
  return diagonal_ ? diagonal_E_[g] / S_[g] : dot(E_.row(g), inverse_.row(g));
}

}  // namespace affpcl
