#include "examples/pull_to_mean.h"

#include "affpcl/algorithm/local_steps.h"

namespace affpcl::examples {

MethodKind PullToMean::kind() {
  return {"pull_to_mean",
          "each agent alone, then a share of the way towards the mean",
          {{.name = "share",
            .doc = "of the way to the mean, each round",
            .fallback = Config{}.share,
            .lo = 0,
            .hi = 1}},
          [](const Values& v) {
            return std::make_unique<PullToMean>(Config{.share = v.number("share")});
          }};
}

void PullToMean::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  x_ = agent.add("x", d);
  mean_ = centre.add("mean", d);
  sent_ = sum.add("x", d);
}

// What each agent adds to the sum.
void PullToMean::contribute(const Round&, const Batch&, Agents agents, Centre,
                            Message message) const {
  message.add(sent_, agents[x_]);
}

// What everybody makes of the mean.
void PullToMean::centre(const Round&, Mean mean, Centre centre) const {
  const std::span<double> m = centre.mutate(mean_);
  for (std::size_t r = 0; r < m.size(); ++r) m[r] = mean[sent_].p[r];
}

// Each agent's step.
void PullToMean::update(const Round& round, const Batch& batch, Agents agents, Centre centre,
                        Mean) const {
  const Out x = agents[x_], gap = round.scratch.rows(x.rows);
  local_steps(round, agents.lanes, batch, x);
  subtract(centre[mean_], x, gap);
  add_scaled(x, config_.share, gap);
}

}  // namespace affpcl::examples
