// The entry points of libFuzzer:  fuzz --target=csv FOLDER [libFuzzer's options]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/targets.h"

namespace {
const affpcl::fuzz::Target* g_target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i)
    if (const std::string_view word = (*argv)[i]; word.starts_with(kOption))
      g_target = affpcl::fuzz::find_target(word.substr(kOption.size()));
  if (g_target == nullptr) {
    std::fprintf(stderr, "fuzz: --target=NAME is missing or unknown; there are:");
    for (const affpcl::fuzz::Target& t : affpcl::fuzz::targets())
      std::fprintf(stderr, " %.*s", static_cast<int>(t.name.size()), t.name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_target->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
