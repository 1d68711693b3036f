// Recorded transitions: what is read, what is refused, and values that approach the exact ones.
#include "affpcl/problem/td_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "affpcl/data/file_test.h"
#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/mdp.h"
#include "affpcl/problem/td.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class TdLogFile : public FileTest {
 protected:
  TdLog log(TdLog::Config config = {}) const {
    config.file = path;
    return TdLog(config);
  }
  void refuses(const std::string& text, const std::string& what, TdLog::Config config = {}) {
    write(text);
    refused([&] { log(config); }, what);
  }
  // The sample that every agent draws at a step, as one vector per agent.
  static std::vector<Numbers> drawn(const TdLog& problem, std::uint32_t step) {
    Layout world, sample;
    problem.declare(world, sample);
    EXPECT_EQ(world.rows(), 0);
    const int n = static_cast<int>(problem.shape().agents);
    const Buffer space(static_cast<std::size_t>(sample.rows()) * kLanes);
    const Out s{space.data(), sample.rows()};
    problem.draw({{3, 1, step}, {}}, {{0, n}, nullptr}, s);
    std::vector<Numbers> agents(static_cast<std::size_t>(n));
    for (int l = 0; l < n; ++l)
      for (int r = 0; r < s.rows; ++r) agents[static_cast<std::size_t>(l)].push_back(s.row(r)[l]);
    return agents;
  }
};

constexpr const char* kSmall =
    "agent,state,next_state,reward,done\n"
    "b,10,2,1.5,0\n"
    "a,2,2,-1,false\n"
    "b,2,,3,yes\n"
    "a,2,10,4,\n"
    "b,10,2,2.5,0\n";

TEST_F(TdLogFile, NamedStates) {
  write(kSmall);
  const TdLog p = log();
  EXPECT_EQ(p.shape().agents, 2);
  EXPECT_EQ(p.shape().d, 2);
  EXPECT_EQ(p.shape().k, 0);
  EXPECT_EQ(p.names().agents, (Names{"b", "a"}));           // as they appear
  EXPECT_EQ(p.names().unknowns, (Names{"V(2)", "V(10)"}));  // numbers by value
  EXPECT_EQ(p.rows(0), 3);
  EXPECT_EQ(p.rows(1), 2);
  EXPECT_EQ(p.facets().form, ObjectiveForm::kTabular);
  EXPECT_EQ(p.facets().table->cells(), 4);  // 10->2, 2->2, 2->end, 2->10
  EXPECT_EQ(p.ratio_cells()->cells(), 4);
  // phi, gamma phi', r, cell
  EXPECT_EQ(drawn(p, 0), (std::vector<Numbers>{{0, 1, .5, 0, 1.5, 0}, {1, 0, .5, 0, -1, 1}}));
  EXPECT_EQ(drawn(p, 1), (std::vector<Numbers>{{1, 0, 0, 0, 3, 2}, {1, 0, 0, .5, 4, 3}}));
  EXPECT_EQ(drawn(p, 2)[0], (Numbers{0, 1, .5, 0, 2.5, 0}));
  EXPECT_EQ(drawn(p, 2)[1], drawn(p, 0)[1]);  // its rows again
  EXPECT_EQ(drawn(p, 5)[0], drawn(p, 2)[0]);
  EXPECT_EQ(p.truth(), nullptr);
}

TEST_F(TdLogFile, MeansAreThoseOfTheRows) {
  write(kSmall);
  const TdLog p = log();
  ASSERT_NE(p.means(), nullptr);
  const Numbers A = mean_matrices(p, {0, 2});
  const Numbers want = {1. / 3, 0,    -1. / 3, 2. / 3,  // b: 2->end once, 10->2 twice
                        .75,    -.25, 0,       0};      // a: 2->2, 2->10
  for (std::size_t e = 0; e < A.size(); ++e) EXPECT_NEAR(A[e], want[e], 1e-15) << e;
  const Buffer space(2 * kLanes);
  const Out b{space.data(), 2};
  p.mean_objective({0, 2}, b);
  EXPECT_NEAR(b.row(0)[0], 1, 1e-15);
  EXPECT_NEAR(b.row(1)[0], 4. / 3, 1e-15);
  EXPECT_NEAR(b.row(0)[1], 1.5, 1e-15);
  EXPECT_NEAR(p.G_A(), std::sqrt(1.25), 1e-15);
}

