#include "affpcl/data/field.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

TEST(Field, Parses) {
  const std::pair<const char*, double> good[] = {
      {"0", 0},
      {"-17", -17},
      {"+4", 4},
      {" 2.5\t", 2.5},
      {".5", .5},
      {"5.", 5},
      {"-.25", -.25},
      {"1e3", 1e3},
      {"1E-2", 1e-2},
      {"0.1", 0.1},
      {"123456789012345", 123456789012345.},
      {"1e-400", 0},
      {"007", 7},
      {"0.000000000000001", 1e-15},
      {"9007199254740993", 9007199254740992.},
      {"2.2250738585072014e-308", 2.2250738585072014e-308},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"+1.5e+2", 150}};
  for (const auto& [text, value] : good) EXPECT_EQ(parse_number(text), value) << text;
  for (const char* text :
       {"",    " ",   "-",   "+",   ".",    "-.", "x",   "1x",   "1 2", "1,5",   "1.2.3",
        "--1", "+-1", "++1", "- 1", "0x10", "1e", "inf", "-inf", "nan", "1e999", "?"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Field, GroupsOfDigitsMayStandApart) {
  for (const char* text : {"1 234 567", "1'234'567", "1\u00a0234\u00a0567", "1\u202f234\u202f567"})
    EXPECT_EQ(parse_number(text), 1234567) << text;
  EXPECT_EQ(parse_number("-12 345.5"), -12345.5);
  EXPECT_EQ(parse_number("1 234,5", ','), 1234.5);
  EXPECT_EQ(parse_number("1 234"), 1234);
  for (const char* text :
       {"1 23", "1234 567", "1 2345", "1 234'567", " 1 234 56", "1  234", "1 234 x", "'123"})
    EXPECT_FALSE(parse_number(text)) << text;
}

// The quick way for short decimals rounds as the long way does: a trailing e0 takes the long way.
TEST(Field, ShortDecimalsAreExactlyRounded) {
  std::uint64_t x = 1;
  for (int i = 0; i < 200'000; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    std::string text = std::to_string((x >> 8) % (i % 2 ? 1'000'000u : 1'000'000'000'000'000u));
    const std::size_t at = x % (text.size() + 1);
    if (i % 5) text.insert(at, ".");
    if (i % 7 == 0) text = "-" + text;
    ASSERT_EQ(parse_number(text), parse_number(text + "e0")) << text;
  }
}

TEST(Field, AComplaintStaysShortAndBreaksNoLetter) {
  const std::string xs(39, 'x');
  EXPECT_EQ(complaint("p", "line 1", "c", xs + "ä", "is long"),
            fmt::format("p, line 1, column 'c': '{}…' is long", xs));
}

TEST(Field, NamesInAList) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in("", "key"), Names());
  EXPECT_EQ(names_in("a", "key"), Names{"a"});
  EXPECT_EQ(names_in("a, b c ,d", "key"), (Names{"a", "b c", "d"}));
  for (const auto& [list, said] : {std::pair{"a,", R"(key = "a," has a column without a name)"},
                                   {"a, ,b", R"(key = "a, ,b" has a column without a name)"},
                                   {"a,b, a", R"(key = "a,b, a" names 'a' twice)"}}) {
    try {
      names_in(list, "key");
      FAIL() << list;
    } catch (const BadInput& e) {
      EXPECT_STREQ(e.what(), said);
    }
  }
}

TEST(Field, Missing) {
  for (const char* text :
       {"", "  ", "NA", "na", "NaN", "nan", "NAN", " ? ", "N/A", "null", "None", "-", "."})
    EXPECT_TRUE(is_missing(text)) << text;
  for (const char* text : {"0", "N", "NAN1", "nobody", "??", "--"})
    EXPECT_FALSE(is_missing(text)) << text;
}

}  // namespace
}  // namespace affpcl
