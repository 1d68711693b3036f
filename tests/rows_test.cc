#include "affpcl/problem/rows.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "affpcl/base/error.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

// Three agents of 1, 3 and 2 rows; two features, two channels that the agents weigh.
Rows::Data small(bool weighs = true) {
  Rows::Data data;
  data.d = 2;
  data.first = {0, 1, 4, 6};
  data.phi = std::make_shared<std::vector<double>>(
      std::vector<double>{1, 2, 0, 1, 2, -1, 1, 1, -1, 3, 0.5, 0});
  data.y = {1, 2, 3, 4, 5, 6};
  if (!weighs) return data;
  data.k = 2;
  data.c = {1, 0, 0, 1, 1, 1, 2, 0, 1, -1, 0, 3};
  data.theta = {1, 0, 0, 1, 2, 2};
  for (std::size_t r = 0; r < 6; ++r) {
    const std::size_t agent = r < 1 ? 0 : r < 4 ? 1 : 2;
    data.y[r] =
        data.c[2 * r] * data.theta[2 * agent] + data.c[2 * r + 1] * data.theta[2 * agent + 1];
  }
  return data;
}

StepSizes constant(double alpha) {
  StepSizes step;
  for (StepSizes::Module* m : {&step.agent, &step.central, &step.objective, &step.ratio})
    m->schedule.value = alpha;
  return step;
}

// The agents' x after one pass by a method.
std::vector<std::array<double, 2>> learnt(const Rows& rows, const std::string& method,
                                          const std::map<std::string, Value>& given = {}) {
  const std::unique_ptr<Team> team = serial_team();
  const MethodKind& kind = method_kind(method);
  std::vector<RunMethod> methods;
  methods.push_back({method, kind.make(Values(kind.params, given, method)), 1, 1, constant(0.1)});
  RunOptions options;
  options.steps = 3;
  Run run(rows, std::move(methods), options, *team);
  run.advance(3);
  std::vector<std::array<double, 2>> x;
  for (std::int64_t i = 0; i < 3; ++i) x.push_back({run.solution(0, i, 0), run.solution(0, i, 1)});
  return x;
}

