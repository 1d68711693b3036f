// What a study has done so far, in files that outlive the process. A file is whole or not there: it
// is written under another name, forced to the disk, then renamed; a checksum ends it. The last two
// are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "affpcl/study/spec.h"
#include "affpcl/study/task.h"

namespace affpcl {

class Checkpoints {
 public:
  // BadInput where the folder cannot be used: it has checkpoints but nobody asked to resume, or it
  // is something else.
  Checkpoints(std::string folder, const Study& study, bool resume);

  // The newest that is whole and of this study. `note` is told why newer ones were passed over;
  // BadInput, with the reasons, where there are some but none will do. None at all: nothing is
  // done.
  std::vector<TaskState> read(const std::function<void(const std::string&)>& note) const;

  void write(const std::vector<TaskState*>& tasks);  // Failure if it cannot

 private:
  std::string path(std::int64_t number) const;
  std::vector<std::int64_t> numbers() const;  // of the files there are, ascending

  std::string folder_, identity_;
  std::int64_t next_ = 1;
};

}  // namespace affpcl
