// What a study is expected to show, as data: claims.toml lists each claim in words, the number it
// is about, and the range in which that number lies. `reproduce` prints them with what was
// measured; a test runs them all.
#pragma once

#include <string>
#include <vector>

#include "affpcl/study/study.h"

namespace affpcl {

struct Verdict {
  std::string says;  // the claim in words
  double measured = 0;
  double lo = 0, hi = 0;
  bool holds = false;
};

// A claim is about a value of one setting, the largest or smallest value over several, the log-log
// slope of a value along a swept key, or the number of times a value falls along it ("falls"):
//
//   [[claim]]
//   says = "…"
//   kind = "value" | "largest" | "smallest" | "slope" | "falls"
//   method = "affpcl"
//   quantity = "vs_independent"        see below
//   over = "fedavg"                    divides by that method's value; largest, smallest: or a list
//   at = {"problem.delta_env" = 0.3}   which settings; a list of values: any of them
//   steps = [30, 600]                  ratio.*: at every point of the curve between these steps,
//                                      instead of over the last steps of the run
//   along = "problem.agents"           slope, falls
//   range = [lo, hi]
//
// Quantities: mse, median, vs_independent, central.x, central.theta, diverged, agent.0.mse,
// agent.-1.vs_independent, agent.worst.vs_independent (the largest), error.q_star.vs_independent,
// and with .lo or .hi the ends of their 90 % intervals;
// ratio.mean, ratio.lo, ratio.hi: the ratio of mean errors to those of `over`, and the ends of its
// 90 % interval over paired replicates. "Below at every level" is: the largest ratio.hi is below 1.
std::vector<Verdict> judge(const std::string& claims, const std::string& name,
                           const StudyResult& result);

std::string claims_json(const std::vector<Verdict>& verdicts);

}  // namespace affpcl
