// The studies that come with affpcl: the paper's figures and theorems, from studies/, embedded in
// the library.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace affpcl {

struct EmbeddedStudy {
  std::string_view name;    // the folder's
  std::string_view spec;    // spec.toml
  std::string_view claims;  // claims.toml
};

std::span<const EmbeddedStudy> embedded_studies();
const EmbeddedStudy& embedded_study(std::string_view name);  // BadInput if there is none

}  // namespace affpcl
