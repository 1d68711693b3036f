// Fixed work whose instructions instruction_counts.py counts: rounds of AffPCL, exact and learnt.
//
//   usage: instruction_counts SET CASE      SET: portable, AVX2, …; CASE: small (20 agents), exact
//   (300), single (300, f32), linear (300)
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "affpcl/math/kernels.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/run.h"

int main(int argc, char** argv) {
  using namespace affpcl;
  if (argc != 3) return std::fprintf(stderr, "usage: instruction_counts SET CASE\n"), 2;
  const std::string set = argv[1], what = argv[2];
  const std::string wanted = set == "portable" ? available_instruction_sets().back() : set;
  use_instruction_set(wanted);
  if (instruction_set() != wanted) return std::printf("no %s here\n", wanted.c_str()), 77;
  const bool small = what == "small";
  const Gaussian problem({.agents = small ? 20 : 300, .dim = small ? 5 : 20}, 1, 0);
  const MethodKind& kind = method_kind("affpcl");
  std::map<std::string, Value> given{{"ratio", std::string(what == "linear" ? "linear" : "exact")},
                                     {"precision", std::string(what == "single" ? "f32" : "f64")}};
  std::vector<RunMethod> methods(1);
  methods[0].name = what;
  methods[0].method = kind.make(Values(kind.params, given, "method"));
  RunOptions options;
  options.steps = small ? 60 : 8;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(options.steps);  // this alone is counted
}
