#include "affpcl/study/studies.h"

#include <fmt/format.h>

#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"

namespace affpcl {

const EmbeddedStudy& embedded_study(std::string_view name) {
  std::vector<std::string_view> names;
  for (const EmbeddedStudy& study : embedded_studies()) {
    if (study.name == name) return study;
    names.push_back(study.name);
  }
  names.emplace_back("all");
  throw BadInput(fmt::format("there is no study '{}'{}", name, hint(name, names)));
}

}  // namespace affpcl
