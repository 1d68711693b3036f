#include "affpcl/mixed/law_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

bool misleads(const Frame& frame) {
  const std::unique_ptr<Team> team = serial_team();
  const Moments m = frame.moments(0, kAllRows, *team);
  DecompositionOptions diagonal;
  diagonal.scalar = diagonal.full = false;
  return law_misleads(frame, 0, m, learn_agents(m, diagonal, *team), *team);
}

int count(int worlds, const std::function<Frame(std::uint64_t)>& draw) {
  int found = 0;
  for (int seed = 1; seed <= worlds; ++seed)
    found += misleads(draw(static_cast<std::uint64_t>(seed)));
  return found;
}

// Where noise does differ, knowing it helps: no alarm in any of 20 tables.
TEST(LawCheck, IsSilentWhereNoiseDiffers) {
  EXPECT_EQ(count(20,
                  [](std::uint64_t seed) {
                    return TableWorld{.agents = 60,
                                      .rows = 5,
                                      .noise =
                                          [](std::size_t i) {
                                            return std::exp(0.5 * (static_cast<double>(i % 5) - 2));
                                          },
                                      .seed = seed}
                        .frame();
                  }),
            0);
}

// Equal noise: alarms have a rate of 5 %, so 6 in 20 tables come with a probability of 3e-4.
TEST(LawCheck, IsMostlySilentWhereNoiseIsEqual) {
  EXPECT_LT(count(20,
                  [](std::uint64_t seed) {
                    return TableWorld{.agents = 60, .rows = 5, .seed = seed}.frame();
                  }),
            6);
}

// A curve that the model lacks: agents whose few rows lie on a line by chance look quiet.
TEST(LawCheck, SeesAgentsThatOnlyLookQuiet) {
  EXPECT_EQ(count(10,
                  [](std::uint64_t seed) {
                    Frame f = TableWorld{.agents = 200,
                                         .rows = 3,
                                         .columns = 1,
                                         .noise = [](std::size_t) { return 0.3; },
                                         .seed = seed}
                                  .frame();
                    for (std::size_t r = 0; r < f.rows; ++r)
                      f.Y[r] += 2 * f.X[f.rows + r] * f.X[f.rows + r];
                    return f;
                  }),
            10);
}

}  // namespace
}  // namespace affpcl
