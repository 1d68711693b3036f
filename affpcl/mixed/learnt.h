// What the exact solver learns of one channel: the forms of D, averaged by their evidence, and how
// agents differ in noise. An agent's moments divided by f_i, with t_i beside them, give all agents
// the same noise and the same D, so the decomposition stays as it is. docs/explain/fit.md derives it.
#pragma once

#include <vector>

#include "affpcl/mixed/agent_law.h"
#include "affpcl/mixed/decomposition.h"

namespace affpcl {

struct WeightedForm {
  Decomposition model;
  Matrix root;        // D = root' root
  double weight = 1;  // the weights of all forms sum to 1
};

struct Learnt {
  std::vector<Decomposition> tried;  // equal noise, no outlying agents: the usual REML estimates
  std::vector<WeightedForm> forms;   // the largest weight first
  AgentLaw law;
  Moments moments;            // divided by noise, with t: what the forms are of
  std::vector<double> noise;  // f, by agent held

  const Decomposition& best() const { return forms[0].model; }
};
// The same forms with one noise variance for all and no outlying agents; `moments` are those of the rows.
Learnt without_law(const Learnt& learnt, const Moments& moments);
Learnt learn_agents(const Moments& moments, const DecompositionOptions& options, Team& team);
// The same from nearly the same rows: the law, f and t are those of `near`, and only D is learnt anew.
Learnt learn_near(const Learnt& near, const Moments& moments, const DecompositionOptions& options,
                  Team& team);

}  // namespace affpcl
