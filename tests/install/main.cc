// A user's program: see CMakeLists.txt beside it.
#include <affpcl/version.h>

#include <cstdio>

int main() {
  std::printf("affpcl %s, %s\n", affpcl::kVersion, affpcl::kCompiler);
  return 0;
}
