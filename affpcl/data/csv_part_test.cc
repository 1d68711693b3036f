// A CSV file cut anywhere: the parts together hold the rows of the whole, each with its line, and
// what is refused is refused in the same words.
#include "affpcl/data/csv_part.h"

#include <fmt/format.h>

#include <algorithm>

#include "affpcl/data/csv.h"
#include "affpcl/data/file_test.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr const char* kNasty =
    "\xEF\xBB\xBF\n name ,\"a \"\"b\"\"\"\r\n"
    "x,1\r\n"
    "\"two\r\nlines, \"\"quoted\"\"\n\",2\n"
    "\n  \r\n"
    "5\" pipe,\"\"\"\"\r"
    "\r\r\n"
    " \"spaced\" , \"\r\"\n"
    "\"\",\n"
    "\"a\n\n\nb\",\"\r\n\"\r\n"
    "last,";

class CsvPartTest : public FileTest {
 protected:
  // Each row with its line, and at last what was refused.
  static bool read(CsvReader& in, std::vector<std::string>& rows) {
    try {
      while (in.next()) {
        rows.push_back(fmt::format("{}:", in.line()));
        for (std::string_view f : in.fields()) rows.back() += fmt::format("[{}]", f);
      }
    } catch (const BadRows& e) {
      rows.insert(rows.end(), e.sentences.begin(), e.sentences.end());
      return !e.fatal;
    }
    return true;
  }
  std::vector<std::string> whole() const {
    std::vector<std::string> rows;
    CsvReader in(path);
    read(in, rows);
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  // The same, part after part. Cuts are places between the header and the end.
  std::vector<std::string> cut(std::vector<std::int64_t> cuts) const {
    std::vector<std::string> rows;
    CsvReader in(path);
    auto state = static_cast<std::size_t>(CsvState::kRecord);
    std::int64_t line = in.next_line(), from = in.position();
    cuts.push_back(in.size());
    for (std::int64_t to : cuts) {
      const CsvPassage p = csv_passage(path, {.separator = in.separator()}, from, to);
      if (p.record[state] >= 0) {
        CsvReader part(path);
        part.read_only({.begin = p.record[state], .line = line + p.lines_before[state], .end = to});
        if (!read(part, rows)) break;
      }
      line += p.lines;
      state = static_cast<std::size_t>(p.leaves[state]);
      from = to;
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  std::int64_t rows_begin() const { return CsvReader(path).position(); }
  std::int64_t size() const { return CsvReader(path).size(); }
};

TEST_F(CsvPartTest, AnyTwoCutsOfANastyFile) {
  write(kNasty);
  const std::vector<std::string> want = whole();
  ASSERT_EQ(want.size(), 7u);
  EXPECT_NE(std::find(want.begin(), want.end(), "3:[x][1]"), want.end());
  EXPECT_NE(std::find(want.begin(), want.end(), "20:[last][]"), want.end());
  for (std::int64_t a = rows_begin(); a <= size(); ++a)
    for (std::int64_t b = a; b <= size(); ++b) ASSERT_EQ(cut({a, b}), want) << a << " " << b;
}

TEST_F(CsvPartTest, EveryByteByItself) {
  write(kNasty);
  std::vector<std::int64_t> cuts;
  for (std::int64_t a = rows_begin(); a < size(); ++a) cuts.push_back(a);
  EXPECT_EQ(cut(cuts), whole());
}

TEST_F(CsvPartTest, LettersAtRandom) {
  constexpr std::string_view kLetters = "a1,,,\"\"\"\n\n\r \t";
  for (std::uint32_t file = 0; file < 300; ++file) {
    const auto draw = [&](std::uint32_t k, std::size_t below) {
      return static_cast<std::size_t>(
          uniform({.seed = 5, .replicate = 0, .step = file}, 0, Purpose::kSample, k) *
          static_cast<double>(below));
    };
    std::string text = "a,b\n";
    for (std::uint32_t k = 0; k < 40; ++k) text += kLetters[draw(k, kLetters.size())];
    write(text);
    const std::vector<std::string> want = whole();
    if (std::count_if(want.begin(), want.end(), [](const std::string& row) {
          return row.find("fields where") != std::string::npos;
        }) >= 10)
      continue;  // the rest is not read
    for (std::int64_t a = 4; a <= size(); a += 3)
      ASSERT_EQ(cut({a, std::min<std::int64_t>(size(), a + 7)}), want) << text;
  }
}

// Blocks without quotes are passed over at once.
TEST_F(CsvPartTest, LongFiles) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    std::string text = std::string("a,b") + end;
    for (int r = 0; r < 30000; ++r) {
      text += fmt::format("{},{}", r, r % 7000 == 3000 ? "\"in,\nquotes\"" : "plain");
      text += end;
    }
    write(text);
    const std::vector<std::string> want = whole();
    for (std::int64_t parts : {2, 3, 8}) {
      std::vector<std::int64_t> cuts;
      for (std::int64_t k = 1; k < parts; ++k) cuts.push_back(size() * k / parts);
      EXPECT_EQ(cut(cuts), want) << parts;
    }
  }
}

}  // namespace
}  // namespace affpcl
