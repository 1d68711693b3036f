// The reader: what a CSV file may look like, and every way it can be bad.
#include "affpcl/data/csv.h"

#include <filesystem>

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class CsvRows : public FileTest {
 protected:
  // The header and all rows.
  Rows rows(const std::string& text) {
    write(text);
    CsvReader in(path);
    Rows all{in.header()};
    while (in.next()) all.emplace_back(in.fields().begin(), in.fields().end());
    return all;
  }
  void refuses(const std::string& text, const std::string& what) {
    refused([&] { rows(text); }, what);
  }
};

TEST_F(CsvRows, LineEndsOfAnyKindAndNoneAtTheEnd) {
  const Rows want{{"a", "b"}, {"1", "x"}, {"2", ""}};
  for (const std::string end : {"\n", "\r\n", "\r"})
    for (const std::string& last : {std::string(), end})
      EXPECT_EQ(rows("a,b" + end + "1,x" + end + "2," + last), want);
}

TEST_F(CsvRows, QuotesHoldAnything) {
  EXPECT_EQ(rows("a,\"b \"\"c\"\"\"\n\"1,5\",\"two\nlines\"\n\"\"\"\",\"\"\n \"x\" , \" y \"\n"),
            (Rows{{"a", "b \"c\""}, {"1,5", "two\nlines"}, {"\"", ""}, {"x", " y "}}));
}

TEST_F(CsvRows, AQuoteInsideAPlainFieldIsALetter) {
  EXPECT_EQ(rows("size,n\n5\" pipe,3\n"), (Rows{{"size", "n"}, {"5\" pipe", "3"}}));
}

TEST_F(CsvRows, TheHeaderDecidesTheSeparator) {
  EXPECT_EQ(rows("a;b\n1,5;2\n"), (Rows{{"a", "b"}, {"1,5", "2"}}));
  EXPECT_EQ(rows("a\tb c\n1\t\n"), (Rows{{"a", "b c"}, {"1", ""}}));
  EXPECT_EQ(rows("\"x,y,z\";b\n1;2\n"), (Rows{{"x,y,z", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows("a\n1\n2\n"), (Rows{{"a"}, {"1"}, {"2"}}));
}

TEST_F(CsvRows, ByteOrderMarkBlankLinesAndSpaces) {
  EXPECT_EQ(rows("\xEF\xBB\xBF\n  \na, b\n\n1 ,\t2\n   \r\n\r\n3, \n\n"),
            (Rows{{"a", "b"}, {"1", "2"}, {"3", ""}}));
  EXPECT_EQ(rows("\xEF\xBB\xBF\"a\"\n\"\"\n"), (Rows{{"a"}, {""}}));  // a quoted blank is a row
}

TEST_F(CsvRows, ANamelessColumnIsNamedByItsPlace) {
  EXPECT_EQ(rows(",a\n0,1\n")[0], (std::vector<std::string>{"column 1", "a"}));
}

TEST_F(CsvRows, LinesAreCountedAsAnEditorDoes) {
  write("\na,b\r\n1,\"x\r\ny\nz\"\n\n2,y\n");
  CsvReader in(path);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.line(), 3);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.line(), 7);
  EXPECT_FALSE(in.next());
  EXPECT_FALSE(in.next());
  in.rewind();
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.line(), 3);
  EXPECT_EQ(in.fields()[1], "x\r\ny\nz");
}

