// What page.cc and its parts share: a result folder as read from disk and checked. Not installed.
#pragma once

#include <optional>
#include <string>

#include "affpcl/base/json.h"
#include "affpcl/table/model.h"

namespace affpcl {

struct ResultFiles {
  std::string folder;
  Json summary;                // its shape has been checked
  std::optional<Model> model;  // of a fit
  Json claims;                 // of a reproduced study; null where there are none
  bool fitted() const { return model.has_value(); }
  bool piloted() const { return summary.contains("pilot_rows"); }  // of affinity
};

ResultFiles read_result(const std::string& folder);

// What the page needs of a result: rounded, long columns packed, and so much of the curves, agents
// and coefficients that it takes about `room` characters; what is left out is said.
Json page_data(const ResultFiles& result, std::size_t room);

// What became better or worse from one result to another.
Json compare(const ResultFiles& before, const ResultFiles& after);

// Numbers as base64 of the upper three bytes of their 32-bit floats: four characters each, 15 bits
// of fraction (relative error 2^-16), what is missing as NaN.
std::string pack(const std::vector<double>& numbers);

}  // namespace affpcl
