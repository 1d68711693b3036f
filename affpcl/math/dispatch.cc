// What Highway's run-time dispatch asks for: which instruction sets the processor has, and which is
// in use. On x86-64 it is here and not from Highway's library, whose start-up times the processor's
// clock for 4 ms, and which every kernel call would go through (docs/decisions/017).
#include <hwy/targets.h>

#if HWY_ARCH_X86_64 && defined(__GNUC__)

namespace hwy {
namespace {

std::int64_t for_test = 0;

std::int64_t detect() {
  __builtin_cpu_init();  // looks at what the system saves of the registers, too
  std::int64_t sets = HWY_SCALAR | HWY_EMU128;
#ifdef HWY_SSE2  // not yet a target of its own in Highway 1.0.3
  sets |= HWY_SSE2;
#endif
  const bool ssse3 = __builtin_cpu_supports("ssse3");
  const bool sse4 = ssse3 && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
                    __builtin_cpu_supports("aes");
  // Whatever has AVX2 with these has LZCNT and F16C.
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  if (ssse3) sets |= HWY_SSSE3;
  if (sse4) sets |= HWY_SSE4;
  if (avx2) sets |= HWY_AVX2;
  if (avx3) sets |= HWY_AVX3;
  return sets;
}

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t detected = detect();
  return for_test != 0 ? for_test : detected;
}

void SetSupportedTargetsForTest(std::int64_t targets) {
  for_test = targets;
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static constinit ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy

#endif
