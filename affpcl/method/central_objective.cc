#include "affpcl/method/central_objective.h"

#include <algorithm>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {

// kAuto becomes the problem's choice; refuses a form that the problem cannot have.
void CentralObjective::resolve(const Problem& problem) {
  const Facets facets = problem.facets();
  if (form_ == Form::kAuto) {
    constexpr Form kChoices[] = {Form::kLearnt, Form::kMoments, Form::kKnown, Form::kTabular};
    form_ = kChoices[static_cast<int>(facets.form)];
  }
  if ((form_ == Form::kLearnt || form_ == Form::kMoments) && facets.linear == nullptr)
    throw BadInput(std::string("objective = \"") + (steps() ? "learnt" : "moments") +
                   "\" needs Phi, which this problem does not have; use \"tabular\" or \"known\"");
  if (form_ == Form::kKnown && facets.known == nullptr)
    throw BadInput(
        "objective = \"known\" needs a problem that states the mean of all agents' objectives; on "
        "recorded data that is outcome channels with the agents' weights (problem.weights)");
  if (form_ == Form::kTabular && facets.table == nullptr)
    throw BadInput(
        "objective = \"tabular\" needs a problem with finitely many states; use \"learnt\"");
}

void CentralObjective::declare(const Setup& setup, Layout& centre, SumLayout& sum) {
  const int k = setup.problem.shape().k;
  resolve(setup.problem);
  if (form_ == Form::kLearnt || form_ == Form::kMoments) theta_ = centre.add("thetac", k);
  if (form_ == Form::kMoments) {
    seen_ = centre.add("moments", k * (k + 1));
    moments_ = sum.add_product("moments", k, k + 1);
  }
  if (form_ == Form::kTabular) {
    const ObjectiveTable& table = *setup.problem.facets().table;
    width_ = table.width();
    seen_ = centre.add("seen", table.cells() * (width_ + 1));
    cells_ = sum.add_product("cells", table.cells(), width_ + 1);
  }
}

void CentralObjective::start(const Problem& problem, Centre centre) const {
  if (theta_.rows > 0) set(centre.mutate(theta_), central_start(problem).theta);
}

void CentralObjective::evaluate(const Block& block, const AtCentre& at,
                                const CentralDirections& to) const {
  const Problem& problem = block.problem();
  Scratch& scratch = block.scratch();
  const Facets facets = problem.facets();
  if (form_ == Form::kLearnt) return facets.linear->at_centre(problem, at, scratch, to);
  problem.direction(at.lanes, at.s, {}, at.x, scratch, to.gx);
  if (form_ == Form::kKnown) {
    facets.known->known(at.lanes, at.s, scratch, to.g);
  } else if (form_ == Form::kMoments) {  // theta^c stays where it is during a round
    facets.linear->Phi(at.lanes, at.s, block.centre[theta_], scratch, to.g);
  } else {
    from_table(block, at.s, to.g);
  }
  subtract(to.gx, to.g, to.g);
  subtract(to.gx, at.b, to.gx);
}

void CentralObjective::from_table(const Block& block, In s, Out bhat) const {
  const Scratch::Frame frame(block.scratch());
  const ObjectiveTable& table = *block.problem().facets().table;
  const Out cell = block.scratch().rows(1), value = block.scratch().rows(width_);
  table.cell(block.lanes(), s, cell);
  const double* seen = block.centre[seen_].p;
  for (int l = 0; l < block.lanes().count; ++l) {
    const double* c = seen + static_cast<std::ptrdiff_t>(std::max(cell.p[l], 0.0)) * (width_ + 1);
    const double count = cell.p[l] < 0 ? 0 : c[width_];
    for (int r = 0; r < width_; ++r) value.row(r)[l] = count > 0 ? c[r] / count : 0;
  }
  table.table_lift(block.lanes(), s, value, bhat);
}

void CentralObjective::contribute(const Block& block, In s, In b, Message message) const {
  if (form_ == Form::kTabular) add_cell(block, s, b, message);
  if (form_ == Form::kMoments) add_moments(block, s, b, message);
}

void CentralObjective::add_cell(const Block& block, In s, In b, Message message) const {
  const Scratch::Frame frame(block.scratch());
  const Lanes lanes = block.lanes();
  const ObjectiveTable& table = *block.problem().facets().table;
  const Out cell = block.scratch().rows(1), value = block.scratch().rows(width_);
  table.cell(lanes, s, cell);
  table.table_value(lanes, s, b, value);
  each_lane(message.present(), [&](int l) {
    if (cell.p[l] < 0) return;
    double* c = message.at(cells_, l) + static_cast<std::ptrdiff_t>(cell.p[l]) * (width_ + 1);
    for (int r = 0; r < width_; ++r) c[r] += value.row(r)[l];
    c[width_] += 1;
  });
}

// COE's direction is M theta - v: its value at 0 is -v, at a unit vector a column of M minus v.
void CentralObjective::add_moments(const Block& block, In s, In b, Message message) const {
  Scratch& scratch = block.scratch();
  const Scratch::Frame frame(scratch);
  const LinearObjective& linear = *block.problem().linear();
  const Lanes lanes = block.lanes();
  const int k = theta_.rows;
  const Out bhat = scratch.rows(b.rows), at_zero = scratch.rows(k), g = scratch.rows(k);
  double* unit = scratch.numbers(static_cast<std::size_t>(k));
  std::fill_n(unit, k, 0.0);
  const In theta{unit, k, 1};
  const auto coe = [&](Out to) {
    linear.Phi(lanes, s, theta, scratch, bhat);
    linear.coe(lanes, s, b, theta, bhat, to);
  };
  const auto add_column = [&](int c, Out column, double factor) {
    message.each(moments_, [&](LaneSet which, double* moments) {
      for (int r = 0; r < k; ++r) {
        double sum = 0;
        each_lane(which, [&](int l) { sum += column.row(r)[l]; });
        moments[r * (k + 1) + c] += factor * sum;
      }
    });
  };
  coe(at_zero);
  add_column(k, at_zero, -1);
  for (int c = 0; c < k; ++c) {
    unit[c] = 1;
    coe(g);
    unit[c] = 0;
    subtract(g, at_zero, g);
    add_column(c, g, 1);
  }
}

void CentralObjective::centre(Mean mean, Centre centre) const {
  if (form_ == Form::kTabular) shift(centre.mutate(seen_), {mean[cells_], seen_.rows, 1});
  if (form_ != Form::kMoments) return;
  shift(centre.mutate(seen_), {mean[moments_], seen_.rows, 1});
  const auto k = static_cast<std::size_t>(theta_.rows);
  const double* seen = centre[seen_].p;
  Matrix M(k, k);
  Vector v(k);
  for (std::size_t r = 0; r < k; ++r) {
    std::copy_n(seen + r * (k + 1), k, M.row(r).begin());
    v[r] = seen[r * (k + 1) + k];
  }
  set(centre.mutate(theta_), solve_least_norm(M, v));
}

}  // namespace affpcl
