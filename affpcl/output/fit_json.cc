#include <unistd.h>

#include "affpcl/math/kernels.h"
#include "affpcl/output/fit_json-inl.h"
#include "affpcl/version.h"

namespace affpcl {

const char* to_text(Missing missing) { return name_of(missing).data(); }

std::string pretty(const Json& json) {
  return print_json(json, {.indent = 1, .flat_lists = true}) + "\n";
}

Json spec_json(const Encoding& encoding, const std::vector<std::string>& files) {
  return {{"files", files},
          {"target", encoding.target},
          {"agent_column", encoding.agent_column},
          {"missing", to_text(encoding.missing)},
          {"outcomes", encoding.outcomes},
          {"task", encoding.task()}};
}

Json privacy_json(const PrivacyTerms& terms) {
  Json bounds = Json::array();
  for (const Bound& b : terms.bounds) {
    bounds.push_back({{"column", b.column}});
    if (b.levels.empty()) {
      bounds.back()["low"] = b.low, bounds.back()["high"] = b.high;
    } else {
      bounds.back()["levels"] = b.levels;
    }
  }
  return {{"protects", "one row of one agent, added or left out"},
          {"epsilon", terms.epsilon},
          {"delta", terms.delta},
          {"releases", 1},
          {"mechanism", "discrete Gaussian"},
          {"noise_multiplier", terms.multiplier},
          {"sensitivity", terms.sensitivity},
          {"noise", terms.noise()},
          {"bounds", std::move(bounds)}};
}

Json manifest(Json spec, std::uint64_t seed, const std::string& command, int threads,
              double seconds, bool complete) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return {{"version", kVersion},
          {"spec", std::move(spec)},
          {"seed", seed},
          {"command", command},
          {"host", host},
          {"instruction_set", instruction_set()},
          {"compiler", kCompiler},
          {"threads", threads},
          {"ranks", 1},
          {"seconds", seconds},
          {"complete", complete}};
}

}  // namespace affpcl
