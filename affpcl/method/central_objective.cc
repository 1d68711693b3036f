#include "affpcl/method/central_objective.h"

#include <algorithm>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {

void CentralObjective::declare(const Setup& setup, Layout& centre, SumLayout& sum) {
  const Problem& problem = setup.problem;
  const int k = problem.shape().k;
  if (form_ == Form::kAuto) {
    switch (problem.objective_form()) {
      case ObjectiveForm::kLearnt:
        form_ = Form::kLearnt;
        break;
      case ObjectiveForm::kMoments:
        form_ = Form::kMoments;
        break;
      case ObjectiveForm::kKnown:
        form_ = Form::kKnown;
        break;
      case ObjectiveForm::kTabular:
        form_ = Form::kTabular;
        break;
    }
  }
  if ((form_ == Form::kLearnt || form_ == Form::kMoments) && k == 0)
    throw BadInput(std::string("objective = \"") + (steps() ? "learnt" : "moments") +
                   "\" needs Phi, which this problem does not have; use \"tabular\" or \"known\"");
  switch (form_) {
    case Form::kLearnt:
      theta_ = centre.add("thetac", k);
      break;
    case Form::kMoments:
      theta_ = centre.add("thetac", k);
      seen_ = centre.add("moments", k * (k + 1));
      moments_ = sum.add_product("moments", k, k + 1);
      break;
    case Form::kTabular:
      table_ = problem.table();
      if (table_.cells == 0)
        throw BadInput(
            "objective = \"tabular\" needs a problem with finitely many states; use \"learnt\"");
      seen_ = centre.add("seen", table_.cells * (table_.width + 1));
      cells_ = sum.add_product("cells", table_.cells, table_.width + 1);
      break;
    case Form::kKnown:
    case Form::kAuto:
      break;
  }
}

void CentralObjective::start(const Problem& problem, Centre centre) const {
  if (theta_.rows > 0) set(centre.mutate(theta_), problem.start_thetac());
}

void CentralObjective::evaluate(const Round& round, Lanes lanes, In s, In b, Centre centre, In x,
                                In theta, const Problem::AtCentre& to) const {
  if (form_ == Form::kLearnt) return round.problem.at_centre(lanes, s, b, x, theta, to);
  round.problem.apply(lanes, s, x, to.gx);
  if (form_ == Form::kKnown) {
    round.problem.known(lanes, s, to.g);
  } else if (form_ == Form::kMoments) {  // theta^c stays where it is during a round
    round.problem.Phi(lanes, s, centre[theta_], to.g);
  } else {
    from_table(round, lanes, s, centre, to.g);
  }
  subtract(to.gx, to.g, to.g);
  subtract(to.gx, b, to.gx);
}

void CentralObjective::from_table(const Round& round, Lanes lanes, In s, Centre centre,
                                  Out bhat) const {
  const Out cell = round.scratch.rows(1), value = round.scratch.rows(table_.width);
  round.problem.cell(lanes, s, cell);
  const double* seen = centre[seen_].p;
  for (int l = 0; l < lanes.count; ++l) {
    const double* c =
        seen + static_cast<std::ptrdiff_t>(std::max(cell.p[l], 0.0)) * (table_.width + 1);
    const double count = cell.p[l] < 0 ? 0 : c[table_.width];
    for (int r = 0; r < table_.width; ++r) value.row(r)[l] = count > 0 ? c[r] / count : 0;
  }
  round.problem.table_lift(lanes, s, value, bhat);
}

void CentralObjective::contribute(const Round& round, In s, In b, Message message) const {
  if (form_ == Form::kTabular) add_cell(round, s, b, message);
  if (form_ == Form::kMoments) add_moments(round, s, b, message);
}

void CentralObjective::add_cell(const Round& round, In s, In b, Message message) const {
  const Lanes lanes = message.lanes();
  const int w = table_.width;
  const Out cell = round.scratch.rows(1), value = round.scratch.rows(w);
  round.problem.cell(lanes, s, cell);
  round.problem.table_value(lanes, s, b, value);
  for (int l = 0; l < lanes.count; ++l) {
    if (cell.p[l] < 0) continue;
    double* c = message.at(cells_) + static_cast<std::ptrdiff_t>(cell.p[l]) * (w + 1);
    for (int r = 0; r < w; ++r) c[r] += value.row(r)[l];
    c[w] += 1;
  }
}

// COE's direction is M theta - v: its value at 0 is -v, at a unit vector a column of M minus v.
void CentralObjective::add_moments(const Round& round, In s, In b, Message message) const {
  const Lanes lanes = message.lanes();
  const int k = theta_.rows;
  const Out bhat = round.scratch.rows(b.rows), at_zero = round.scratch.rows(k),
            g = round.scratch.rows(k);
  double* unit = round.scratch.numbers(static_cast<std::size_t>(k));
  std::fill_n(unit, k, 0.0);
  const In theta{unit, k, 1};
  const auto direction = [&](Out to) {
    round.problem.Phi(lanes, s, theta, bhat);
    round.problem.coe(lanes, s, b, theta, bhat, to);
  };
  const auto total = [&](Out of, int r) {
    double sum = 0;
    for (int l = 0; l < lanes.count; ++l) sum += of.row(r)[l];
    return sum;
  };
  double* moments = message.at(moments_);
  direction(at_zero);
  for (int r = 0; r < k; ++r) moments[r * (k + 1) + k] -= total(at_zero, r);
  for (int c = 0; c < k; ++c) {
    unit[c] = 1;
    direction(g);
    unit[c] = 0;
    subtract(g, at_zero, g);
    for (int r = 0; r < k; ++r) moments[r * (k + 1) + c] += total(g, r);
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
