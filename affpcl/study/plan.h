// Which tasks a study has, and which ranks and threads run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/study/study.h"

namespace affpcl {

class Plan {
 public:
  struct Task {
    std::size_t setting;
    std::int64_t replicate;  // from 0
  };

  // Many agents: ranks and threads divide the blocks of each replicate. Few agents: each takes
  // whole replicates. The results have the same bits either way.
  Plan(const Study& study, StudyOptions::Split split, int threads, Processes& processes);

  std::size_t size() const { return tasks_.size(); }
  const Task& operator[](std::size_t task) const { return tasks_[task]; }
  const Spec& spec(std::size_t task) const { return study_.settings[tasks_[task].setting].spec; }
  // What results call the replicate.
  std::uint32_t number(std::size_t task) const {
    return static_cast<std::uint32_t>(spec(task).first + tasks_[task].replicate);
  }
  double cost(std::size_t task) const;  // relative to others

  const std::vector<std::size_t>& own() const { return own_; }  // the tasks of this rank
  // Whether ranks divide the agents of every replicate. Otherwise each takes whole replicates.
  bool splits_agents() const { return splits_agents_; }
  // One team for each task that this rank runs at a time.
  std::vector<std::unique_ptr<Team>> teams() const;

 private:
  const Study& study_;
  Processes& processes_;
  int threads_;
  std::vector<Task> tasks_;
  std::vector<std::size_t> own_;
  std::int64_t leaves_ = 1;  // of the largest setting
  bool splits_agents_ = false;
  bool threads_divide_agents_ = false;
};

}  // namespace affpcl
