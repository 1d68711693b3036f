#include "affpcl/study/limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

double number_or(const Spec& spec, const char* key, double otherwise) {
  const auto it = spec.problem.all().find(key);
  if (it == spec.problem.all().end() || !std::holds_alternative<std::int64_t>(it->second))
    return otherwise;
  return static_cast<double>(std::get<std::int64_t>(it->second));
}

}  // namespace

std::int64_t agents_hint(const Spec& spec) {
  return static_cast<std::int64_t>(number_or(spec, "agents", 1));
}

void refuse_too_large(const Spec& spec) {
  const double n = number_or(spec, "agents", 1), d = number_or(spec, "dim", 1);
  const auto family = spec.problem.all().find("family");
  const bool own_states =
      family != spec.problem.all().end() && family->second == Value("free_ride");
  const double states = number_or(spec, "states", 0) * (own_states ? n : 1);
  // Per agent: the problem's own vectors, the samples, and each method's iterate, directions and
  // errors.
  double numbers = 8 * d + states * (2 + d);
  for (const MethodSpec& m : spec.methods)
    numbers += d * (4 + 3.0 * m.period * m.batch) + 3 + static_cast<double>(spec.replicates);
  const double bytes = 8 * n * numbers;
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    throw BadInput(
        fmt::format("problem.agents = {:.0f} would need about {:.3g} GB of memory, but this "
                    "machine has {:.3g} GB",
                    n, bytes / 1e9, memory / 1e9));
}

}  // namespace affpcl
