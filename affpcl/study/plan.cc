#include "affpcl/study/plan.h"

#include <algorithm>

#include "affpcl/study/limits.h"

namespace affpcl {
namespace {

constexpr std::int64_t kLeavesOfAWorker = 8;  // with fewer, whole replicates are faster

}  // namespace

Plan::Plan(const Study& study, StudyOptions::Split split, int threads, Processes& processes)
    : study_(study), processes_(processes), threads_(threads) {
  std::int64_t most = 0;
  for (std::size_t s = 0; s < study.settings.size(); ++s) {
    const Spec& spec = study.settings[s].spec;
    most = std::max(most, agents_hint(spec));
    for (std::int64_t r = 0; r < spec.replicates; ++r) tasks_.push_back({s, r});
  }
  leaves_ = leaves_of(most);
  const auto divide = [&](std::int64_t workers, std::size_t tasks) {
    return leaves_ >= kLeavesOfAWorker * workers || tasks < static_cast<std::size_t>(workers);
  };
  const auto ranks = static_cast<std::size_t>(processes.count());
  splits_agents_ = ranks > 1 && (split == StudyOptions::Split::kAuto
                                     ? divide(std::int64_t{processes.count()} * threads, size())
                                     : split == StudyOptions::Split::kAgents);
  for (std::size_t t = 0; t < size(); ++t)
    if (splits_agents_ || t % ranks == static_cast<std::size_t>(processes.rank()))
      own_.push_back(t);
  threads_divide_agents_ = splits_agents_ || divide(threads, own_.size());
}

double Plan::cost(std::size_t task) const {
  const Spec& s = spec(task);
  return static_cast<double>(s.run.steps) * static_cast<double>(s.methods.size()) *
         static_cast<double>(agents_hint(s) + 50);
}

std::vector<std::unique_ptr<Team>> Plan::teams() const {
  std::vector<std::unique_ptr<Team>> teams;
  if (threads_divide_agents_ || threads_ == 1) {
    teams.push_back(
        thread_team(leaves_ > 1 ? threads_ : 1, splits_agents_ ? processes_ : this_process()));
  } else {
    for (int t = 0; t < threads_; ++t) teams.push_back(serial_team());
  }
  return teams;
}

}  // namespace affpcl
