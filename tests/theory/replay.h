// Any finite problem with samples that are chosen, through the real Run: outcome numbers instead of
// draws, and any starts. So an expectation becomes a sum over all joint outcomes, as Game makes it
// for tables.
#pragma once

#include <utility>
#include <vector>

#include "affpcl/problem/problem.h"
#include "tests/theory/harness.h"

namespace affpcl::testing {

struct Starts {
  std::vector<std::vector<double>> x;  // per agent
  std::vector<double> xc, thetac;
};

class Replay final : public Problem {
 public:
  // outcomes[agent * steps + t]. `densities` replaces the problem's own, to show what goes wrong.
  Replay(const Problem& of, std::vector<int> outcomes, Starts starts,
         const Densities* densities = nullptr)
      : of_(of),
        outcomes_(std::move(outcomes)),
        starts_(std::move(starts)),
        densities_(densities != nullptr ? densities : of.densities()) {}

  Shape shape() const override { return of_.shape(); }
  void declare(Layout& world, Layout& sample) const override { of_.declare(world, sample); }
  std::int64_t most_samples() const override {
    return static_cast<std::int64_t>(outcomes_.size()) / shape().agents;
  }
  void draw(const Draw& draw, Agents world, Out s) const override {
    const Buffer space(static_cast<std::size_t>(s.rows) * kLanes);
    const Out one{space.data(), s.rows};
    for (int l = 0; l < world.lanes.count; ++l) {
      const std::int64_t i = world.lanes.first + l;
      of_.outcome(world.lanes, outcomes_[at(i * most_samples() + draw.key.step)], one);
      for (int r = 0; r < s.rows; ++r) s.row(r)[l] = one.row(r)[l];
    }
  }
  void apply(Lanes lanes, In s, In x, Out Ax) const override { of_.apply(lanes, s, x, Ax); }
  void objective(Lanes lanes, In s, Out b) const override { of_.objective(lanes, s, b); }
  void Phi(Lanes lanes, In s, In theta, Out bhat) const override { of_.Phi(lanes, s, theta, bhat); }
  void known(Lanes lanes, In s, Out b0) const override { of_.known(lanes, s, b0); }
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override {
    of_.coe(lanes, s, b, theta, bhat, g);
  }
  const Densities* densities() const override { return densities_; }
  Table table() const override { return of_.table(); }
  ObjectiveForm objective_form() const override { return of_.objective_form(); }
  void cell(Lanes lanes, In s, Out index) const override { of_.cell(lanes, s, index); }
  void table_value(Lanes lanes, In s, In b, Out value) const override {
    of_.table_value(lanes, s, b, value);
  }
  void table_lift(Lanes lanes, In s, In value, Out bhat) const override {
    of_.table_lift(lanes, s, value, bhat);
  }
  std::vector<double> start_x(std::int64_t agent) const override { return starts_.x[at(agent)]; }
  std::vector<double> start_xc() const override { return starts_.xc; }
  std::vector<double> start_thetac() const override { return starts_.thetac; }

 private:
  const Problem& of_;
  std::vector<int> outcomes_;
  Starts starts_;
  const Densities* densities_;
};

}  // namespace affpcl::testing
