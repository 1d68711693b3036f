// The tests on an instruction set that is not the best one of this machine: those named by the
// environment variable AFFPCL_TEST_INSTRUCTION_SET run on it (cmake/tests.cmake does this for all).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

const char* wanted() { return std::getenv("AFFPCL_TEST_INSTRUCTION_SET"); }

class Capped final : public ::testing::Environment {
  void SetUp() override {
    if (wanted() != nullptr) use_instruction_set(wanted());
  }
};
const auto* const kCapped = ::testing::AddGlobalTestEnvironment(new Capped);

TEST(InstructionSetOfTheTests, IsTheOneAskedFor) {
  if (wanted() == nullptr) GTEST_SKIP() << "none is asked for";
  EXPECT_EQ(instruction_set(), wanted());
}

}  // namespace
}  // namespace affpcl
