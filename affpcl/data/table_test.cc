// Whole tables: types, missing values, and complaints that name file, line, column and value.
#include "affpcl/data/table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "affpcl/data/file_test.h"
#include "affpcl/data/inputs.h"

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
  refuses("a,b\n1,2\n\n3,\"1;5\"\n", ", line 4, column 'b': '1;5' is not a number",
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

TEST_F(CsvTables, APipeWillDoEvenWhereItIsReadTwice) {
  const auto through_pipe = [&](const std::string& text) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { write(text); });
    const DataTable t = read_table(path);
    writer.join(), std::remove(path.c_str());
    EXPECT_EQ(t.rows, 2);
    EXPECT_EQ(t.numbers("x"), (Numbers{1, 2}));
    return t.column("agent").levels;
  };
  EXPECT_EQ(through_pipe("agent,x\na,1\nb,2\n"), (Texts{"a", "b"}));
  EXPECT_EQ(through_pipe("agent,x\n1,1\nb,2\n"), (Texts{"1", "b"}));
}

TEST_F(CsvTables, WaitingForAPipeEndsWithAnInterruption) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::atomic<bool> stop{false};
  int end = -1;           // the writing end, which stays open
  std::thread soon([&] {  // once the pipe is being read
    while ((end = open(path.c_str(), O_WRONLY | O_NONBLOCK)) < 0) std::this_thread::yield();
    stop = true;
  });
  const InputScope inputs(&stop);
  EXPECT_THROW(read_table(path), Interrupted);
  soon.join(), close(end);
}

TEST_F(CsvTables, DecimalCommasAreFoundWithTheSeparator) {
  const Numbers want{1.5, -2.25};
  for (const char* text :
       {"a;x\nu;1,5\nv;-2,25\n", "a\tx\nu\t1,5\nv\t-2,25\n", "a|x\nu|1,5\nv|-2,25\n",
        "a,x\nu,\"1,5\"\nv,\"-2,25\"\n", "sep=;\na;x\nu;1,5\nv;-2,25\n",
        "# by us\n\na;x\nu;1,5\nv;-2,25\n", "a,x\nu,1.5\nv,-2.25\n"})
    EXPECT_EQ(read(text).numbers("x"), want) << text;
  EXPECT_EQ(read("a;x\nu;1.234,5\nv;2.000.000,25\n").numbers("x"), (Numbers{1234.5, 2000000.25}));
  EXPECT_EQ(read("# x,y\n1,2\n3,4\n").numbers("y"), (Numbers{2, 4}));  // as NumPy writes it
  refuses("a\tx\nu\t1,234\nv\t2,345\n", "column 'x': is '1,234' a number with decimals or");
  EXPECT_EQ(read("a\tx\nu\t1,234\n", {.reading = {.decimal = DecimalMark::kComma}}).numbers("x"),
            Numbers{1.234});
}

TEST_F(CsvTables, EncodingsAreFound) {
  const Texts want{"M\u00fcller", "\u00e9"};
  const auto levels = [&](const std::string& text) { return read(text).column("a").levels; };
  EXPECT_EQ(levels("a,x\nM\u00fcller,1\n\u00e9,2\n"), want);
  EXPECT_EQ(levels("a,x\nM\xFCller,1\n\xE9,2\n"), want);
  std::string little = "\xFF\xFE", big = "\xFE\xFF", bare;
  for (char32_t c : std::u32string(U"a,x\nM\u00fcller,1\n\u00e9,2\n")) {
    const char lo = static_cast<char>(c & 0xFF), hi = static_cast<char>(c >> 8);
    little += lo, little += hi, big += hi, big += lo, bare += lo, bare += hi;
  }
  EXPECT_EQ(levels(little), want);
  EXPECT_EQ(levels(big), want);
  EXPECT_EQ(levels(bare), want);
  std::string late = "a,x\n";
  for (int r = 0; r < 100'000; ++r) late += "plain,1\n";
  EXPECT_EQ(levels(late + "M\xFCller,1\n"), (Texts{"plain", "M\u00fcller"}));
  refuses("a,x\nM\u00fcller,1\nb\xE9,2\n", "line 3: column 'a': its bytes are no UTF-8");
  refuses("a,b\nM\xFCller,1\nb,\u00e9\n", "line 3: column 'b': its bytes are UTF-8, and others");
}

TEST_F(CsvTables, LinesToIgnoreAndWordsForMissing) {
  EXPECT_EQ(read("made by x\n1,2\na,x\nu,1\n", {.reading = {.skip = 2}}).numbers("x"), Numbers{1});
  EXPECT_EQ(read("a,x\n% no\nu,1\n%\n", {.reading = {.comment = "%"}}).numbers("x"), Numbers{1});
  EXPECT_EQ(read("x\n1\nN/A\nnull\nNone\n-\n.\n").column("x").missing, 5);
  EXPECT_EQ(read("x\n1\n-99\n", {.reading = {.na = "-99"}}).column("x").missing, 1);
  EXPECT_EQ(read("x\n9007199254740993\n1\n").column("x").type, Column::Type::kText);
}

TEST_F(CsvTables, RaggedRowsAreListed) {
  write("a,b\n1,2\n1\n3,4\n1,2,3\n");
  try {
    read_table(path);
    FAIL();
  } catch (const BadInput& e) {
    const std::string said = e.what();
    EXPECT_EQ(said.find("2 problems\n"), 0u) << said;
    EXPECT_NE(said.find("line 3: 1 fields"), std::string::npos) << said;
    EXPECT_NE(said.find("line 5: 3 fields"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace affpcl
