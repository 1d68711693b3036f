#include "affpcl/problem/catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

TEST(ProblemCatalogue, DescribesEveryParameterOnce) {
  for (const ProblemKind& kind : problem_kinds()) {
    EXPECT_FALSE(kind.doc.empty());
    std::set<std::string_view> names;
    for (const Param& p : kind.params) {
      EXPECT_TRUE(names.insert(p.name).second) << kind.name << " has " << p.name << " twice";
      EXPECT_FALSE(p.doc.empty()) << kind.name << '.' << p.name;
      EXPECT_EQ(p.doc.find('\n'), std::string_view::npos);
      // The default itself must be allowed.
      EXPECT_NO_THROW(Values(kind.params, {{std::string(p.name), p.fallback}}, "problem"));
    }
  }
}

TEST(ProblemCatalogue, MakesEveryKindByItsDefaults) {
  for (const ProblemKind& kind : problem_kinds()) {
    const Values v(kind.params, {}, "problem");
    if (kind.name == "rows") {  // has no default: whose rows?
      EXPECT_THROW(kind.make(v, 1, 0), BadInput);
      continue;
    }
    const std::unique_ptr<Problem> problem = kind.make(v, 1, 0);
    ASSERT_NE(problem, nullptr) << kind.name;
    EXPECT_GT(problem->shape().agents, 0);
    EXPECT_GT(problem->shape().d, 0);
    EXPECT_EQ(&problem_kind(kind.name), &kind);
  }
}

TEST(ProblemCatalogue, TheLaterOfTwoWithOneNameCounts) {
  const ProblemKind gaussian = problem_kind("gaussian");
  for (const char* doc : {"first", "second"}) {
    const std::size_t before = problem_kinds().size();
    add_problem_kind({"one_name", doc, gaussian.params, gaussian.make});
    EXPECT_EQ(problem_kind("one_name").doc, doc);
    EXPECT_EQ(problem_kinds().size(), before + (std::string_view(doc) == "first" ? 1 : 0));
  }
}

TEST(ProblemCatalogue, ValuesReachTheProblem) {
  const ProblemKind& gaussian = problem_kind("gaussian");
  const auto shape = [](const ProblemKind& kind, const std::map<std::string, Value>& given) {
    return kind.make(Values(kind.params, given, "problem"), 1, 0)->shape();
  };
  EXPECT_EQ(shape(gaussian, {{"agents", std::int64_t{33}}, {"dim", std::int64_t{2}}}).agents, 33);
  EXPECT_EQ(shape(gaussian, {{"agents", std::int64_t{33}}, {"dim", std::int64_t{2}}}).d, 2);
  const ProblemKind& tabular = problem_kind("tabular");
  EXPECT_EQ(tabular.make(Values(tabular.params, {{"states", std::int64_t{13}}}, "problem"), 1, 0)
                ->facets()
                .table->cells(),
            13);
}

TEST(ProblemCatalogue, UnknownKindsComeWithASuggestion) {
  try {
    problem_kind("gausian");
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_STREQ(e.what(), "problem.kind = \"gausian\" is not known; did you mean 'gaussian'?");
  }
  EXPECT_THROW(problem_kind(""), BadInput);
}

TEST(ProblemCatalogue, ContradictionsAreRefused) {
  const ProblemKind& tabular = problem_kind("tabular");
  const auto make = [&](const std::map<std::string, Value>& given) {
    return tabular.make(Values(tabular.params, given, "problem"), 1, 0);
  };
  EXPECT_NO_THROW(make({{"family", "two_point"}, {"system", "law"}}));
  EXPECT_THROW(make({{"family", "free_ride"}, {"system", "law"}}), BadInput);
  EXPECT_THROW(make({{"family", "two_point"}, {"states", std::int64_t{5}}}), BadInput);
  EXPECT_THROW(make({{"family", "two_point"}, {"delta_env", 0.6}}), BadInput);
  EXPECT_THROW(make({{"family", "two_point"}, {"sparsity", 0.5}}), BadInput);
  EXPECT_THROW(make({{"system", "law"}, {"dim", std::int64_t{2}}}), BadInput);
  EXPECT_THROW(make({{"system", "law"}, {"noise_A", 0.1}}), BadInput);
}

TEST(ProblemCatalogue, AMissingFileIsRefused) {
  const ProblemKind& tabular = problem_kind("tabular");
  const Values v(tabular.params, {{"file", std::string("/nowhere.json")}}, "problem");
  EXPECT_THROW(tabular.make(v, 1, 0), BadInput);
}

}  // namespace
}  // namespace affpcl
