#include "affpcl/affinity/affinity_archive.h"

#include "affpcl/base/archive.h"

namespace affpcl {
namespace {

constexpr std::int64_t kVersion = 1;

void score_fields(Archive& archive, Score& s) {
  archive("value", s.value);
  archive("se", s.se);
  archive("why", s.why);
}

void agent_fields(Archive& archive, AgentAffinity& a) {
  for (Score* s : {&a.delta_cen, &a.lambda, &a.kappa, &a.nu, &a.prediction})
    score_fields(archive, *s);
}

void fields(Archive& archive, Affinity& a) {
  for (Score* s : {&a.delta_env, &a.delta_obj, &a.G_b, &a.G_A, &a.G_x, &a.sigma, &a.lambda_central,
                   &a.lambda_objective, &a.nu, &a.step_limit})
    score_fields(archive, *s);
  archive("agents", a.agents, agent_fields);
}

}  // namespace

std::vector<std::byte> pack(const Affinity& affinity) {
  Archive archive("affinity", kVersion);
  fields(archive, const_cast<Affinity&>(affinity));  // which an archive that writes only reads
  return archive.take();
}

Affinity unpack_affinity(std::span<const std::byte> bytes) {
  Archive archive("affinity", kVersion, bytes);
  Affinity affinity;
  fields(archive, affinity);
  archive.finish();
  return affinity;
}

}  // namespace affpcl
