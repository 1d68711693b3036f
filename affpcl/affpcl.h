// affpcl for C++ programs: personalised federated learning, one model per group.
//
//   read_study, run_study        methods on a problem, from the text of a spec
//   run_benchmark                methods, your own among them, on the benchmark's problems
//   fit, predict                 one model per group, from files or from arrays
//   register_method, register_problem   your own, known by name everywhere
//   BadInput, Failure            what is thrown; the library never prints and never exits
//
// docs/cpp.md is the reference, examples/ holds three programs. Link affpcl::affpcl, and affpcl::mpi
// for affpcl/runtime/mpi/mpi.h.
#pragma once

#include <string_view>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/fit/arrays.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"
#include "affpcl/method/local_steps.h"
#include "affpcl/method/method.h"
#include "affpcl/output/benchmark_file.h"
#include "affpcl/output/model_file.h"
#include "affpcl/output/results.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/benchmark.h"
#include "affpcl/study/study.h"
#include "affpcl/version.h"

namespace affpcl {

// From now on `kind = "name"` in a spec is M, and so it is for every later study, fit and listing.
// M has a nested Config, params() and a constructor M(Config), or a default constructor
// (method/method.h). A method of the same name is replaced.
template <class M>
void register_method(std::string_view name, std::string_view doc) {
  add_method_kind(method_kind_of<M>(name, doc));
}

// The same for a problem: P has a Config, params() and a constructor (Config, seed, replicate).
template <class P>
void register_problem(std::string_view name, std::string_view doc) {
  add_problem_kind(problem_kind_of<P>(name, doc));
}

}  // namespace affpcl
