#include "affpcl/fit/arrays.h"

#include <fmt/format.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/data/file_test.h"
#include "affpcl/output/model_file.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr std::size_t kAgents = 12, kRows = 10, kColumns = 2;

// Rows of agents whose coefficients differ, with whole weights from 0 to 3 and an offset.
struct World {
  World() {
    for (std::size_t i = 0; i < kAgents; ++i)
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto draw = [&](std::uint32_t k) {
          return normal({.seed = 1, .replicate = 0, .step = static_cast<std::uint32_t>(r)},
                        static_cast<std::int64_t>(i), Purpose::kSample, k);
        };
        groups.push_back(fmt::format("a{}", i));
        const double own = 0.1 * static_cast<double>(i);
        X.insert(X.end(), {draw(0), draw(1)});
        y.push_back((1 + own) * draw(0) - draw(1) + own + draw(2));
        offset.push_back(draw(3));
        weight.push_back(static_cast<double>((i + 3 * r) % 4));
      }
  }
  // Each row as often as its weight says.
  World repeated() const {
    World w = *this;
    w.X.clear(), w.y.clear(), w.groups.clear(), w.offset.clear();
    for (std::size_t r = 0; r < y.size(); ++r)
      for (double k = 0; k < weight[r]; ++k) {
        w.X.insert(w.X.end(), {X[r * kColumns], X[r * kColumns + 1]});
        w.y.push_back(y[r]), w.groups.push_back(groups[r]), w.offset.push_back(offset[r]);
      }
    return w;
  }
  std::vector<double> X, y, weight, offset;
  std::vector<std::string> groups;
};

const FitOptions kUnscored = [] {
  FitOptions o;
  o.score = false, o.threads = 1;
  return o;
}();

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], tolerance) << j;
}

TEST(Arrays, ARowOfWeightWIsWRows) {
  const World world, copies = world.repeated();
  const Model weighted =
      fit(world.X, world.y, world.groups, kUnscored, {.row_weight = world.weight}).model;
  const Model repeated = fit(copies.X, copies.y, copies.groups, kUnscored).model;
  const ChannelModel &a = weighted.channels[0], &b = repeated.channels[0];
  expect_near(a.centre.x, b.centre.x, 1e-10);
  expect_near(a.centre.se, b.centre.se, 1e-10);
  expect_near(a.D, b.D, 1e-10);
  EXPECT_NEAR(a.centre.s2, b.centre.s2, 1e-10);
  EXPECT_EQ(weighted.encoding.row_weight, "row_weight");
}

TEST(Arrays, AnOffsetIsSubtractedFromANumberAndPredicted) {
  const World world;
  const Model plain = fit(world.X, world.y, world.groups, kUnscored).model;
  std::vector<double> moved = world.y;
  for (std::size_t r = 0; r < moved.size(); ++r) moved[r] += world.offset[r];
  const Model model = fit(world.X, moved, world.groups, kUnscored, {.offset = world.offset}).model;
  expect_near(model.channels[0].centre.x, plain.channels[0].centre.x, 1e-10);
  std::vector<double> want = predict(plain, world.X, world.groups);
  for (std::size_t r = 0; r < want.size(); ++r) want[r] += world.offset[r];
  expect_near(predict(model, world.X, world.groups, world.offset), want, 1e-10);
  EXPECT_THROW(predict(model, world.X, world.groups), BadInput);
  const Model back = parse_model(model_json(model), "model");
  EXPECT_EQ(predict(back, world.X, world.groups, world.offset),
            predict(model, world.X, world.groups, world.offset));
}

TEST(Arrays, AnOffsetMayExplainTheTarget) {
  const World world;
  std::vector<double> y = world.offset;
  for (double& v : y) v += 2;
  const FitResult result = fit(world.X, y, world.groups, {.threads = 1}, {.offset = world.offset});
  EXPECT_TRUE(result.scored);
  expect_near(predict(result.model, world.X, world.groups, world.offset), y, 1e-6);
  EXPECT_NEAR(result.loss.chosen, 0, 1e-10);
}

TEST(Arrays, RefusesWhatDoesNotFit) {
  const World world;
  const std::vector<double> few(3, 1.0), negative(world.y.size(), -1.0);
  EXPECT_THROW(fit(world.X, world.y, world.groups, kUnscored, {.row_weight = few}), BadInput);
  EXPECT_THROW(fit(world.X, world.y, world.groups, kUnscored, {.row_weight = negative}), BadInput);
  EXPECT_THROW(fit(world.X, world.y, world.groups, kUnscored, {.offset = few}), BadInput);
  Arrays named = arrays_of(world.X, world.groups);
  named.columns[1] = "y";
  EXPECT_THROW(fit(named, {.values = world.y}, kUnscored), BadInput);
}

class TableTest : public FileTest {};

// Texts, numbers that name agents, dates: a table in memory is a file of the same columns.
TEST_F(TableTest, ATableInMemoryIsAFile) {
  std::string text = "shop,colour,day,size,sales\n";
  DataTable table;
  table.path = "table", table.rows = 120;
  table.columns.resize(5);
  const char* const names[] = {"shop", "colour", "day", "size", "sales"};
  const char* const colours[] = {"red", "green", "blue"};
  for (std::size_t c = 0; c < 5; ++c) table.columns[c].name = names[c];
  for (std::size_t c : {1u, 2u}) table.columns[c].type = Column::Type::kText;
  table.columns[1].levels = {"red", "green", "blue"};
  for (int k = 0; k < 28; ++k)
    table.columns[2].levels.push_back(fmt::format("2026-02-{:02}", k + 1));
  for (int r = 0; r < 120; ++r) {
    const double shop = r % 8, size = r * 37 % 11, sales = r * 13 % 17 + 2 * (r % 3) + shop;
    table.columns[0].numbers.push_back(shop);
    table.columns[1].codes.push_back(r % 3);
    table.columns[2].codes.push_back(r * 5 % 28);
    table.columns[3].numbers.push_back(size);
    table.columns[4].numbers.push_back(sales);
    text += fmt::format("{},{},2026-02-{:02},{},{}\n", shop, colours[r % 3], r * 5 % 28 + 1, size,
                        sales);
  }
  write(text);
  FitOptions o = kUnscored;
  o.frame.target = "sales", o.frame.agent = "shop";
  Model in_memory = fit(table, o).model;
  o.frame.paths = {path};
  const Model from_file = fit(o).model;
  EXPECT_EQ(in_memory.files, std::vector<std::string>{"table"});
  in_memory.files = from_file.files;
  in_memory.encoding.reading = from_file.encoding.reading;
  EXPECT_EQ(model_json(in_memory), model_json(from_file));
  std::string csv = predict(from_file, {path}).csv;
  write(csv);
  const std::vector<double> want = read_table(path).numbers("prediction");
  std::vector<double> found(120);
  each_row(in_memory, table, [&](const RowPredictor& rows, const EncodedRow& at) {
    found[at.row] = rows.number(at.agent, at.x, at.offsets);
  });
  EXPECT_EQ(found, want);
  table.columns[3].name = "width";
  EXPECT_THROW(each_row(in_memory, table, [](const RowPredictor&, const EncodedRow&) {}), BadInput);
}

}  // namespace
}  // namespace affpcl
