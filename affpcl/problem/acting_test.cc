// Actions against a plain softmax; laws of chains are compared with mdp.h in sarsa_test.cc.
#include "affpcl/problem/acting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

class Acting : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }
  void TearDown() override { use_instruction_set(""); }
};

TEST_P(Acting, TheUniformChoosesByTheSoftmaxOfTheScores) {
  const int states = 3, count = 11;
  for (int rows : {1, 2, 5, 20})
    for (int actions : {1, 3, 5, 8, 9, 17})
      for (const bool shared : {false, true}) {
        const int stride = lanes_to_write(actions);
        std::vector<double> W(static_cast<std::size_t>(states * rows * stride));
        Buffer x(static_cast<std::size_t>(rows) * kLanes), state(kLanes), u(kLanes), got(kLanes);
        const In columns{x.data(), rows, shared ? 1 : kLanes};
        for (int r = 0; r < rows; ++r)
          for (int l = 0; l < kLanes; ++l)  // scores below 0, where the padding's would be
            x.data()[shared ? r : r * kLanes + l] = -1 - 0.25 * r - (shared ? 0 : 0.01 * l);
        const auto weight = [&](int o, int r, int a) -> double& {
          return W[static_cast<std::size_t>((o * rows + r) * stride + a)];
        };
        for (int o = 0; o < states; ++o)
          for (int r = 0; r < rows; ++r)
            for (int a = 0; a < actions; ++a)
              weight(o, r, a) = 300 + std::sin(1.0 + o + 2.0 * r + 3.0 * a);
        for (double at : {0.001, 0.3, 0.77, 0.999}) {
          for (int l = 0; l < count; ++l) {
            state.data()[l] = l % states;
            u.data()[l] = at + 0.0001 * l * (at < 0.5 ? 1 : -1);
          }
          choose_actions(W.data(), actions, columns, {state.data(), 1}, {u.data(), 1}, {0, count},
                         got.data());
          for (int l = 0; l < count; ++l) {
            std::vector<double> y(static_cast<std::size_t>(actions));
            for (int a = 0; a < actions; ++a)
              for (int r = 0; r < rows; ++r)
                y[static_cast<std::size_t>(a)] += weight(l % states, r, a) * columns.at(r, l);
            const double most = *std::max_element(y.begin(), y.end());
            double all = 0, below = 0;
            for (double& v : y) all += v = std::exp(v - most);
            const auto chosen = static_cast<std::size_t>(got.data()[l]);
            ASSERT_LT(chosen, y.size());
            for (std::size_t a = 0; a < chosen; ++a) below += y[a];
            EXPECT_GE(u.data()[l] * all, below - 1e-10 * all);
            EXPECT_LE(u.data()[l] * all, below + y[chosen] + 1e-10 * all);
          }
        }
      }
}

// Two states that change places with probabilities p and q: the law is (q, p) / (p + q).
TEST_P(Acting, TheLawOfAChainOfTwoStates) {
  const Buffer P(4 * kLanes), pi(2 * kLanes), q(4 * kLanes);
  Scratch scratch;
  for (int l = 0; l < 5; ++l) {
    const double go = 0.1 + 0.1 * l, back = 0.9 - 0.2 * l + 0.05;
    const double rows[] = {1 - go, go, back, 1 - back};
    for (int r = 0; r < 4; ++r) P.data()[r * kLanes + l] = rows[r];
    pi.data()[l] = pi.data()[kLanes + l] = 1;
  }
  chain_law({P.data(), 4}, {pi.data(), 2}, 2, 1, scratch, {q.data(), 4, 8});
  for (int l = 0; l < 5; ++l) {
    const double go = P.data()[kLanes + l], back = P.data()[2 * kLanes + l];
    for (int r = 0; r < 4; ++r)
      EXPECT_NEAR(q.data()[r * kLanes + l],
                  (r < 2 ? back : go) / (go + back) * P.data()[r * kLanes + l], 1e-15);
  }
  for (int l = 5; l < 8; ++l)
    for (int r = 0; r < 4; ++r) EXPECT_EQ(q.data()[r * kLanes + l], 0);
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, Acting,
                         ::testing::ValuesIn(available_instruction_sets()),
                         [](const auto& set) { return set.param; });

}  // namespace
}  // namespace affpcl
