#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "affpcl/fit/json-inl.h"
#include "affpcl/math/kernels.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

void write(const Json& j, std::size_t indent, std::string& out) {
  const bool flat = !j.is_structured() || j.empty() ||
                    (j.is_array() && std::none_of(j.begin(), j.end(),
                                                  [](const Json& e) { return e.is_structured(); }));
  if (flat) {
    out += j.dump();
    return;
  }
  const std::string space(indent + 1, ' ');
  out += j.is_array() ? "[\n" : "{\n";
  for (auto it = j.begin(); it != j.end(); ++it) {
    out += space;
    if (j.is_object()) out += Json(it.key()).dump() + ": ";
    write(*it, indent + 1, out);
    out += std::next(it) == j.end() ? "\n" : ",\n";
  }
  out += std::string(indent, ' ') + (j.is_array() ? "]" : "}");
}

}  // namespace

const char* to_text(Missing missing) {
  return missing == Missing::kError ? "error" : missing == Missing::kMean ? "mean" : "drop";
}

std::string pretty(const Json& json) {
  std::string out;
  write(json, 0, out);
  return out + "\n";
}

Json spec_json(const Encoding& encoding, const std::vector<std::string>& files) {
  return {{"files", files},
          {"target", encoding.target},
          {"agent_column", encoding.agent_column},
          {"missing", to_text(encoding.missing)},
          {"outcomes", encoding.outcomes},
          {"task", encoding.task()}};
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