TEST_F(TdLogFile, StatesByOtherNames) {
  write("who;from;to;gain\nx;home;work;1\nx;work;\"a, b\";2\n");
  const TdLog p = log({.agent = "who", .state = "from", .next_state = "to", .reward = "gain"});
  EXPECT_EQ(p.names().unknowns, (Names{"V(home)", "V(work)", "V(a, b)"}));
}

constexpr const char* kNumeric =
    "agent,a,b,next_a,next_b,reward,done,c1,c2\n"
    "x,1,2,3,4,5,0,1,10\n"
    "x,0,1,7,,6,1,2,20\n"
    "y,-1,0,2,2,7,0,3,30\n"
    "y,1,1,0,1,8,0,4,40\n";

TEST_F(TdLogFile, Features) {
  write(kNumeric);
  const TdLog p = log({.features = "a, b", .gamma = 0.1});
  EXPECT_EQ(p.shape().d, 2);
  EXPECT_EQ(p.shape().k, 2);
  EXPECT_EQ(p.shape().p, 5);
  EXPECT_EQ(p.facets().table, nullptr);
  EXPECT_EQ(p.facets().form, ObjectiveForm::kLearnt);
  EXPECT_EQ(p.names().unknowns, (Names{"a", "b"}));
  // phi, gamma phi', c = phi, r, no cell; at an end nothing follows, whatever the columns say
  const std::vector<Numbers> first = drawn(p, 0), second = drawn(p, 1);
  EXPECT_EQ(first[0], (Numbers{1, 2, .1 * 3, .1 * 4, 1, 2, 5, 0}));
  EXPECT_EQ(second[0], (Numbers{0, 1, 0, 0, 0, 1, 6, 0}));
  const Buffer s(8 * kLanes), psi(5 * kLanes);
  for (std::size_t r = 0; r < 8; ++r) s.data()[r * kLanes] = first[0][r];
  p.psi({0, 1}, {s.data(), 8}, {psi.data(), 5});
  const Numbers want = {1, 1, 2, .1 * 3, .1 * 4};
  for (std::size_t r = 0; r < 5; ++r) EXPECT_EQ(psi.data()[r * kLanes], want[r]);
  // Means against sums by hand, agent y: phi (phi - gamma phi')'.
  const Numbers A = mean_matrices(p, {0, 2});
  EXPECT_NEAR(A[4], (-1 * (-1 - .2) + 1 * 1) / 2, 1e-15);
  EXPECT_NEAR(A[5], (-1 * (0 - .2) + 1 * (1 - .1)) / 2, 1e-15);
}

// Channels with everybody's weights: r = c' theta^i, whatever the reward column says.
TEST_F(TdLogFile, ChannelsAndWeights) {
  write(kNumeric);
  const std::string prefs = path + "_prefs";
  std::ofstream(prefs) << "agent,c2,c1\ny,1,0\nx,.5,2\nnobody,0,0\n";
  const TdLog p = log({.features = "a,b", .channels = "c1,c2", .weights = prefs});
  EXPECT_EQ(p.shape().k, 2);
  EXPECT_EQ(p.theta(0), (Numbers{2, .5}));
  EXPECT_EQ(p.facets().form, ObjectiveForm::kKnown);
  EXPECT_EQ(drawn(p, 0)[0], (Numbers{1, 2, 1.5, 2, 1, 10, 7, 0}));
  EXPECT_EQ(drawn(p, 1)[1][6], 40);
  // b^0 = phi c' mean theta, and COE's mean direction c (c' theta - r) vanishes at theta^i.
  const Buffer s(8 * kLanes), b0(2 * kLanes), g(2 * kLanes);
  for (std::size_t r = 0; r < 8; ++r) s.data()[r * kLanes] = drawn(p, 0)[0][r];
  known_objective(p, {0, 1}, {s.data(), 8}, {b0.data(), 2});
  EXPECT_EQ(b0.data()[0], 1 * (1 * 1 + 10 * .75));
  const Numbers theta = p.theta(0);
  p.mean_coe({0, 2}, {theta.data(), 2, 1}, {g.data(), 2});
  EXPECT_NEAR(g.data()[0], 0, 1e-13);
  EXPECT_GT(std::abs(g.data()[1]), 1);

  // Without weights the reward column counts, and the channels are what COE explains it with.
  const TdLog free = log({.features = "a,b", .channels = "c1,c2"});
  EXPECT_EQ(drawn(free, 0)[0], (Numbers{1, 2, 1.5, 2, 1, 10, 5, 0}));
  EXPECT_EQ(free.facets().form, ObjectiveForm::kMoments);
  EXPECT_EQ(free.facets().known, nullptr);

  std::ofstream(prefs) << "agent,c1,c2\nx,1,1\n";
  refused([&] { log({.features = "a,b", .channels = "c1,c2", .weights = prefs}); },
          "has no weights for agent 'y'");
  std::ofstream(prefs) << "agent,c1,c2\nx,1,1\ny,1,1\nx,2,2\n";
  refused([&] { log({.features = "a,b", .channels = "c1,c2", .weights = prefs}); },
          "line 4, column 'agent': 'x' has weights already");
}

