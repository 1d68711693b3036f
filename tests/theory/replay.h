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

class Replay final : public Problem, public Recorded {
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
  bool present(std::int64_t, std::int64_t) const override { return true; }
  std::int64_t count_present(std::int64_t) const override { return shape().agents; }
  void draw(const Draw& draw, Agents world, Out s) const override {
    const Buffer space(static_cast<std::size_t>(s.rows) * kLanes);
    const Out one{space.data(), s.rows};
    for (int l = 0; l < world.lanes.count; ++l) {
      const std::int64_t i = world.lanes.first + l;
      of_.finite()->outcome(world.lanes, outcomes_[at(i * most_samples() + draw.key.step)], one);
      for (int r = 0; r < s.rows; ++r) s.row(r)[l] = one.row(r)[l];
    }
  }
  void objective(Lanes lanes, In s, Out b) const override { of_.objective(lanes, s, b); }
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override {
    of_.direction(lanes, s, b, x, scratch, g);
  }
  void start(Lanes lanes, Out x) const override {
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < x.rows; ++r) x.row(r)[l] = starts_.x[at(lanes.first + l)][at(r)];
  }
  CentralStart central_start() const override { return {starts_.xc, starts_.thetac}; }
  Facets facets() const override {
    Facets facets = of_.facets();
    facets.means = nullptr, facets.finite = nullptr;
    facets.densities = densities_, facets.recorded = this;
    return facets;
  }

 private:
  const Problem& of_;
  std::vector<int> outcomes_;
  Starts starts_;
  const Densities* densities_;
};

}  // namespace affpcl::testing
