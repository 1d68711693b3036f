#include "affpcl/table/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "affpcl/data/file_test.h"

namespace affpcl {
namespace {

class FrameTest : public FileTest {
 protected:
  FrameOptions options() const {
    FrameOptions o{.paths = {path}, .target = "y", .agent = ""};
    o.numeric = {"x"};  // the number of the row, else an id
    return o;
  }

  // Rows of b and a in turn; x is the number of the row.
  void write_rows(int count) const {
    std::string text = "agent,x,y,z\n";
    for (int r = 0; r < count; ++r)
      text += fmt::format("{},{},{},{}\n", r % 3 == 0 ? "b" : "a", r, r * r, 100 - 7 * r + r % 2);
    write(text);
  }
  static double mean(const double* v, std::size_t n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += v[k];
    return sum / static_cast<double>(n);
  }
  static double square(const double* v, std::size_t n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += v[k] * v[k];
    return sum / static_cast<double>(n);
  }
};

TEST_F(FrameTest, FoldsShareTheRowsOfEveryAgent) {
  write_rows(33);
  const Frame f = build_frame(options());
  EXPECT_EQ(f.agents, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(f.agent_rows(0), 22u);
  EXPECT_EQ(f.agent_rows(1), 11u);
  for (std::size_t i = 0; i < 2; ++i)
    for (int fold = 0; fold < kFolds; ++fold) {
      const std::size_t size = f.begin(i, fold + 1) - f.begin(i, fold);
      EXPECT_TRUE(size == f.agent_rows(i) / kFolds || size == f.agent_rows(i) / kFolds + 1) << size;
    }
  EXPECT_FALSE(std::is_sorted(f.X.begin() + 33, f.X.begin() + 33 + 22));
  EXPECT_EQ(f.encoding.names(), (std::vector<std::string>{"intercept", "x", "z"}));
}

TEST_F(FrameTest, ATableAtHandIsAsGoodAsAFile) {
  write_rows(33);
  const Frame file = build_frame(options());
  Tables tables;
  tables.parts.resize(1);
  tables.parts[0].path = "arrays";
  tables.parts[0].rows = 33;
  tables.first = {0};
  tables.rows = 33;
  tables.columns.resize(4);
  const char* const names[] = {"agent", "x", "y", "z"};
  for (std::size_t c = 0; c < 4; ++c) tables.columns[c].name = names[c];
  tables.columns[0].type = Column::Type::kText;
  tables.columns[0].levels = {"b", "a"};
  for (int r = 0; r < 33; ++r) {
    tables.columns[0].codes.push_back(r % 3 == 0 ? 0 : 1);
    const int numbers[] = {r, r * r, 100 - 7 * r + r % 2};
    for (std::size_t c = 0; c < 3; ++c) tables.columns[c + 1].numbers.push_back(numbers[c]);
  }
  Encoding encoding;
  encoding.target = "y";
  encoding.agent_column = "agent";
  const Frame f = build_frame(std::move(tables), encoding, options());
  EXPECT_EQ(f.agents, file.agents);
  EXPECT_EQ(f.starts, file.starts);
  EXPECT_EQ(f.X, file.X);
  EXPECT_EQ(f.Y, file.Y);
  EXPECT_EQ(f.files, std::vector<std::string>{"arrays"});
}

// The numbers of an agent's rows by fold: x tells rows apart.
std::vector<std::vector<double>> folds_of(const Frame& f, const std::string& agent) {
  const auto i = static_cast<std::size_t>(std::find(f.agents.begin(), f.agents.end(), agent) -
                                          f.agents.begin());
  const Source& x = f.encoding.sources[0];
  std::vector<std::vector<double>> folds(kFolds);
  for (int fold = 0; fold < kFolds; ++fold)
    for (std::size_t r = f.begin(i, fold); r < f.begin(i, fold + 1); ++r)
      folds[static_cast<std::size_t>(fold)].push_back(
          std::round(x.mean[0] + x.sd[0] * f.X[f.rows + r]));
  return folds;
}

TEST_F(FrameTest, FoldsDependOnTheAgentsOwnNameAndRowsAlone) {
  const auto table = [&](const std::string& other, bool third) {
    std::string text = "agent,x,y,z\n";
    for (int r = 0; r < 40; ++r) {
      text += (r % 2 == 0 ? "m" : other) + "," + std::to_string(r) + "," + std::to_string(r * r) +
              "," + std::to_string(r % 7) + "\n";
      if (third && r % 3 == 0) text += "b," + std::to_string(100 + r) + ",5,2\n";
    }
    write(text);
    return build_frame(options());
  };
  const auto want = folds_of(table("n", false), "m");
  for (std::size_t f = 0; f < kFolds; ++f) EXPECT_EQ(want[f].size(), 4u);
  EXPECT_EQ(folds_of(table("a", false), "m"), want);  // renamed, so that it comes first
  EXPECT_EQ(folds_of(table("n", true), "m"), want);   // one more agent
  FrameOptions o = options();
  o.seed = 2;
  EXPECT_NE(folds_of(build_frame(o), "m"), want);
}

// Else held-out rows would have the classes of the training rows more often than new rows have.
TEST_F(FrameTest, FoldsDoNotHaveEqualSharesOfTheClasses) {
  std::string text = "agent,x,y\n";
  for (int r = 0; r < 200; ++r)
    text += fmt::format("{},{},{}\n", r % 20, r, r / 20 % 2 == 0 ? "yes" : "no");
  write(text);
  const Frame f = build_frame(options());
  int uneven = 0;  // folds of two rows, of ten of which five are yes
  for (std::size_t i = 0; i < f.agents.size(); ++i)
    for (int fold = 0; fold < kFolds; ++fold)
      uneven += f.classes[f.begin(i, fold)] == f.classes[f.begin(i, fold) + 1];
  EXPECT_GE(uneven, 25);  // of 100; 44 are expected, 25 of them have probability .9999
}

TEST_F(FrameTest, DealingAgainMovesWholeRows) {
  write_rows(33);
  const Frame before = build_frame(options());
  Frame f = before;
  f.deal(1, 1);
  EXPECT_NE(f.X, before.X);
  const auto rows = [](const Frame& g) {  // agent, place, x, y
    std::vector<std::array<double, 4>> list;
    for (std::size_t i = 0; i < g.agents.size(); ++i)
      for (std::size_t r = g.begin(i, 0); r < g.begin(i + 1, 0); ++r)
        list.push_back(
            {static_cast<double>(i), static_cast<double>(g.places[r]), g.X[g.rows + r], g.Y[r]});
    std::sort(list.begin(), list.end());
    return list;
  };
  EXPECT_EQ(rows(f), rows(before));
  f.deal(1, 0);
  EXPECT_EQ(f.X, before.X);
  EXPECT_EQ(f.starts, before.starts);
}

TEST_F(FrameTest, RowsStayAsTheyCameIfAsked) {
  write_rows(33);
  const Frame f = build_frame(options(), *serial_team(), RowOrder::kAsTheyCame);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(f.begin(i, 1), f.begin(i + 1, 0));
    const double* const x = f.X.data() + f.rows;
    EXPECT_TRUE(std::is_sorted(x + f.begin(i, 0), x + f.begin(i + 1, 0)));
  }
  EXPECT_EQ(f.agent_rows(0), 22u);
  // The same numbers as in folds, up to their order.
  std::vector<double> ordered = f.X, dealt = build_frame(options()).X;
  std::sort(ordered.begin(), ordered.end());
  std::sort(dealt.begin(), dealt.end());
  for (std::size_t k = 0; k < ordered.size(); ++k) EXPECT_NEAR(ordered[k], dealt[k], 1e-12);
}

TEST_F(FrameTest, ChannelsStandInForTheTarget) {
  write_rows(30);
  FrameOptions o = options();
  o.target = "";
  o.channels = {"z", "y"};
  const Frame f = build_frame(o);
  EXPECT_EQ(f.channels, 2u);
  EXPECT_EQ(f.encoding.target, "");
  EXPECT_TRUE(f.encoding.classes.empty());
  EXPECT_EQ(f.encoding.names(), (std::vector<std::string>{"intercept", "x"}));
  ASSERT_EQ(f.Y.size(), 60u);
  ASSERT_EQ(f.encoding.sources.size(), 1u);
  const Source& x = f.encoding.sources[0];
  for (std::size_t k = 0; k < f.rows; ++k) {
    const double r = x.mean[0] + x.sd[0] * f.X[f.rows + k];
    EXPECT_NEAR(f.y_mean[0] + f.y_sd[0] * f.Y[k], 100 - 7 * r + std::fmod(std::round(r), 2), 1e-9);
    EXPECT_NEAR(f.y_mean[1] + f.y_sd[1] * f.Y[f.rows + k], r * r, 1e-9);
  }
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(mean(f.Y.data() + c * f.rows, f.rows), 0, 1e-12);
    EXPECT_NEAR(square(f.Y.data() + c * f.rows, f.rows), 1, 1e-12);
  }
}

TEST_F(FrameTest, ChannelsAreChecked) {
  const auto refuse = [&](const std::string& text, const std::string& what,
                          Missing missing = Missing::kError) {
    write(text);
    FrameOptions o = options();
    o.target = "";
    o.channels = {"u", "v"};
    o.missing = missing;
    refused([&] { build_frame(o); }, what);
  };
  refuse("agent,x,u\na,1,2\n", "has no column 'v'");
  refuse("agent,x,u,v\na,1,2,red\nb,2,3,blue\n",
         "line 2, column 'v': 'red' is not a number, which a channel has to be");
  refuse("agent,x,u,v\na,1,2,\nb,2,,1\n", "no row is left");
  refuse("agent,x,u,v\na,1,2,5\nb,2,3,5\n", "the target 'v' is 5 in every row");
  refuse("agent,x,u,v\na,1,2,\nb,2,,3\n", "no row is left", Missing::kDrop);
  write("agent,x,u,v\na,1,2,1\nb,2,3,\na,3,3,5\na,5,,5\na,2,2,2\n");
  FrameOptions o = options();
  o.target = "";
  o.channels = {"u", "v"};
  o.missing = Missing::kDrop;
  const Frame f = build_frame(o);
  EXPECT_EQ(f.rows, 3u);
  EXPECT_EQ(f.notes, (std::vector<std::string>{"2 rows have no target and were left out",
                                               "1 agent has no row left", "read as numbers: x"}));
  o.channels = {"u", "u"};
  EXPECT_THROW(build_frame(o), BadInput);
}

TEST_F(FrameTest, ATargetTooLargeToSquareIsRefused) {
  write("agent,x,y\na,1,1e200\na,2,-1e200\nb,3,5\n");
  refused([&] { build_frame(options()); }, "too large");
}

}  // namespace
}  // namespace affpcl
