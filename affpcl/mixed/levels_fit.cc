#include "affpcl/mixed/levels_fit.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/decomposition.h"
#include "affpcl/table/folds.h"

namespace affpcl {
namespace {

constexpr double kCentrePrecision = 0.01;  // of x_c, as without a second factor
constexpr double kFoldTolerance = 1e-3;    // of the log evidence in folds, warm from all rows

using Rows = std::vector<std::vector<std::size_t>>;

// The rows that are learnt from: of each agent of this process, with their agents by row.
Rows rows_by_agent(const Frame& frame, int without, Team& team,
                   std::vector<std::size_t>& agent_of) {
  Rows rows;
  agent_of.resize(frame.rows);
  const Leaves own = own_agents(frame.agents.size(), team);
  for (std::int64_t agent = own.first; agent < own.last; ++agent) {
    const auto i = static_cast<std::size_t>(agent);
    rows.emplace_back();
    for (const auto [from, to] : frame.training(i, without))
      for (std::size_t r = from; r < to; ++r) rows.back().push_back(r), agent_of[r] = i;
  }
  return rows;
}

Rows rows_by_level(const Frame& frame, const Rows& by_agent) {
  Rows rows(frame.levels.size());
  for (const std::vector<std::size_t>& own : by_agent)
    for (std::size_t r : own) rows[static_cast<std::size_t>(frame.level[r])].push_back(r);
  return rows;
}

// The sums of rows by what they meet: met(row) of `count`.
template <class Met>
LevelCells cells_of(const Frame& frame, const Rows& rows, std::size_t count, Met met) {
  LevelCells cells;
  cells.levels = count;
  cells.nested = !frame.encoding.within.empty();
  const std::size_t d = frame.d;
  std::vector<std::size_t> at(count);  // its cell
  for (const std::vector<std::size_t>& own : rows) {
    const auto first = static_cast<std::ptrdiff_t>(cells.count());
    for (std::size_t r : own) cells.level.push_back(met(r));
    std::sort(cells.level.begin() + first, cells.level.end());
    cells.level.erase(std::unique(cells.level.begin() + first, cells.level.end()),
                      cells.level.end());
    for (auto c = static_cast<std::size_t>(first); c < cells.count(); ++c) at[cells.level[c]] = c;
    cells.X.resize(cells.count() * d), cells.y.resize(cells.count());
    for (std::size_t r : own) {
      const std::size_t c = at[met(r)];
      for (std::size_t j = 0; j < d; ++j) cells.X[c * d + j] += frame.X[j * frame.rows + r];
      cells.y[c] += frame.Y[r];
    }
    cells.first.push_back(cells.count());
  }
  return cells;
}

std::vector<std::size_t> random_coefficients(const Frame& frame) {
  std::vector<std::size_t> random;
  for (std::size_t j = 0; j < frame.d; ++j)
    if (!frame.encoding.is_common(j)) random.push_back(j);
  return random;
}

// Whether levels are eliminated first.
bool levels_first(const Frame& frame) {
  return frame.encoding.within.empty() && random_coefficients(frame).size() == 1 &&
         frame.agents.size() < frame.levels.size();
}

Moments moments_of(const Frame& frame, const Rows& rows) {
  Moments m(rows.size(), frame.d);
  Vector x(frame.d);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t r : rows[i]) {
      for (std::size_t j = 0; j < frame.d; ++j) x[j] = frame.X[j * frame.rows + r];
      m.add(i, x, frame.Y[r]);
    }
  return m;
}

}  // namespace

std::size_t LevelFit::system_size(const Frame& frame) {
  return levels_first(frame) ? frame.agents.size() : frame.levels.size();
}

LevelFit::LevelFit(const Frame& frame, const Moments& moments, int without,
                   const LevelDecomposition* start, bool restricted, Team& team)
    : random_(random_coefficients(frame)),
      agents_(frame.agents.size()),
      restricted_(restricted),
      swapped_(levels_first(frame)),
      moments_(moments) {
  std::vector<std::size_t> agent_of;
  const Rows rows = rows_by_agent(frame, without, team, agent_of);
  if (swapped_) {
    const Rows turned = rows_by_level(frame, rows);
    by_level_ = moments_of(frame, turned);
    cells_ = cells_of(frame, turned, agents_, [&](std::size_t r) { return agent_of[r]; });
  } else {
    cells_ = cells_of(frame, rows, frame.levels.size(),
                      [&](std::size_t r) { return static_cast<std::size_t>(frame.level[r]); });
  }
  evidence_.emplace(swapped_ ? by_level_ : moments_, cells_, random_, kCentrePrecision, team,
                    restricted);
  LevelOptions options;
  std::optional<LevelDecomposition> from;
  if (start != nullptr) from = turned(*start), options.evidence_tolerance = kFoldTolerance;
  tried_ = decompose_levels(options, from ? &*from : nullptr, *evidence_);
  posteriors_.emplace(effects_of(best().covariance, random_), *evidence_);
  for (LevelDecomposition& t : tried_) t = turned(t);
}

// From the roles of agents and levels in the evidence to those they have, or back.
LevelDecomposition LevelFit::turned(LevelDecomposition found) const {
  if (!swapped_) return found;
  LevelVariances& v = found.variances;
  std::swap(v.D[0], v.tau2);
  found.bic = -2 * found.log_evidence +
              ((v.D[0] > 0) + (v.tau2 > 0)) * std::log(static_cast<double>(agents_));
  return found;
}

double LevelFit::log_likelihood() const {
  return affpcl::log_likelihood(best().log_evidence, centre(), kCentrePrecision, restricted_);
}

LevelFit::Agent LevelFit::agent(std::size_t i) const {
  if (!swapped_) {
    LevelPosteriors::Agent own = posteriors_->agent(i);
    return {std::move(own.x), std::move(own.cov)};
  }
  // The intercept of x_c with the agent's effect.
  const std::size_t d = centre().size(), intercept = random_[0];
  Agent a{centre(), centre_cov()};
  a.x[intercept] += posteriors_->effect(i);
  Vector cross(d);
  evidence_->centre_level_cov(i, cross);
  for (std::size_t j = 0; j < d; ++j)
    a.cov(intercept, j) += cross[j], a.cov(j, intercept) += cross[j];
  a.cov(intercept, intercept) += posteriors_->variance(i);
  return a;
}

std::size_t LevelFit::level_of(std::size_t i) const {
  return cells_.level[cells_.first[moments_.at(i)]];
}

Vector LevelFit::level_cov(std::size_t i) const { return posteriors_->agent(i).cross.all(); }

LevelFit::Effect LevelFit::level(std::size_t g) const {
  if (!swapped_) return {posteriors_->effect(g), posteriors_->variance(g)};
  const LevelPosteriors::Agent own = posteriors_->effects(g);
  return {own.x[random_[0]], own.cov(random_[0], random_[0])};
}

}  // namespace affpcl
