#include "affpcl/mixed/unseen.h"

#include <gtest/gtest.h>

#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

// An agent's column sits around its own place. Within an agent the target rises with the column by
// 1; between agents it rises by `between` with the place.
Moments contextual(double between) {
  Moments m(40, 2);
  std::vector<double> x(2, 1.0);
  for (std::size_t i = 0; i < m.n; ++i) {
    const auto agent = static_cast<std::int64_t>(i);
    const double place = normal({.seed = 3}, agent, Purpose::kObjective, 0);
    for (std::uint32_t r = 0; r < 8; ++r) {
      const auto draw = [&](std::uint32_t j) {
        return normal({.seed = 3, .replicate = 0, .step = r}, agent, Purpose::kSample, j);
      };
      const double within = draw(0);
      x[1] = place + within;
      m.add(i, x, within + between * place + 0.3 * draw(1));
    }
  }
  return m;
}

double weight_of(const Moments& m) {
  const auto team = serial_team();
  const DecompositionOptions options;
  const Learnt learnt = learn_agents(m, options, *team);
  std::vector<std::size_t> group(m.n);
  for (std::size_t i = 0; i < m.n; ++i) group[i] = i % kUnseenGroups;
  return pooled_weight(group, m, learnt, fit_ridge(pooled(m, *team), 0), options.centre_precision,
                       *team);
}

// The centre has the slope within agents, 1, and errs by a new agent's place. The pooled slope of
// 1/2 halves that error.
TEST(Unseen, ThePooledModelPredictsNewPlaces) { EXPECT_GT(weight_of(contextual(0)), 0.7); }

// Where both slopes are 1 the two models agree but for noise, and any weight does.
TEST(Unseen, WeightsAreShares) {
  const double weight = weight_of(contextual(1));
  EXPECT_GE(weight, 0);
  EXPECT_LE(weight, 1);
}

TEST(Unseen, AFewAgentsHaveTheCentre) {
  const auto team = serial_team();
  const Moments m = TableWorld{.agents = 3}.frame().moments(0, -1, *team);
  EXPECT_EQ(weight_of(m), 0);
}

}  // namespace
}  // namespace affpcl
