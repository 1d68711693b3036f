#include "affpcl/problem/facets.h"

#include <cmath>
#include <stdexcept>

#include "affpcl/problem/present.h"
#include "affpcl/problem/problem.h"

namespace affpcl {
namespace {

// out = sum over outcomes of their probability times what f makes of them.
template <class F>
void over_outcomes(const Problem& problem, const Finite& finite, Lanes lanes, Out out, F f) {
  Layout world, sample;
  problem.declare(world, sample);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes),
      space(static_cast<std::size_t>(out.rows) * kLanes);
  const Out s{state.data(), sample.rows()}, y{space.data(), out.rows};
  fill(out, 0);
  for (int o = 0; o < finite.outcomes(); ++o) {
    finite.outcome(lanes, o, s);
    f(s, y);
    for (int l = 0; l < lanes.count; ++l) {
      const double mu = finite.probability(lanes.first + l, o);
      if (mu == 0) continue;
      for (int r = 0; r < out.rows; ++r) out.row(r)[l] += mu * y.row(r)[l];
    }
  }
}

}  // namespace

void LinearObjective::coe(Lanes, In, In b, In, In bhat, Out g) const { subtract(bhat, b, g); }

void LinearObjective::at_centre(const Problem& problem, const AtCentre& at, Scratch& scratch,
                                const CentralDirections& to) const {
  Phi(at.lanes, at.s, at.theta, scratch, to.g);
  coe(at.lanes, at.s, at.b, at.theta, to.g, to.gtheta);
  problem.direction(at.lanes, at.s, {}, at.x, scratch, to.gx);
  subtract(to.gx, to.g, to.g);
  subtract(to.gx, at.b, to.gx);
}

void Means::mean_Phi(Lanes, In, Out) const {
  throw std::logic_error("Means::mean_Phi is needed where there is a Phi");
}

void Means::mean_coe(Lanes lanes, In theta, Out g) const {
  const Buffer space(static_cast<std::size_t>(g.rows) * kLanes);
  const Out b{space.data(), g.rows, g.lanes};
  mean_Phi(lanes, theta, g);
  mean_objective(lanes, b);
  add_scaled(g, -1, b);
}

void FiniteMeans::mean_apply(Lanes lanes, In x, Out Ax) const {
  Scratch scratch;
  over_outcomes(self(), *this, lanes, Ax,
                [&](In s, Out y) { self().direction(lanes, s, {}, x, scratch, y); });
}

void FiniteMeans::mean_objective(Lanes lanes, Out b) const {
  over_outcomes(self(), *this, lanes, b, [&](In s, Out y) { self().objective(lanes, s, y); });
}

void FiniteMeans::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  Scratch scratch;
  const LinearObjective& linear = *self().linear();
  over_outcomes(self(), *this, lanes, bhat,
                [&](In s, Out y) { linear.Phi(lanes, s, theta, scratch, y); });
}

void FiniteMeans::mean_coe(Lanes lanes, In theta, Out g) const {
  Scratch scratch;
  const LinearObjective& linear = *self().linear();
  const int d = self().shape().d;
  const std::size_t size = static_cast<std::size_t>(d) * kLanes;
  const Buffer space(2 * size);
  const Out b{space.data(), d}, bhat{space.data() + size, d};
  over_outcomes(self(), *this, lanes, g, [&](In s, Out y) {
    self().objective(lanes, s, b);
    linear.Phi(lanes, s, theta, scratch, bhat);
    linear.coe(lanes, s, b, theta, bhat, y);
  });
}

void Densities::accumulate_single(Lanes, In, In, Scratch&, double*) const {
  throw std::logic_error("Densities::accumulate_single is needed where has_single() is true");
}
void Densities::accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single,
                                Scratch& scratch, double* M) const {
  const Scratch::Frame frame(scratch);
  const Out some = scratch.rows(g.rows);
  fill(some, 0);
  each_lane(which, [&](int l) {
    for (int r = 0; r < g.rows; ++r) some.row(r)[l] = g.at(r, l);
  });
  if (single) return accumulate_single(lanes, s, some, scratch, M);
  accumulate(lanes, s, some, scratch, M);
}
std::unique_ptr<Densities> Densities::among(const Present&) const { return nullptr; }
double Densities::tv(std::int64_t, std::int64_t) const { return std::nan(""); }

void Occupancy::visit(Lanes, In, Out) const {
  throw std::logic_error("Occupancy::visit is needed where states are counted");
}

}  // namespace affpcl
