#include "affpcl/density/ratio.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"
#include "affpcl/density/exact.h"
#include "affpcl/density/none.h"

namespace affpcl {

const std::vector<RatioKind>& ratio_kinds() {
  static const std::vector<RatioKind> kKinds = {
      {"exact", "known densities, as Algorithm 1 assumes",
       [] { return std::unique_ptr<Ratio>(new ExactRatio); }},
      {"none", "no importance correction (rho = 1); biased when environments differ",
       [] { return std::unique_ptr<Ratio>(new NoRatio); }},
  };
  return kKinds;
}

std::unique_ptr<Ratio> make_ratio(std::string_view name) {
  std::vector<std::string_view> names;
  for (const RatioKind& kind : ratio_kinds()) {
    if (kind.name == name) return kind.make();
    names.push_back(kind.name);
  }
  throw BadInput(fmt::format("ratio = \"{}\" is not known{}", name, hint(name, names)));
}

}  // namespace affpcl
