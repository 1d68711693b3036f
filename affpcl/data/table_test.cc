// Whole tables: types, missing values, and complaints that name file, line, column and value.
#include "affpcl/data/table.h"

#include <sys/stat.h>

#include <thread>

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;
using Codes = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

class CsvTables : public FileTest {
 protected:
  DataTable read(const std::string& text, const TableOptions& options = {}) {
    write(text);
    return read_table(path, options);
  }
  void refuses(const std::string& text, const std::string& what, const TableOptions& options = {}) {
    refused([&] { read(text, options); }, what);
  }
};

TEST_F(CsvTables, ColumnsAreNumbersOrTexts) {
  const DataTable t = read("agent,x,y\nann,1,0.5\nbob, -2 ,\nann,+3e1,?\n");
  EXPECT_EQ(t.rows, 3);
  ASSERT_EQ(t.columns.size(), 3u);
  const Column& agent = t.column("agent");
  EXPECT_EQ(agent.type, Column::Type::kText);
  EXPECT_EQ(agent.codes, (Codes{0, 1, 0}));
  EXPECT_EQ(agent.levels, (Texts{"ann", "bob"}));
  EXPECT_TRUE(agent.numbers.empty());
  EXPECT_EQ(t.numbers("x"), (Numbers{1, -2, 30}));
  const Column& y = t.column("y");
  EXPECT_EQ(y.type, Column::Type::kNumber);
  EXPECT_EQ(y.missing, 2);
  EXPECT_EQ(y.numbers[0], 0.5);
  EXPECT_TRUE(std::isnan(y.numbers[1]) && std::isnan(y.numbers[2]));
  EXPECT_EQ(t.find("z"), nullptr);
}

TEST_F(CsvTables, ATextAfterNumbersMakesTheWholeColumnText) {
  const DataTable t = read("a,b,c\n01,NA,1\n,?,2\n2.50,x,\n01,y,4\nhm,NaN,5\n");
  const Column& a = t.column("a");
  EXPECT_EQ(a.levels, (Texts{"01", "2.50", "hm"}));  // as they were written
  EXPECT_EQ(a.codes, (Codes{0, -1, 1, 0, 2}));
  EXPECT_EQ(a.missing, 1);
  EXPECT_EQ(a.first_text, 4);
  const Column& b = t.column("b");
  EXPECT_EQ(b.codes, (Codes{-1, -1, 0, 1, -1}));
  EXPECT_EQ(b.missing, 3);
  EXPECT_EQ(t.column("c").missing, 1);
  EXPECT_EQ(t.numbers("c")[4], 5);
  refused([&] { t.numbers("a"); }, ", line 6, column 'a': 'hm' is not a number");
  refused([&] { t.numbers("b"); }, ", line 4, column 'b': 'x' is not a number");
}

TEST_F(CsvTables, AllMissingIsNumbers) {
  const DataTable t = read("a,b\n,1\nNA,2\n");
  EXPECT_EQ(t.column("a").type, Column::Type::kNumber);
  EXPECT_EQ(t.column("a").missing, 2);
}

TEST_F(CsvTables, OnlyTheColumnsWantedInTheOrderWanted) {
  const DataTable t = read("a,b,c\n1,x,3\n4,y,6\n", {.columns = {"c", "a"}, .number = {"c"}});
  ASSERT_EQ(t.columns.size(), 2u);
  EXPECT_EQ(t.columns[0].name, "c");
  EXPECT_EQ(t.columns[0].numbers, (Numbers{3, 6}));
  EXPECT_EQ(t.columns[1].numbers, (Numbers{1, 4}));
  refused([&] { t.column("cc"); }, "has no column 'cc'; did you mean 'c'?");
}

TEST_F(CsvTables, TextCanBeAskedFor) {
  const DataTable t = read("agent,x\n07,1\n7,2\n07,3\n", {.text = {"agent"}});
  EXPECT_EQ(t.column("agent").levels, (Texts{"07", "7"}));
  EXPECT_EQ(t.column("agent").codes, (Codes{0, 1, 0}));
  refused([&] { t.numbers("agent"); }, "column 'agent' was read as text");
}

TEST_F(CsvTables, RefusesTextWhereNumbersAreAskedFor) {
  refuses("a,b\n1,2\n\n3,\"1,5\"\n", ", line 4, column 'b': '1,5' is not a number",
          {.number = {"b"}});
  refuses("a\ninf\n", ", line 2, column 'a': 'inf' is not a number", {.number = {"a"}});
  refuses("a\n1\n", "'a' is asked for as text and as numbers", {.text = {"a"}, .number = {"a"}});
}

TEST_F(CsvTables, RefusesUnknownColumnsAndNoRows) {
  refuses("income,b\n1,2\n", "did you mean 'income'?", {.columns = {"incme"}});
  refuses("income,b\n1,2\n", "has no column 'height'; allowed: income, b", {.text = {"height"}});
  std::string wide = "x0";
  for (int i = 1; i < 1000; ++i) wide += ",x" + std::to_string(i);
  refuses(wide + "\n", "; its 1000 columns begin with x0, x1", {.columns = {"income"}});
  refuses("a,b\n\n", "has a header but no rows");
}

TEST_F(CsvTables, RowsKnowTheirLines) {
  const DataTable t = read("a,b\n1,x\n2,\"y\nz\"\n\n3,w\n4,v\n");
  for (int row = 0; row < 4; ++row)
    EXPECT_EQ(t.line(row), (std::vector<int>{2, 3, 6, 7}[static_cast<std::size_t>(row)]));
  EXPECT_EQ(t.line_breaks.size(), 2u);
}

TEST_F(CsvTables, ManyRows) {
  std::string text = "agent,x,id\n";
  for (int i = 0; i < 50'000; ++i)
    text += std::to_string(i / 10) + "," + std::to_string(100'000 + i) + ".5,u" +
            std::to_string(i * 7919 % 50'000) + "\n";
  const DataTable t = read(text, {.text = {"agent"}});
  ASSERT_EQ(t.rows, 50'000);
  EXPECT_EQ(t.column("agent").levels.size(), 5'000u);
  EXPECT_EQ(t.column("id").levels.size(), 50'000u);
  EXPECT_EQ(t.line_breaks.size(), 1u);
  for (std::size_t i = 0; i < 50'000; ++i) {
    ASSERT_EQ(t.column("agent").codes[i], static_cast<std::int32_t>(i / 10));
    ASSERT_EQ(t.numbers("x")[i], static_cast<double>(i) + 100'000.5);
    ASSERT_EQ(t.column("id").codes[i], static_cast<std::int32_t>(i));
  }
  EXPECT_LT(t.numbers("x").capacity(), 60'000u);  // no more than the data needs
}

TEST_F(CsvTables, APipeWillDoUnlessItMustBeReadTwice) {
  const auto through_pipe = [&](const std::string& text, const TableOptions& options) {
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { write(text); });
    try {
      const DataTable t = read_table(path, options);
      EXPECT_EQ(t.rows, 2);
      EXPECT_EQ(t.numbers("x"), (Numbers{1, 2}));
    } catch (...) {
      writer.join(), std::remove(path.c_str());
      throw;
    }
    writer.join(), std::remove(path.c_str());
  };
  through_pipe("agent,x\na,1\nb,2\n", {});
  through_pipe("agent,x\n1,1\nb,2\n", {.text = {"agent"}});
  refused([&] { through_pipe("agent,x\n1,1\nb,2\n", {}); },
          ", line 3, column 'agent': 'b' comes after numbers, and this input cannot be read twice");
}

}  // namespace
}  // namespace affpcl
