#include "affpcl/base/error.h"

#include <gtest/gtest.h>

namespace affpcl {
namespace {

TEST(BadInput, SentenceIsMadeOfItsFields) {
  const BadInput e({.option = "channels",
                    .place = "shops.csv",
                    .what = "names one column, 'x'",
                    .remedy = "weighing needs two or more"});
  EXPECT_STREQ(e.what(), "shops.csv: channels names one column, 'x'; weighing needs two or more");
  EXPECT_EQ(e.fields().option, "channels");
  EXPECT_STREQ(BadInput("as it is").what(), "as it is");
}

TEST(BadInput, EveryFrontEndSpellsOptionsItsOwnWay) {
  const BadInput e("`channels` needs `next_state`; `missing drop` leaves such rows out");
  EXPECT_EQ(e.sentence(OptionStyle::kCommandLine),
            "--channels needs --next-state; --missing drop leaves such rows out");
  EXPECT_EQ(e.sentence(OptionStyle::kPython),
            "channels= needs next_state=; missing='drop' leaves such rows out");
  EXPECT_EQ(e.sentence(OptionStyle::kKey),
            "channels needs next_state; missing = drop leaves such rows out");
}

TEST(BadInput, ASentenceInsideAnotherKeepsItsOptions) {
  const BadInput inner("`weights` needs `channels`");
  const BadInput outer("rank 1: " + inner.marked());
  EXPECT_EQ(outer.sentence(OptionStyle::kCommandLine), "rank 1: --weights needs --channels");
}

TEST(BadInput, OtherBackticksAreLeftAlone) {
  for (const char* text : {"a ` alone", "``", "`Not a key`", "`", "column 'a`b'"})
    EXPECT_EQ(spell_options(text, OptionStyle::kCommandLine), text);
  EXPECT_EQ(spell_options("'A`b' needs `out`", OptionStyle::kCommandLine), "'A`b' needs --out");
}

}  // namespace
}  // namespace affpcl
