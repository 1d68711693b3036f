// Every method of the catalogue on every problem of the catalogue.
#include "tests/conformance.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace affpcl {
namespace {

using Names = std::pair<std::string, std::string>;

std::vector<Names> all_pairs() {
  std::vector<Names> pairs;
  for (const MethodKind& m : method_kinds())
    for (const ProblemKind& p : problem_kinds()) pairs.emplace_back(m.name, p.name);
  return pairs;
}

class Conformance : public ::testing::TestWithParam<Names> {};

TEST_P(Conformance, Method) {
  // Densities of recorded rows are not known.
  const bool unknown = GetParam() == Names("affpcl", "rows");
  conformance::check_method(
      method_kind(GetParam().first), problem_kind(GetParam().second), 600,
      unknown ? conformance::Given{{"ratio", std::string("none")}} : conformance::Given{});
}

// The same for every choice a method offers, one at a time. Softmax and Poisson regression are the
// class of logistic regression.
TEST_P(Conformance, Options) {
  if (GetParam().second == "softmax" || GetParam().second == "poisson") return;
  const MethodKind& method = method_kind(GetParam().first);
  const ProblemKind& problem = problem_kind(GetParam().second);
  for (const Param& p : method.params) {
    std::vector<Value> values;
    for (std::string_view choice : p.choices) values.emplace_back(std::string(choice));
    if (const bool* flag = std::get_if<bool>(&p.fallback)) values.emplace_back(!*flag);
    for (const Value& v : values) {
      if (v == p.fallback) continue;
      SCOPED_TRACE(::testing::Message() << p.name << " = " << to_text(v));
      conformance::check_method(method, problem, 300, {{std::string(p.name), v}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Conformance, ::testing::ValuesIn(all_pairs()),
                         [](const auto& names) {
                           return names.param.first + "_on_" + names.param.second;
                         });

TEST(ConformanceOf, Problems) {
  for (const ProblemKind& kind : problem_kinds())
    for (std::int64_t agents : {1, 2, 150}) conformance::check_problem(kind, agents);
  const ProblemKind& gaussian = problem_kind("gaussian");
  conformance::check_problem(gaussian, 150, {{"delta_env", 0.0}, {"delta_obj", 0.0}});
  conformance::check_problem(gaussian, 150, {{"environments", std::int64_t{3}}});
  conformance::check_problem(gaussian, 70, {{"delta_env", 3.0}, {"dim", std::int64_t{20}}});
  const ProblemKind& td = problem_kind("td");
  conformance::check_problem(td, 70, {{"delta_env", 1.0}, {"concentration", 0.1}});
  conformance::check_problem(td, 70, {{"rewards", std::string("table")}, {"gamma", 0.9}});
  conformance::check_problem(
      td, 70, {{"sampling", std::string("markov")}, {"kernels", std::string("relative")}});
  const ProblemKind& least_squares = problem_kind("least_squares");
  for (const char* Phi : {"identity", "features"})
    conformance::check_problem(least_squares, 150, {{"Phi", std::string(Phi)}});
  conformance::check_problem(least_squares, 70, {{"delta_env", 2.0}, {"label_noise", 1.0}});
  conformance::check_problem(least_squares, 70,
                             {{"channels", std::int64_t{9}}, {"environments", std::int64_t{3}}});
  const ProblemKind& estimation = problem_kind("estimation");
  conformance::check_problem(estimation, 150, {{"functionals", std::string("moments")}});
  conformance::check_problem(estimation, 70, {{"noise", 1.0}, {"environments", std::int64_t{3}}});
  const ProblemKind& tabular = problem_kind("tabular");
  conformance::check_problem(tabular, 150, {{"coe", std::string("gradient")}});
  conformance::check_problem(tabular, 20, {{"delta_env", 1.0}, {"sparsity", 0.3}});
  conformance::check_problem(tabular, 21, {{"family", "exchange"}, {"system", "law"}});
  conformance::check_problem(tabular, 20, {{"family", "two_point"}});
}

// Choices that need each other.
TEST(ConformanceOf, OptionsThatGoTogether) {
  const MethodKind& affpcl = method_kind("affpcl");
  const auto text = [](const char* value) { return Value(std::string(value)); };
  const conformance::Given own = {{"ratio", text("none")}, {"aggregate", text("own")}};
  conformance::Given printed = own;  // eq:het-pcl-alg
  printed["objective"] = text("known"), printed["central"] = text("average");
  for (const conformance::Given& given : {own, printed})
    conformance::check_method(affpcl, problem_kind("gaussian"), 300, given);
  for (const char* shrink : {"none", "james-stein"})
    conformance::check_method(affpcl, problem_kind("sarsa"), 300,
                              {{"ratio", text("policy")}, {"shrink", text(shrink)}});
}

TEST(ConformanceOf, MethodsDescribeEveryParameterOnce) {
  for (const MethodKind& kind : method_kinds()) {
    EXPECT_FALSE(kind.doc.empty()) << kind.name;
    EXPECT_EQ(&method_kind(kind.name), &kind);
    for (const Param& p : kind.params) {
      EXPECT_FALSE(p.doc.empty()) << kind.name << '.' << p.name;
      EXPECT_NO_THROW(Values(kind.params, {{std::string(p.name), p.fallback}}, "method"));
    }
  }
}

// The checks themselves must be able to fail: a method that counts its rounds in a hidden place,
// or looks at who comes first, is caught.
class Stateful final : public Method {
 public:
  explicit Stateful(bool by_order) : by_order_(by_order) {}
  void declare(const Setup& setup, Layout& agent, Layout&, SumLayout&) override {
    x_ = agent.add("x", setup.problem.shape().d);
  }
  void update(const Block& block, Mean) const override {
    const Out x = block.agents[x_], g = block.scratch().rows(x.rows);
    for (int k = 0; k < block.batch.steps; ++k) {
      direction(block, k, x, g);
      const double first = by_order_ ? static_cast<double>(block.lanes().first) : 0;
      const double rounds = by_order_ ? 0 : ++rounds_;
      add_scaled(x, -1e-4 * (1 + 0.01 * (first + rounds)), g);
    }
  }
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  Field x_;
  bool by_order_;
  mutable int rounds_ = 0;
};

int failures_of(const std::function<void()>& check) {
  ::testing::TestPartResultArray results;
  const ::testing::ScopedFakeTestPartResultReporter reporter(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
  check();
  return results.size();
}

TEST(ConformanceOf, TheChecksThemselves) {
  const MethodKind hidden = {"hidden", "counts in secret", {}, [](const Values&) {
                               return std::make_unique<Stateful>(false);
                             }};
  const MethodKind order = {"order", "looks at the order", {}, [](const Values&) {
                              return std::make_unique<Stateful>(true);
                            }};
  const std::unique_ptr<Problem> problem = conformance::make_problem(problem_kind("tabular"), 150);
  const conformance::Trial bad(hidden, *problem, {}), good(order, *problem, {});
  EXPECT_EQ(failures_of([&] { conformance::survives_saving(bad); }), 3);
  EXPECT_EQ(failures_of([&] { conformance::keeps_nothing_to_itself(bad); }), 3);
  EXPECT_EQ(failures_of([&] { conformance::survives_saving(good); }), 0);
  EXPECT_EQ(failures_of([&] { conformance::keeps_nothing_to_itself(good); }), 0);
  EXPECT_EQ(failures_of([&] { conformance::does_not_mind_the_order(order, {}); }), 1);
}

}  // namespace
}  // namespace affpcl
