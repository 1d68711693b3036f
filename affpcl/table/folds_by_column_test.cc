#include "affpcl/table/folds_by_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

using Blocks = std::vector<std::size_t>;

Blocks blocks_of(const std::vector<double>& times) { return time_blocks(times, 5); }

TEST(TimeBlocks, AreThoseOfTimeSeriesSplit) {
  std::vector<double> times;
  for (int r = 0; r < 12; ++r) times.push_back(r);
  EXPECT_EQ(blocks_of(times), (Blocks{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
  times.resize(10);
  EXPECT_EQ(blocks_of(times), (Blocks{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(TimeBlocks, OfFewRowsAreTheLast) {
  EXPECT_EQ(blocks_of({1}), (Blocks{0}));
  EXPECT_EQ(blocks_of({1, 2}), (Blocks{0, 4}));
  EXPECT_EQ(blocks_of({1, 2, 3}), (Blocks{0, 3, 4}));
  EXPECT_EQ(blocks_of({1, 2, 3, 4, 5}), (Blocks{0, 1, 2, 3, 4}));
}

TEST(TimeBlocks, KeepRowsOfOneTimeTogether) {
  EXPECT_EQ(blocks_of({1, 2, 2, 2, 5, 6, 7, 8, 9, 9}), (Blocks{0, 0, 0, 0, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(blocks_of({3, 3, 3}), (Blocks{0, 0, 0}));
}

class FoldsByColumn : public FileTest {
 protected:
  // Rows of a and b in turn; x is the number of the row, `day` goes backwards, `fold` is a, b or c.
  Frame frame(const FrameOptions& more, const std::string& extra = "") const {
    std::string text = "agent,x,day,fold,y\n";
    for (int r = 0; r < 24; ++r)
      text += fmt::format("{},{},{},{},{}\n", "ab"[r % 2], r, 100 - r, "cab"[r % 3], r * r);
    write(text + extra);
    FrameOptions o = more;
    o.paths = {path}, o.target = "y", o.exclude = {"fold", "day"};
    o.numeric = {"x"};  // else an id
    return build_frame(o);
  }
  // The x of each of an agent's rows.
  static std::vector<double> numbers(const Frame& f, std::size_t from, std::size_t to) {
    const Source& s = f.encoding.sources[0];
    std::vector<double> x;
    for (std::size_t r = from; r < to; ++r)
      x.push_back(std::round(s.mean[0] + s.sd[0] * f.X[f.rows + r]));
    return x;
  }
};

FrameOptions by(const char* folds, const char* time) {
  FrameOptions o{.paths = {}, .target = {}, .agent = {}};
  o.folds = folds, o.time = time;
  return o;
}

TEST_F(FoldsByColumn, AreInTheOrderOfTheirNames) {
  const Frame f = frame(by("fold", ""));
  EXPECT_EQ(f.folds(), 3);
  EXPECT_EQ(f.encoding.dim(), 2u);
  EXPECT_EQ(numbers(f, f.begin(0, 0), f.begin(0, 1)), (std::vector<double>{4, 10, 16, 22}));
  EXPECT_EQ(numbers(f, f.begin(1, 2), f.begin(2, 0)), (std::vector<double>{3, 9, 15, 21}));
  const auto [before, after] = f.training(0, 1);
  EXPECT_EQ(before.from, f.begin(0, 0));
  EXPECT_EQ(before.to, f.begin(0, 1));
  EXPECT_EQ(after.from, f.begin(0, 2));
  EXPECT_EQ(after.to, f.begin(1, 0));
}

TEST_F(FoldsByColumn, BlocksAreLearntFromThoseBefore) {
  const Frame f = frame(by("", "day"));
  EXPECT_EQ(f.folds(), 5);
  EXPECT_EQ(numbers(f, f.begin(0, 0), f.begin(0, 1)), (std::vector<double>{22, 20, 18, 16}));
  EXPECT_EQ(numbers(f, f.begin(0, 4), f.begin(1, 0)), (std::vector<double>{2, 0}));
  const auto [before, after] = f.training(0, 2);
  EXPECT_EQ(before.to, f.begin(0, 2));
  EXPECT_EQ(after.from, after.to);
  EXPECT_EQ(f.training(0, kAllRows)[0].to, f.begin(1, 0));
}

TEST_F(FoldsByColumn, AreRefusedInOneSentence) {
  refused([&] { frame(by("flod", "")); }, "'flod'");
  refused([&] { frame(by("fold", ""), "a,1,2,,3\n"); }, "line 26, column 'fold'");
  EXPECT_THROW(frame(by("y", "")), BadInput);
  refused([&] { frame(by("", "day"), "a,1,,c,3\n"); }, "line 26, column 'day'");
  refused([&] { frame(by("", "fold")); }, "neither a number nor a date");
}

}  // namespace
}  // namespace affpcl