TEST(Rows, MeansAreThoseOfAnAgentsRows) {
  const Rows rows(small(), Rows::Order::kRandom, Rows::Form::kChannels);
  const std::vector<double> A = mean_matrices(rows, {0, 3});
  EXPECT_DOUBLE_EQ(A[4 + 0], (0 + 4 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(A[4 + 1], (0 - 2 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(A[4 + 3], (1 + 1 + 1) / 3.0);
  Buffer space(2 * kLanes);
  const Out b{space.data(), 2};
  rows.mean_objective({0, 3}, b);
  EXPECT_DOUBLE_EQ(b.row(0)[1], (0 * 1 + 2 * 1 + 1 * 0) / 3.0);
  const std::vector<double> theta = rows.theta(1);
  rows.mean_Phi({0, 3}, {theta.data(), 2, 1}, b);
  EXPECT_DOUBLE_EQ(b.row(0)[1], (0 * 1 + 2 * 1 + 1 * 0) / 3.0);
}

TEST(Rows, AgentsLeaveWhenTheirRowsEnd) {
  const Rows rows(small(), Rows::Order::kOnce, Rows::Form::kChannels);
  EXPECT_EQ(rows.most_samples(), 3);
  EXPECT_EQ(rows.count_present(0), 3);
  EXPECT_EQ(rows.count_present(1), 2);
  EXPECT_EQ(rows.count_present(2), 1);
  EXPECT_TRUE(rows.present(2, 1));
  EXPECT_FALSE(rows.present(0, 1));
}

// x -= .1 phi (phi'x - y), over an agent's own rows.
TEST(Rows, AloneEveryAgentTakesItsOwnRowsOnce) {
  const Rows::Data data = small();
  const Rows rows(data, Rows::Order::kOnce, Rows::Form::kChannels);
  const auto x = learnt(rows, "independent");
  for (std::size_t i = 0; i < 3; ++i) {
    std::array<double, 2> v = {0, 0};
    for (auto r = static_cast<std::size_t>(data.first[i]);
         r < static_cast<std::size_t>(data.first[i + 1]); ++r) {
      const double *phi = data.phi->data() + 2 * r, e = phi[0] * v[0] + phi[1] * v[1] - data.y[r];
      v[0] -= 0.1 * phi[0] * e;
      v[1] -= 0.1 * phi[1] * e;
    }
    EXPECT_NEAR(x[i][0], v[0], 1e-15);
    EXPECT_NEAR(x[i][1], v[1], 1e-15);
  }
}

// pFedMe sends models, not steps: those of agents whose rows have ended must not count.
TEST(Rows, ModelsOfAbsentAgentsAreNotInTheMean) {
  const Rows::Data data = small();
  const Rows rows(data, Rows::Order::kOnce, Rows::Form::kChannels);
  std::array<std::array<double, 2>, 3> own = {};
  for (std::int64_t t = 0; t < 3; ++t) {
    std::array<double, 2> mean = {0, 0};
    double present = 0;
    const auto row = [&](std::size_t i) { return data.first[i] + t; };
    for (std::size_t i = 0; i < 3; ++i)
      if (row(i) < data.first[i + 1]) ++present, mean[0] += own[i][0], mean[1] += own[i][1];
    for (std::size_t i = 0; i < 3; ++i) {
      if (row(i) >= data.first[i + 1]) continue;
      const double* phi = data.phi->data() + 2 * row(i);
      const double e =
          phi[0] * own[i][0] + phi[1] * own[i][1] - data.y[static_cast<std::size_t>(row(i))];
      for (std::size_t k = 0; k < 2; ++k)
        own[i][k] -= 0.1 * (phi[k] * e + 2 * (own[i][k] - mean[k] / present));
    }
  }
  const auto x = learnt(rows, "pfedme", {{"lambda", 2.0}});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(x[i][k], own[i][k], 1e-15) << i;
}

// The common model takes the mean over those who have a row; `residual` moves with it, also where
// its own rows have ended.
TEST(Rows, MeansAreOverThosePresent) {
  const Rows::Data data = small();
  const Rows rows(data, Rows::Order::kOnce, Rows::Form::kChannels);
  std::array<double, 2> w = {0, 0};
  std::array<std::array<double, 2>, 3> own = {};
  for (std::int64_t t = 0; t < 3; ++t) {
    std::array<double, 2> moved = {0, 0};
    double present = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t r = data.first[i] + t;
      if (r >= data.first[i + 1]) continue;
      ++present;
      const double* phi = data.phi->data() + 2 * r;
      const double e = phi[0] * w[0] + phi[1] * w[1] - data.y[static_cast<std::size_t>(r)];
      moved[0] -= 0.1 * phi[0] * e;
      moved[1] -= 0.1 * phi[1] * e;
    }
    for (std::size_t k = 0; k < 2; ++k) w[k] += moved[k] / present;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 2; ++k) own[i][k] += moved[k] / present;
      const std::int64_t r = data.first[i] + t;
      if (r >= data.first[i + 1]) continue;
      const double* phi = data.phi->data() + 2 * r;
      const double e =
          phi[0] * own[i][0] + phi[1] * own[i][1] - data.y[static_cast<std::size_t>(r)];
      for (std::size_t k = 0; k < 2; ++k) own[i][k] -= 0.1 * phi[k] * e;
    }
  }
  const auto common = learnt(rows, "fedavg"), residual = learnt(rows, "residual");
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_NEAR(common[0][k], w[k], 1e-15);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(residual[i][k], own[i][k], 1e-15) << i;
  }
}

