#include "affpcl/study/toml_text.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"
#include "affpcl/study/spec.h"

namespace affpcl {
namespace {

std::size_t line(std::string_view text) { return toml_fault(text).line; }

TEST(TomlText, LettersBelongInStringsAndComments) {
  EXPECT_EQ(line(""), 0u);
  EXPECT_EQ(line("\xEF\xBB\xBF# é\na = 'é' # ü\nb = \"é\\u00e9\\\"ü\"\n"), 0u);
  EXPECT_EQ(line("a = \"\"\"é\n\"\" é\"\"\"\nb = '''\n'é'\n'''\n"), 0u);
  EXPECT_EQ(line("a = 1\né = 2\n"), 2u);
  EXPECT_EQ(line("a = 'b' é\n"), 1u);
  EXPECT_EQ(line("a = '\\' é\n"), 1u);  // no escapes between single quotes
  EXPECT_EQ(line("a = '''\n\n''' é\n"), 3u);
  EXPECT_EQ(line("a = \"\\é\"\n"), 1u);
  EXPECT_EQ(line("a = \"\"\"b\\\n  é\"\"\"\n"), 2u);
  EXPECT_EQ(toml_fault("a = 1\né = 2\n").what,
            "'é': outside strings and comments TOML has ASCII letters only");
}

TEST(TomlText, ATableHasAName) {
  EXPECT_EQ(line("[a]\n[[b.c]]\n[ 'd' ]\n\t[\"e\"]\n[-]\n"), 0u);
  EXPECT_EQ(line("a = [\n  [1, 2],\n  [ 'x' ],\n[{b = 1}]\n]\n"), 0u);
  EXPECT_EQ(line("[a]\n[=]\n"), 2u);
  EXPECT_EQ(line("a = [1]\n  [[ *b]]\n"), 2u);
  EXPECT_EQ(line("a = ']' # ]\n[\n"), 2u);
  EXPECT_EQ(line("[[a]]\nb = [[]]\n[*c]\n"), 3u);
  EXPECT_EQ(toml_fault("[=]").what,
            "'=': the name of a table begins with a letter, a digit, _ or -");
}

TEST(TomlText, AStringBeginsAKeyOrAValue) {
  EXPECT_EQ(line("a.'b'.\"c\" = ['d',\"e\",{f='g'}]\n'h'='''i'''\n"), 0u);
  EXPECT_EQ(line("a = 3\".l\xc2\xa1\"\n"), 1u);
  EXPECT_EQ(line("a = 'b''c'\n"), 1u);
}

TEST(TomlText, AListOrATableBeginsAValue) {
  EXPECT_EQ(line("a = [[1],[2, {b=[3],c={}}]]\nd={e =[]}\n"), 0u);
  EXPECT_EQ(line("a = [2x[\"f\xc2\xa1\"]]\n"), 1u);  // to the parser a number goes on
  EXPECT_EQ(line("a = 1{}\n"), 1u);
  EXPECT_EQ(toml_fault("a = 1[\n").what, "'[': a list or a table begins a value");
}

TEST(TomlText, ControlCharactersBelongInStringsAndComments) {
  EXPECT_EQ(line(std::string_view("a = 1\n\0b = 2\n", 13)), 2u);
  EXPECT_EQ(line("a\x7f = 1\n"), 1u);
  EXPECT_EQ(line("a = 1\r\n\tb = 2\r\n"), 0u);
}

TEST(TomlText, BytesThatAreNoLettersAreNamed) {
  EXPECT_EQ(line("a = 1\nb = '\xff'\n"), 2u);
  EXPECT_EQ(toml_fault("a = 1\nb = '\xff'\n").what, "byte 0xff is not UTF-8");
  EXPECT_EQ(line("\xc3"), 1u);
}

TEST(TomlText, ASpecIsRefusedWithItsLine) {
  try {
    read_study("[problem]\nkind = \"gaussian\"\nä = 1\n", "s.toml", {});
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("s.toml line 3: 'ä'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace affpcl