// Rows of all lengths around a buffer of 2^18, quotes and line ends on its edge.
TEST_F(CsvRows, BuffersHaveNoEdge) {
  for (int shift = 0; shift < 12; ++shift) {
    std::string text =
        "a,b\r\n" + std::string((1 << 18) - 20 + static_cast<std::size_t>(shift), 'x');
    text += ",\"p\"\"q\"\r\n\"r\r\ns\",t\r\n";
    const Rows got = rows(text + std::string(700'000, 'y') + ",z");
    ASSERT_EQ(got.size(), 4u);
    EXPECT_EQ(got[1][0].size(), static_cast<std::size_t>((1 << 18) - 20 + shift));
    EXPECT_EQ(got[1][1], "p\"q");
    EXPECT_EQ(got[2], (std::vector<std::string>{"r\r\ns", "t"}));
    EXPECT_EQ(got[3][0].size(), 700'000u);
    EXPECT_EQ(got[3][1], "z");
  }
}

TEST_F(CsvRows, ManyRowsKeepTheirOrder) {
  std::string text = "n,\"text\"\n";
  for (int i = 0; i < 100'000; ++i)
    text += std::to_string(i) + (i % 3 ? ",\"a\"\"" : ",\"a,\n\"\"") + std::to_string(i) + "\"\n";
  const Rows got = rows(text);
  ASSERT_EQ(got.size(), 100'001u);
  for (int i = 0; i < 100'000; ++i) {
    const auto& row = got[static_cast<std::size_t>(i) + 1];
    ASSERT_EQ(row[0], std::to_string(i));
    ASSERT_EQ(row[1], (i % 3 ? "a\"" : "a,\n\"") + std::to_string(i));
  }
}

TEST_F(CsvRows, RefusesWhatIsNotThere) {
  refused([&] { CsvReader in(path); }, "No such file");
  std::filesystem::create_directory(path);
  refused([&] { CsvReader in(path); }, "it is a folder");
  std::filesystem::remove(path);
  if (geteuid() == 0) return;  // who may read everything
  write("a\n1\n");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  refused([&] { CsvReader in(path); }, "Permission denied");
}

TEST_F(CsvRows, AFileThatShrinksJustEnds) {
  write("a\n1\n2\n");
  CsvReader in(path);
  while (in.next()) {
  }
  std::filesystem::resize_file(path, 0);
  in.rewind();
  EXPECT_FALSE(in.next());
}

TEST_F(CsvRows, RefusesEmptyFiles) {
  refuses("", "is empty");
  refuses("\n \r\n", "blank lines only");
  refuses("\xEF\xBB\xBF", "blank lines only");
}

TEST_F(CsvRows, RefusesRaggedRows) {
  refuses("a,b,c\n1,2,3\n\n1,2\n",
          ", line 4: 2 fields where the header has 3: none for column 'c'");
  refuses("a,b\n1,2,3\n", ", line 2: 3 fields where the header has 2: '3' is one too many");
}

TEST_F(CsvRows, RefusesTwoColumnsOfOneName) {
  refuses("a,b, a\n1,2,3\n", ", line 1: columns 1 and 3 are both called 'a'");
  refuses("column 2,\n1,2\n", "both called 'column 2'");
}

TEST_F(CsvRows, RefusesLooseQuotes) {
  refuses("a,b\n1,\"x\n2,y\n", ", line 2: a quote is opened and never closed");
  refuses("a,b\n1,\"x\"y\n", ", line 2: 'y");
}

TEST_F(CsvRows, RefusesBinaryFiles) {
  refuses(std::string("PX\x03\x04\0\0\n", 7), ", line 1: field 1: a zero byte");
  refuses(std::string("a,b\n1,2\n1,\0", 12), ", line 3: column 'b': a zero byte");
  std::string late = "a,b\n";
  for (int i = 0; i < 100'000; ++i) late += "1,2\n";
  refuses(late + std::string("1,\0\n", 4), ", line 100002: column 'b': a zero byte");
  refuses(late + std::string("1,\"\0\"\n", 6), ", line 100002: column 'b': a zero byte");
}

TEST_F(CsvRows, RefusesEndlessLines) {
  EXPECT_EQ(rows("a\n" + std::string(9'999'999, '1') + "\n")[1][0].size(), 9'999'999u);
  refuses("a\n1\n" + std::string(10'000'001, '1') + "\n",
          ", line 3: more than 10000000 characters");
  refuses("a\n1\n\"" + std::string(20'000'001, '\n'), ", line 3: more than 10000000 characters");
  refuses(std::string(20'000'001, 'a'), ", line 1: more than 10000000 characters");
}

TEST_F(CsvRows, AWrongColumnNameGetsAHint) {
  write("agent,x\n1,2\n");
  const CsvReader in(path);
  EXPECT_EQ(in.column("x"), 1u);
  refused([&] { in.column("agnet"); }, "has no column 'agnet'; did you mean 'agent'?");
}

TEST_F(CsvRows, AComplaintNamesAllAndStaysShort) {
  write("agent,x\n1,\"a\nb" + std::string(100, 'c') + "\"\n");
  CsvReader in(path);
  ASSERT_TRUE(in.next());
  refused([&] { in.refuse(1, "is odd"); }, ", line 2, column 'x': 'a bccc");
}

}  // namespace
}  // namespace affpcl
