// Options of the stream solver and of the TD solver.
#pragma once

#include <map>
#include <string>

#include "affpcl/base/params.h"

namespace affpcl {

struct StreamOptions {
  std::string method = {};                          // empty: the solver's default
  std::map<std::string, Value> method_values = {};  // of its parameters
  static const Params<StreamOptions>& params();
};

}  // namespace affpcl