// AffPCL: while one agent is present its correction is 0, and it learns alone from there.
TEST(Rows, TheLastOneLearnsAlone) {
  Rows::Data data = small();
  data.first = {0, 1, 6};  // two agents, of 1 and 5 rows
  data.theta.resize(4);
  for (std::size_t r = 1; r < 6; ++r) data.y[r] = data.c[2 * r + 1];
  const Rows rows(data, Rows::Order::kOnce, Rows::Form::kChannels);
  const std::unique_ptr<Team> team = serial_team();
  const MethodKind& kind = method_kind("affpcl");
  std::vector<RunMethod> methods;
  methods.push_back(
      {"affpcl", kind.make(Values(kind.params, {{"ratio", "none"}, {"objective", "known"}}, "")), 1,
       1, constant(0.1)});
  RunOptions options;
  options.steps = 5;
  affpcl::Run run(rows, std::move(methods), options, *team);
  run.advance(1);
  const double left = run.solution(0, 0, 0);
  std::array<double, 2> x = {run.solution(0, 1, 0), run.solution(0, 1, 1)};
  run.advance(5);
  EXPECT_EQ(run.solution(0, 0, 0), left);
  for (std::size_t r = 2; r < 6; ++r) {
    const double* phi = data.phi->data() + 2 * r;
    const double e = phi[0] * x[0] + phi[1] * x[1] - data.y[r];
    for (std::size_t k = 0; k < 2; ++k) x[k] -= 0.1 * phi[k] * e;
  }
  EXPECT_NEAR(run.solution(0, 1, 0), x[0], 1e-14);
  EXPECT_NEAR(run.solution(0, 1, 1), x[1], 1e-14);
}

// Phi = A makes x^c and theta^c the same recursion: AffPCL is learning alone.
TEST(Rows, WithoutChannelsAffPclIsLearningAlone) {
  const Rows rows(small(false), Rows::Order::kOnce, Rows::Form::kFeatures);
  const auto alone = learnt(rows, "independent"), x = learnt(rows, "affpcl", {{"ratio", "none"}});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(x[i][k], alone[i][k], 1e-14);
}

// Agents that state their weights need no COE: auto is known, to the bit. Without weights it is the
// regression of all outcomes on all channels.
TEST(Rows, TheCentralObjectiveOfChannels) {
  const Rows stated(small(), Rows::Order::kRandom, Rows::Form::kChannels);
  EXPECT_EQ(stated.facets().form, ObjectiveForm::kKnown);
  EXPECT_EQ(learnt(stated, "affpcl", {{"ratio", "none"}}),
            learnt(stated, "affpcl", {{"ratio", "none"}, {"objective", "known"}}));
  Rows::Data data = small();
  data.theta.clear();
  const Rows unstated(data, Rows::Order::kRandom, Rows::Form::kChannels);
  EXPECT_EQ(unstated.facets().form, ObjectiveForm::kMoments);
  EXPECT_EQ(learnt(unstated, "affpcl", {{"ratio", "none"}}),
            learnt(unstated, "affpcl", {{"ratio", "none"}, {"objective", "moments"}}));
}

// theta^c = (sum cc')^-1 sum c r over the rows drawn so far; of least norm while they leave it
// open.
TEST(Rows, MomentsSolveTheWeights) {
  Rows::Data data = small();
  data.first = {0, 3, 6};  // two agents of 3 rows, so that all are present
  data.theta.clear();
  const Rows rows(data, Rows::Order::kOnce, Rows::Form::kChannels);
  const std::unique_ptr<Team> team = serial_team();
  const MethodKind& kind = method_kind("affpcl");
  std::vector<RunMethod> methods;
  methods.push_back(
      {"m", kind.make(Values(kind.params, {{"ratio", "none"}}, "")), 1, 1, constant(0.1)});
  RunOptions options;
  options.steps = 3;
  affpcl::Run run(rows, std::move(methods), options, *team);
  double M[3] = {0, 0, 0}, v[2] = {0, 0};
  for (std::size_t t = 0; t < 3; ++t) {
    run.advance(static_cast<std::int64_t>(t) + 1);
    for (const std::size_t r : {t, t + 3}) {
      const double *c = data.c.data() + 2 * r, y = data.y[r];
      M[0] += c[0] * c[0], M[1] += c[0] * c[1], M[2] += c[1] * c[1];
      v[0] += c[0] * y, v[1] += c[1] * y;
    }
    const double det = M[0] * M[2] - M[1] * M[1];
    const In theta = run.central_theta(0);
    if (t == 0) {  // both agents' first rows have channels (1, 0) and (2, 0): the other weight is 0
      ASSERT_EQ(det, 0);
      EXPECT_NEAR(theta.p[0], v[0] / M[0], 1e-14);
      EXPECT_NEAR(theta.p[1], 0, 1e-14);
    } else {
      EXPECT_NEAR(theta.p[0], (M[2] * v[0] - M[1] * v[1]) / det, 1e-13);
      EXPECT_NEAR(theta.p[1], (M[0] * v[1] - M[1] * v[0]) / det, 1e-13);
    }
  }
}