TEST_F(TdLogFile, RandomOrder) {
  write(kSmall);
  const TdLog p = log({.order = TdLog::Order::kRandom});
  std::set<double> rewards[2];
  bool repeated = false;
  for (std::uint32_t step = 0; step < 60; ++step) {
    const std::vector<Numbers> s = drawn(p, step);
    EXPECT_EQ(drawn(p, step), s);  // by the stream alone
    for (std::size_t i = 0; i < 2; ++i) rewards[i].insert(s[i][4]);
    repeated |= step > 0 && s[0] == drawn(p, step - 1)[0];
  }
  EXPECT_EQ(rewards[0], (std::set<double>{1.5, 2.5, 3}));
  EXPECT_EQ(rewards[1], (std::set<double>{-1, 4}));
  EXPECT_TRUE(repeated);  // with replacement
}

TEST_F(TdLogFile, ShortAgents) {
  write("agent,state,next_state,reward\na,1,2,0\nb,1,2,0\na,2,1,0\n");
  refused([&] { log(); }, "agent 'b' has a single row");
  const TdLog p = log({.drop_short = true});
  EXPECT_EQ(p.names().agents, Names{"a"});
  refuses("agent,state,next_state,reward\na,1,2,0\n", "no agent has 2 rows", {.drop_short = true});
}

TEST_F(TdLogFile, RefusesBadInput) {
  const std::string head = "agent,state,next_state,reward\n", rows = "a,1,2,0\na,2,1,0\n";
  refuses("", "is empty");
  refuses(head, "has a header but no rows");
  refuses(head + rows + "a,1,2,lots\n", "line 4, column 'reward': 'lots' is not a number");
  refuses(head + "a,1,2,\n", "column 'reward'");
  refuses(head + rows + "a,1,,0\n", "line 4, column 'next_state'");
  refuses(head + "a,,1,0\n", "line 2, column 'state'");
  refuses(head + ",1,1,0\n", "line 2, column 'agent'");
  refuses("agent,state,next_state\na,1,2\n", "has no column 'reward'");
  refuses("agnt,state,next_state,reward\na,1,2,0\n", "has no column 'agent'; did you mean 'agnt'?");
  refuses(head + rows, "has no column 'terminal'", {.done = "terminal"});
  refuses("agent,state,next_state,reward,done\na,1,2,0,perhaps\n",
          "'perhaps' is neither 1, true, yes nor 0, false, no");
  refuses("agent,a,next_a,reward\nx,1,high,0\n", "line 2, column 'next_a': 'high' is not a number",
          {.features = "a"});
  refuses("agent,a,reward\nx,1,0\n", "has no column 'next_a'", {.features = "a"});
  const auto said = [&](const TdLog::Config& config) -> std::string {
    try {
      log(config);
    } catch (const BadInput& e) {
      return e.what();
    }
    return "accepted";
  };
  write(head + rows);
  EXPECT_EQ(said({}), "accepted");
  EXPECT_EQ(said({.gamma = 1}), "gamma = 1 is not allowed: it must be from 0 to below 1");
  EXPECT_NE(said({.features = "a,,b"}).find("without a name"), std::string::npos);
  EXPECT_NE(said({.features = "a,a"}).find("'a' twice"), std::string::npos);
  EXPECT_NE(said({.weights = "w.csv"}).find("needs problem.channels"), std::string::npos);
  EXPECT_NE(said({.state = "s", .features = "a"}).find("leave out state"), std::string::npos);
}

}  // namespace
}  // namespace affpcl
