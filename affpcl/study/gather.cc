#include "affpcl/study/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/study/summarise.h"

namespace affpcl {

Gathered::Gathered(const Study& study, const Plan& plan) : study_(study), plan_(plan) {
  for (const Setting& s : study.settings) {
    Collected& c = settings_.emplace_back();
    c.replicates.resize(static_cast<std::size_t>(s.spec.replicates));
    c.missing = s.spec.replicates;
  }
}

const SettingShape& Gathered::shape(std::size_t task) {
  std::optional<SettingShape>& shape = settings_[plan_[task].setting].shape;
  if (!shape) {
    try {
      describe(task, *make_problem(plan_.spec(task), plan_.number(task)));
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", study_.name, e.marked()));
    }
  }
  return *shape;
}

void Gathered::describe(std::size_t task, const Problem& problem) {
  std::optional<SettingShape>& shape = settings_[plan_[task].setting].shape;
  if (!shape) shape = shape_of(plan_.spec(task), problem);
}

void Gathered::check(const std::vector<TaskState>& tasks) {
  std::vector<char> seen(plan_.size(), 0);
  for (const TaskState& t : tasks) {
    const auto task = static_cast<std::size_t>(t.task);
    if (t.task < 0 || task >= plan_.size())
      throw BadInput(fmt::format("it holds task {}, and the study has {}", t.task, plan_.size()));
    if (std::exchange(seen[task], 1) != 0)
      throw BadInput(fmt::format("it holds task {} twice", t.task));
    if (t.finished) check_replicate(t.replicate, plan_.spec(task), plan_.number(task), shape(task));
  }
}

void Gathered::add(std::size_t task, Replicate replicate) {
  Collected& c = settings_[plan_[task].setting];
  add_interrupted(task, std::move(replicate));
  if (--c.missing == 0) summarise(plan_[task].setting);
}

void Gathered::add_interrupted(std::size_t task, Replicate replicate) {
  const auto [setting, number] = plan_[task];
  settings_[setting].replicates[static_cast<std::size_t>(number)] = std::move(replicate);
}

std::vector<SettingResult> Gathered::finish(bool& complete) {
  std::vector<SettingResult> results;
  for (std::size_t s = 0; s < settings_.size(); ++s) {
    if (settings_[s].missing > 0) summarise(s), complete = false;
    if (!settings_[s].result.methods.empty()) results.push_back(std::move(settings_[s].result));
  }
  return results;
}

void Gathered::summarise(std::size_t setting) {
  Collected& c = settings_[setting];
  std::size_t task = 0;
  while (plan_[task].setting != setting) ++task;
  const std::vector<Replicate> replicates = std::move(c.replicates);
  c.replicates.clear();
  c.result = affpcl::summarise(study_.settings[setting], shape(task), replicates);
}

}  // namespace affpcl
