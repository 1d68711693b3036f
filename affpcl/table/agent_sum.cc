#include "affpcl/table/agent_sum.h"

#include "affpcl/runtime/collectives.h"

namespace affpcl {

AgentSum::AgentSum(std::string_view purpose, std::size_t width, std::size_t agents, Team& team)
    : team_(team), purpose_(purpose), width_(width), agents_(agents) {
  if (team.sums() == Sums::kFloat) {
    sum_ = TeamSum(width, team.workers());
    return;
  }
  workers_.resize(static_cast<std::size_t>(team.workers()));
  for (Worker& w : workers_) w.numbers.resize(width);
  total_.resize(width);
}

const double* AgentSum::exact(FunctionRef<void(std::int64_t, int, double*)> agent) {
  for (Worker& w : workers_) w.sum.assign(width_, Fixed{});
  team_.each(own_agents(agents_, team_), [&](std::int64_t i, int worker) {
    Worker& w = workers_[static_cast<std::size_t>(worker)];
    std::fill(w.numbers.begin(), w.numbers.end(), 0.0);
    agent(i, worker, w.numbers.data());
    add_exactly(w.numbers, w.sum);
  });
  std::vector<Fixed>& all = workers_[0].sum;
  for (std::size_t w = 1; w < workers_.size(); ++w)
    for (std::size_t k = 0; k < width_; ++k) all[k] += workers_[w].sum[k];
  team_.processes().set_purpose(purpose_);
  sum_exactly(team_.processes(), all, total_);
  return total_.data();
}

}  // namespace affpcl
