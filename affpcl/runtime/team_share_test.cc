#include "affpcl/runtime/team_share.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/base/error.h"
#include "tests/conformance.h"
#include "tests/ranks.h"

namespace affpcl {
namespace {

using conformance::same_bits;

constexpr std::int64_t kAgents = 4 * kLeaf - 30;  // four leaves, the last block ragged
constexpr std::pair<int, int> kTeams[] = {{1, 1}, {1, 3}, {2, 1}, {3, 2}, {8, 1}, {16, 1}};

// What a problem says of a block: a sample, its objective, and how far a point is from the
// solutions.
std::vector<double> seen(const Problem& problem, std::int64_t block) {
  const Shape shape = problem.shape();
  const Lanes lanes = lanes_of(block, shape.agents);
  conformance::World world(problem, lanes);
  world.draw(problem, 0);
  const conformance::Rows b(shape.d), error(1);
  problem.objective(lanes, world.s->in(), b.out());
  const std::vector<double> x(static_cast<std::size_t>(shape.d), 0.3);
  Scratch scratch;
  problem.error(lanes, {x.data(), shape.d, 1}, scratch, error.out());
  std::vector<double> all;
  for (const conformance::Rows* rows :
       {static_cast<const conformance::Rows*>(world.s.get()), &b, &error})
    for (int r = 0; r < rows->rows; ++r)
      for (int l = 0; l < lanes.count; ++l) all.push_back((*rows)(r, l));
  return all;
}

// body(share) on every rank of every team; says which team failed it.
template <class Body>
void on_every_team(Body body) {
  for (const auto& [ranks, threads] : kTeams) {
    std::atomic<int> failed = 0;
    Ranks::run(ranks, [&, threads = threads](Processes& processes) {
      const std::unique_ptr<Team> team = thread_team(threads, processes);
      if (!body(TeamShare(*team))) ++failed;
    });
    EXPECT_EQ(failed, 0) << ranks << " ranks, " << threads << " threads";
  }
}

TEST(TeamShare, SumsHaveTheBitsOfOneProcess) {
  const auto add = [](std::int64_t block, double* numbers) {
    for (int l = 0; l < lanes_of(block, kAgents).count; ++l) {
      const auto agent = static_cast<double>(block * kLanes + l);
      numbers[0] += std::sin(agent) * std::exp(10 * std::cos(agent));
      numbers[1] += 1;
    }
  };
  const std::vector<double> alone = all_agents().sum(kAgents, 2, add);
  EXPECT_EQ(alone[1], static_cast<double>(kAgents));
  on_every_team([&](const TeamShare& share) { return share.sum(kAgents, 2, add) == alone; });
}

TEST(TeamShare, FindsTheLargest) {
  on_every_team([](const TeamShare& share) {
    const Leaves own = share.own(100);
    return share.largest(-static_cast<double>(own.first)) == 0 &&
           share.largest(static_cast<double>(own.last)) == 100;
  });
}

// Whichever rank or thread comes first, and no rank waits for one that has left.
TEST(TeamShare, AllRanksThrowWhatTheFirstBlockRefuses) {
  on_every_team([](const TeamShare& share) {
    try {
      share.sum(kAgents, 1, [](std::int64_t block, double*) {
        if (block % 4 == 3) throw BadInput("block " + std::to_string(block));
      });
    } catch (const BadInput& e) {
      return std::string(e.what()) == "block 3";
    }
    return false;
  });
}

// Of its own agents and of those that it makes when it is asked for them.
TEST(TeamShare, AProblemMadeByShareIsTheWholeProblem) {
  for (const ProblemKind& kind : problem_kinds()) {
    if (!kind.make_share) continue;
    for (const std::int64_t environments : {0, 7}) {
      SCOPED_TRACE(kind.name);
      std::map<std::string, Value> given = {{"agents", kAgents}};
      if (environments > 0) {
        if (kind.name == "network") continue;  // an environment for each agent
        given["environments"] = environments;
      }
      const Values values(kind.params, given, kind.name);
      const std::unique_ptr<Problem> whole = kind.make(values, 7, 0);
      on_every_team([&](const TeamShare& share) {
        const std::unique_ptr<Problem> part = kind.make_share(values, 7, 0, share);
        bool same = same_bits(part->truth()->xc, whole->truth()->xc) &&
                    part->truth()->thetac == whole->truth()->thetac;
        if (const Means* means = part->means())
          same = same && means->G_A() == whole->means()->G_A();
        const Leaves own = share.own(leaves_of(kAgents));
        for (std::int64_t b = 0; b < blocks_of(kAgents); b += 5)
          same = same && same_bits(seen(*part, b), seen(*whole, b));
        if (own.count() > 0) {
          const std::int64_t first = own.first * (kLeaf / kLanes);
          part->keep(first, first + 1);
          same = same && same_bits(seen(*part, first), seen(*whole, first));
        }
        return same;
      });
    }
  }
}

TEST(TeamShare, KnownObjectivesAndExactRatiosAreThoseOfAllAgents) {
  const ProblemKind& kind = problem_kind("gaussian");
  const Values values(kind.params, {{"agents", kAgents}, {"dim", std::int64_t{3}}}, kind.name);
  const std::unique_ptr<Problem> whole = kind.make(values, 7, 0);
  const Lanes lanes{5 * kLanes, kLanes};
  const auto seen_of = [&](const Problem& problem) {
    conformance::World world(problem, lanes);
    world.draw(problem, 0);
    Scratch scratch;
    const conformance::Rows rho(1), b0(3);
    problem.densities()->own(lanes, world.s->in(), scratch, rho.out());
    problem.facets().known->known(lanes, world.s->in(), scratch, b0.out());
    std::vector<double> all = {problem.densities()->tv(3, 900)};
    for (int l = 0; l < lanes.count; ++l) {
      all.push_back(rho(0, l));
      for (int r = 0; r < 3; ++r) all.push_back(b0(r, l));
    }
    return all;
  };
  const std::vector<double> want = seen_of(*whole);
  on_every_team([&](const TeamShare& share) {
    return same_bits(seen_of(*kind.make_share(values, 7, 0, share)), want);
  });
}

}  // namespace
}  // namespace affpcl
