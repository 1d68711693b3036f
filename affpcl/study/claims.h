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

// A claim is about a value, the log-log slope of a value along a swept key, or the number of times
// a value falls along it ("falls"):
//   [[claim]]
//   says = "…"
//   kind = "value" | "slope" | "falls"
//   method = "affpcl"                    over = "fedavg" divides by another method's value
//   quantity = "vs_independent"          mse, median, vs_independent, central.x, central.theta,
//   agent.0.mse,
//                                        agent.-1.vs_independent, agent.worst.vs_independent
//                                        (the largest), error.q_star.vs_independent, diverged
//   at = {"problem.delta_env" = 0.3}     which settings
//   along = "problem.agents"             slope, falls
//   range = [lo, hi]
std::vector<Verdict> judge(const std::string& claims, const std::string& name,
                           const StudyResult& result);

std::string claims_json(const std::vector<Verdict>& verdicts);

}  // namespace affpcl
