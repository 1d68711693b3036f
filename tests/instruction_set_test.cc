// With AFFPCL_TEST_INSTRUCTION_SET in the environment all tests run on that instruction set and not
// on the best one of this machine (cmake/tests.cmake, on_AVX2 and on_portable).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

// The set asked for; "portable" is the last one, whatever it is called. Empty: none.
std::string wanted() {
  const char* name = std::getenv("AFFPCL_TEST_INSTRUCTION_SET");
  if (name == nullptr) return "";
  return name == std::string("portable") ? available_instruction_sets().back() : name;
}

class Capped final : public ::testing::Environment {
  void SetUp() override { use_instruction_set(wanted()); }
};
const auto* const kCapped = ::testing::AddGlobalTestEnvironment(new Capped);

TEST(InstructionSetOfTheTests, IsTheOneAskedFor) {
  if (wanted().empty()) GTEST_SKIP() << "none is asked for";
  EXPECT_EQ(instruction_set(), wanted());
}

}  // namespace
}  // namespace affpcl
