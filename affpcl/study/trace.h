// --trace: every iterate of a small run, full precision, for people who check an implementation
// against another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "affpcl/runtime/run.h"
#include "affpcl/study/spec.h"

namespace affpcl {

class Trace {
 public:
  Trace(const Study& study, std::string path);  // BadInput where a trace makes no sense
  void follow(Run& run, std::uint32_t replicate, std::int64_t agents);
  void write() const;  // method,replicate,step,what,agent,index,value

 private:
  std::string path_;
  std::vector<std::string> methods_;
  // By replicate, so that the order of the file does not depend on threads.
  std::map<std::uint32_t, std::string> lines_;
};

}  // namespace affpcl
