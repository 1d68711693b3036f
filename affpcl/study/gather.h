// Gathers the replicates of a study on rank 0, and summarises a setting once it has them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "affpcl/study/plan.h"
#include "affpcl/study/replica.h"
#include "affpcl/study/study.h"
#include "affpcl/study/task.h"

namespace affpcl {

class Gathered {
 public:
  Gathered(const Study& study, const Plan& plan);

  // The shape of a task's setting; the problem is made only where none has been described.
  const SettingShape& shape(std::size_t task);
  void describe(std::size_t task, const Problem& problem);

  // BadInput unless these tasks, read from a file, are of this study and each is there once.
  void check(const std::vector<TaskState>& tasks);

  void add(std::size_t task, Replicate replicate);              // finished
  void add_interrupted(std::size_t task, Replicate replicate);  // as far as it went

  // The settings of which anything was run. `complete` turns false where a replicate is missing.
  std::vector<SettingResult> finish(bool& complete);

 private:
  struct Collected {
    std::optional<SettingShape> shape;
    std::vector<Replicate> replicates;
    std::int64_t missing = 0;
    SettingResult result = {};
  };
  void summarise(std::size_t setting);

  const Study& study_;
  const Plan& plan_;
  std::vector<Collected> settings_;
};

}  // namespace affpcl
