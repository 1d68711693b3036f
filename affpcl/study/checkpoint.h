// Checkpoint files: the tasks of a study, finished or under way. A file is whole or not there: it
// is written under another name, forced to the disk, then renamed, and ends with a checksum. The
// last two are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "affpcl/study/spec.h"
#include "affpcl/study/task.h"

namespace affpcl {

class Checkpoints {
 public:
  // BadInput where the folder cannot be used: it holds checkpoints and `resume` is false, or it
  // holds other things.
  Checkpoints(std::string folder, const Study& study, bool resume);

  // The tasks of the newest file that is whole and of this study, and that check() does not refuse
  // by BadInput. note() gets the reasons why newer files were passed over. No file: no tasks.
  // BadInput, with the reasons, where there are files but none can be used.
  using Note = std::function<void(const std::string&)>;
  using Check = std::function<void(const std::vector<TaskState>&)>;
  std::vector<TaskState> read(const Note& note, const Check& check) const;

  void write(const std::map<std::size_t, Bytes>& tasks);  // Failure where it cannot

 private:
  std::string path(std::int64_t number) const;
  std::vector<std::int64_t> numbers() const;  // of the files there are, ascending

  std::string folder_, identity_;
  std::int64_t next_ = 1;
};

}  // namespace affpcl
