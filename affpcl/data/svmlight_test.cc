#include "affpcl/data/svmlight.h"

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

class Svmlight : public FileTest {
 protected:
  Svmlight() : FileTest(".svm") {}

  DataTable read(const std::string& text, const TableOptions& options = {}) const {
    write(text);
    return read_table(path, options);
  }
  void refuses(const std::string& text, const std::string& what) const {
    refused([&] { read(text); }, what);
  }
};

TEST_F(Svmlight, PairsBecomeColumns) {
  const DataTable t = read("# a comment\n+1 1:0.5 3:-2e1 # more\n\n-1 2:7\r\n0");
  EXPECT_EQ(t.rows, 3);
  EXPECT_EQ(t.names(), (Names{"y", "x1", "x2", "x3"}));
  EXPECT_EQ(table_header(path), t.names());
  EXPECT_EQ(t.numbers("y"), (Numbers{1, -1, 0}));
  EXPECT_EQ(t.numbers("x1"), (Numbers{0.5, 0, 0}));
  EXPECT_EQ(t.numbers("x2"), (Numbers{0, 7, 0}));
  EXPECT_EQ(t.numbers("x3"), (Numbers{-20, 0, 0}));
  EXPECT_EQ(t.line(0), 2);
  EXPECT_EQ(t.line(2), 5);
  EXPECT_EQ(read("1 1:2 2:3\n", {.columns = {"x2"}}).names(), Names{"x2"});
}

TEST_F(Svmlight, QueriesAndCountingFromZero) {
  const DataTable t = read("3 qid:1 0:1 1:2\n2 qid:7 1:5\n");
  EXPECT_EQ(t.names(), (Names{"y", "qid", "x0", "x1"}));
  EXPECT_EQ(t.numbers("qid"), (Numbers{1, 7}));
  EXPECT_EQ(t.numbers("x0"), (Numbers{1, 0}));
  EXPECT_EQ(t.numbers("x1"), (Numbers{2, 5}));
}

TEST_F(Svmlight, LinesOfAnyLength) {
  std::string text;
  for (int r = 0; r < 50; ++r) {
    text += std::to_string(r);
    for (int j = 1; j <= 1000 * (r % 7); ++j)
      text += " " + std::to_string(j) + ":" + std::to_string(j + r);
    text += "\n";
  }
  const DataTable t = read(text);
  ASSERT_EQ(t.rows, 50);
  ASSERT_EQ(t.columns.size(), 6001u);
  for (std::size_t r = 0; r < 50; ++r)
    for (std::size_t j = 1; j <= 6000; j += 100)
      ASSERT_EQ(t.columns[j].numbers[r], j <= 1000 * (r % 7) ? static_cast<double>(j + r) : 0);
}

TEST_F(Svmlight, EveryMistakeHasItsLineAndValue) {
  refuses("1 1:2\none 1:2\n", ", line 2: 'one' is not a number, which a label has to be");
  refuses("1 2:1 1:2\n", ", line 1: '1:2' comes after index 2; indices have to increase");
  refuses("1 1:1 1:2\n", "'1:2' comes after index 1");
  refuses("1 1:one\n", "'1:one' is not index:value with a number");
  refuses("1 1:nan\n", "'1:nan' is not index:value");
  refuses("1 2\n", "'2' is not index:value");
  refuses("1 a:2\n", "'a:2' has an index that is not a whole number");
  refuses("1 -1:2\n", "'-1:2' has an index");
  refuses("1 1.5:2\n", "'1.5:2' has an index");
  refuses("1 999999999:2\n", "has an index above 50000");
  refuses("1 99999999999999999999:2\n", "has an index that is not");
  refuses("1 qid:1 1:2\n1 1:2\n", ", line 2: '1' has no qid, and rows before it have");
  refuses("1 1:2\n1 qid:1 1:2\n", ", line 2: '1' has a qid, and rows before it have none");
  refuses("1 1:2 qid:3\n", "'qid:3' does not follow the label");
  refuses("", "has no rows");
  refuses("# nothing\n\n", "has no rows");
  refuses(std::string("1 1:2\n1 \0:2\n", 12), ", line 2: a zero byte");
  refuses("1 1:2\n" + std::string(10'500'000, '1'), ", line 2: more than 10000000 characters");
}

}  // namespace
}  // namespace affpcl
