#include "affpcl/base/utf8.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

TEST(Printable, WhatControlsATerminalIsEscaped) {
  EXPECT_EQ(printable("plain, naïve 漢字\nsecond line"), "plain, naïve 漢字\nsecond line");
  EXPECT_EQ(printable("\x1b[2Jgone\r\t\a"), "\\x1b[2Jgone\\x0d\\x09\\x07");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // a control character beyond ASCII
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, ALongTextLosesItsMiddle) {
  const std::string text = printable("begin " + std::string(100000, 'x') + " end");
  EXPECT_LT(text.size(), 4100u);
  EXPECT_TRUE(text.starts_with("begin xxx"));
  EXPECT_TRUE(text.ends_with("xxx end"));
  std::string letters;
  for (int k = 0; k < 5000; ++k) letters += "é";
  const std::string cut = printable(letters);
  EXPECT_EQ(valid_utf8(cut).valid, cut.size());
}

TEST(Printable, ErrorsArePrintable) {
  EXPECT_EQ(BadInput("a \x1b b").sentence(OptionStyle::kCommandLine), "a \\x1b b");
  EXPECT_EQ(std::string(BadInput(BadInput::Fields{.place = "f\x07", .what = "is bad"}).what()),
            "f\\x07: is bad");
}

}  // namespace
}  // namespace affpcl
