#include "affpcl/problem/catalogue.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"
#include "affpcl/problem/estimation.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/glm.h"
#include "affpcl/problem/least_squares.h"
#include "affpcl/problem/network.h"
#include "affpcl/problem/rows.h"
#include "affpcl/problem/sarsa.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/problem/td.h"

namespace affpcl {
namespace {

std::vector<ProblemKind>& registry() {
  static std::vector<ProblemKind> kKinds = {
      Gaussian::kind(), Estimation::kind(), LeastSquares::kind(), Logistic::kind(),
      softmax_kind(),   poisson_kind(),     Network::kind(),      Tabular::kind(),
      Td::kind(),       Sarsa::kind(),      Rows::kind(),
  };
  return kKinds;
}

}  // namespace

const std::vector<ProblemKind>& problem_kinds() { return registry(); }

const ProblemKind& problem_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ProblemKind& kind : registry()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw BadInput(fmt::format("problem.kind = \"{}\" is not known{}", name, hint(name, names)));
}

void add_problem_kind(ProblemKind kind) {
  for (ProblemKind& known : registry())
    if (known.name == kind.name) {
      known = std::move(kind);
      return;
    }
  registry().push_back(std::move(kind));
}

}  // namespace affpcl