// Replicate r is scored on fold r % folds and uses the rows of repeat r / folds; scale multiplies
// the features.
TEST(Rows, RepeatsAndScaleFromAFile) {
  const std::string path =
      ::testing::TempDir() + "affpcl_rows_" + std::to_string(getpid()) + ".csv";
  std::ofstream out(path);
  out << "agent,x,y,fold,repeat\n";
  for (int repeat = 0; repeat < 2; ++repeat)
    for (int fold = 0; fold < 2; ++fold)
      for (const char* agent : {"a", "b"})
        out << agent << ',' << 1 + 10 * repeat + fold << ",1," << fold << ',' << repeat << '\n';
  out.close();
  const ProblemKind& kind = problem_kind("rows");
  const Values values(
      kind.params,
      {{"file", path}, {"target", "y"}, {"fold", "fold"}, {"repeat", "repeat"}, {"scale", 2.0}},
      "problem");
  for (std::uint32_t replicate = 0; replicate < 5; ++replicate) {
    const std::unique_ptr<Problem> problem = kind.make(values, 1, replicate);
    const auto& rows = dynamic_cast<const Rows&>(*problem);
    const std::uint32_t fold = replicate % 2, repeat = replicate / 2 % 2;
    ASSERT_EQ(rows.rows(0), 1);
    EXPECT_EQ(*rows.phi(0, 0), 2.0 * (1 + 10 * repeat + (1 - fold))) << replicate;
    Buffer one_row(kLanes);
    const double zero = 0;
    error(rows, {0, 2}, {&zero, 1, 1}, {one_row.data(), 1});
    EXPECT_EQ(one_row.data()[0], 1);
  }
  std::remove(path.c_str());
}

TEST(Rows, AnAbsentAgentAddsNothingToALearntRatio) {
  const Rows rows(small(), Rows::Order::kOnce, Rows::Form::kIdentity);
  Buffer sample(7 * kLanes), features(3 * kLanes), bhat(2 * kLanes);
  Layout world, layout;
  rows.declare(world, layout);
  ASSERT_EQ(layout.rows(), 8);
  Buffer s(8 * kLanes);
  rows.draw({{1, 0, 1}, {}}, {{0, 3}, nullptr}, {s.data(), 8});
  rows.psi({0, 3}, {s.data(), 8}, {features.data(), 3});
  const std::vector<double> theta = {5, 7};
  apply_Phi(rows, {0, 3}, {s.data(), 8}, {theta.data(), 2, 1}, {bhat.data(), 2});
  for (int r = 0; r < 3; ++r) EXPECT_EQ(features.data()[r * kLanes], 0);
  EXPECT_EQ(features.data()[1], 1);
  EXPECT_EQ(bhat.data()[0], 0);
  EXPECT_EQ(bhat.data()[1], 5);
}

TEST(Rows, RefusesRoundsOfSeveralRowsWhereTheyEndAtDifferentTimes) {
  const Rows rows(small(), Rows::Order::kOnce, Rows::Form::kChannels);
  const std::unique_ptr<Team> team = serial_team();
  std::vector<RunMethod> methods;
  methods.push_back({"m", method_kind("independent").make({}), 2, 1, constant(0.1)});
  RunOptions options;
  options.steps = 3;
  EXPECT_THROW(affpcl::Run(rows, std::move(methods), options, *team), BadInput);
}

}  // namespace
}  // namespace affpcl
