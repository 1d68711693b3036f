// Where tests find files of the source tree (known answers, oracles), whatever folder they are
// started in.
#pragma once

namespace affpcl::testing {

const char* SourceDir();  // absolute, without a slash at the end
const char* Python();     // an interpreter with numpy (tools/setup sees to it)

}  // namespace affpcl::testing
