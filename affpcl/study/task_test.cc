// Tasks as bytes, and what is refused of forged ones: a checksum proves nothing about the content.
#include "affpcl/study/task.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "affpcl/base/error.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

Record example() {
  Record r;
  r.steps = {1, 2};
  r.curve = {3, 4};
  r.agents = {{5, 6}, {7, 8}};
  r.mse = 9;
  r.agent_mse = {10, 11, 12};
  r.central_x = 13;
  r.central_theta = 14;
  r.sent = 15;
  r.up = 15.5;
  r.down = 14.5;
  r.present = 0.5;
  r.published = {16, 17};
  r.more = {18};
  r.solution = {19, 20};
  r.tallies = {{21, 22}};
  r.seconds = 23;
  return r;
}

TEST(Task, AReplicateComesBackAsItWas) {
  const Record r = example();
  Bytes bytes;
  append(pack({.task = 1, .state = {5, {{"x", {1, 2}}}}}), bytes);
  append(pack({.task = 2, .finished = true, .replicate = {{r, Record{}}, 60, 7, {24, 25}}}), bytes);
  const std::vector<TaskState> tasks = unpack_all(bytes);
  ASSERT_EQ(tasks.size(), 2);
  EXPECT_FALSE(tasks[0].finished);
  EXPECT_EQ(tasks[0].state.step, 5);
  EXPECT_EQ(tasks[0].state.fields.at(0).name, "x");
  EXPECT_EQ(tasks[0].state.fields.at(0).numbers, (std::vector<double>{1, 2}));
  EXPECT_EQ(tasks[1].task, 2);
  ASSERT_TRUE(tasks[1].finished);
  const Replicate& back = tasks[1].replicate;
  EXPECT_EQ(back.steps, 60);
  EXPECT_EQ(back.number, 7);
  EXPECT_EQ(back.distance, (std::vector<double>{24, 25}));
  ASSERT_EQ(back.records.size(), 2);
  const Record& b = back.records[0];
  EXPECT_EQ(b.steps, r.steps);
  EXPECT_EQ(b.curve, r.curve);
  EXPECT_EQ(b.agents, r.agents);
  EXPECT_EQ(b.agent_mse, r.agent_mse);
  EXPECT_EQ(b.more, r.more);
  EXPECT_EQ(b.solution, r.solution);
  EXPECT_EQ(b.tallies, r.tallies);
  EXPECT_EQ((std::vector{b.mse, b.central_x, b.central_theta, b.seconds}),
            (std::vector<double>{9, 13, 14, 23}));
  EXPECT_EQ((std::vector{b.up, b.down, b.present}), (std::vector<double>{15.5, 14.5, 0.5}));
  EXPECT_EQ((std::vector{b.diverged_at, b.sent, b.published.up, b.published.down}),
            (std::vector<std::int64_t>{-1, 15, 16, 17}));
}

TEST(Task, AnyCutIsRefused) {
  const Bytes bytes = pack({.finished = true, .replicate = {{example()}, 60, 7, {24}}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_THROW(unpack(std::span(bytes).first(size)), BadInput) << size;
}

// A study that was stopped: a finished task and one under way. Its checkpoint is forged, with a
// right checksum, and the study is resumed from it.
class ForgedTest : public ::testing::Test {
 protected:
  ForgedTest()
      : folder_(fs::path(::testing::TempDir()) /
                (std::string("affpcl_forged_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    std::atomic<bool> stop{false};
    StudyOptions o = options();
    o.resume = false;
    o.every = 10;
    o.stop = &stop;
    o.progress = [&](double done) { stop = done > 0.7; };
    run_study(study(), o);
    for (const auto& entry : fs::directory_iterator(folder_)) files_.push_back(entry.path());
    std::sort(files_.begin(), files_.end());
    while (files_.size() > 1) fs::remove(files_.front()), files_.erase(files_.begin());
    std::ifstream in(files_.at(0), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t line = text.find('\n') + 1;
    head_ = text.substr(0, line);
    const auto* first = reinterpret_cast<const std::byte*>(text.data()) + line;
    tasks_ = unpack_all({first, text.size() - line - 8});
  }
  ~ForgedTest() override { fs::remove_all(folder_); }

  static Study study() {
    return read_study(R"(
[problem]
kind = "sarsa"
agents = 3
states = 4
[run]
steps = 40
replicates = 2
curve_agents = [0, 2]
[[method]]
kind = "affpcl"
ratio = "policy"
[[method]]
kind = "independent"
)",
                      "spec.toml");
  }
  StudyOptions options() const {
    StudyOptions o;
    o.threads = 1;
    o.checkpoint = folder_.string();
    o.every = 1000;
    o.resume = true;
    return o;
  }

  void write(const Bytes& bytes) const {
    std::string text = head_;
    const std::string key = "\"bytes\":";
    const std::size_t at = text.find(key) + key.size(), end = text.find_first_of(",}", at);
    text.replace(at, end - at, std::to_string(bytes.size()));
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const XXH64_hash_t hash = XXH3_64bits(text.data(), text.size());
    text.append(reinterpret_cast<const char*>(&hash), sizeof hash);
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
    std::ofstream(files_[0], std::ios::binary) << text;
  }
  // Why the study refuses these tasks; empty where it goes on.
  std::string complaint(const std::vector<TaskState>& tasks) const {
    Bytes bytes;
    for (const TaskState& t : tasks) append(pack(t), bytes);
    return complaint(bytes);
  }
  std::string complaint(const Bytes& bytes) const {
    write(bytes);
    try {
      run_study(study(), options());
    } catch (const BadInput& e) {
      return e.what();
    }
    return "";
  }
  void expect_refused(const char* what, const std::function<void(TaskState&, TaskState&)>& forge) {
    std::vector<TaskState> tasks = tasks_;
    ASSERT_EQ(tasks.size(), 2);
    ASSERT_TRUE(tasks[0].finished && !tasks[1].finished);
    forge(tasks[0], tasks[1]);
    EXPECT_NE(complaint(tasks), "") << what;
  }

  fs::path folder_;
  std::vector<fs::path> files_;
  std::string head_;
  std::vector<TaskState> tasks_;
};

TEST_F(ForgedTest, AsItWasItIsAccepted) { EXPECT_EQ(complaint(tasks_), ""); }

TEST_F(ForgedTest, FinishedTasksOfOtherSizesAreRefused) {
  using T = TaskState;
  expect_refused("task", [](T& t, T&) { t.task = 2; });
  expect_refused("twice", [](T& t, T& u) { t.task = u.task; });
  expect_refused("number", [](T& t, T&) { t.replicate.number = 1; });
  expect_refused("steps", [](T& t, T&) { t.replicate.steps = 39; });
  expect_refused("distance", [](T& t, T&) { t.replicate.distance.pop_back(); });
  expect_refused("no records", [](T& t, T&) { t.replicate.records.clear(); });
  expect_refused("records", [](T& t, T&) { t.replicate.records.emplace_back(); });
  const auto of_record = [&](const char* what, const std::function<void(Record&)>& forge) {
    for (std::size_t m = 0; m < 2; ++m)
      expect_refused(what, [&](T& t, T&) { forge(t.replicate.records[m]); });
  };
  of_record("diverged", [](Record& r) { r.diverged_at = 41; });
  of_record("never diverged", [](Record& r) { r.diverged_at = -2; });
  of_record("sent", [](Record& r) { r.sent = -1; });
  of_record("up", [](Record& r) { r.up = -1; });
  of_record("down", [](Record& r) { r.down = std::nan(""); });
  of_record("present", [](Record& r) { r.present = 1.5; });
  of_record("published", [](Record& r) { r.published.up = -1; });
  of_record("steps of the curve", [](Record& r) { r.steps.pop_back(); });
  of_record("another step", [](Record& r) { r.steps[1] = 0.5; });
  of_record("NaN", [](Record& r) { r.steps[1] = std::nan(""); });
  of_record("curve", [](Record& r) { r.curve.pop_back(); });
  of_record("curve of an agent", [](Record& r) { r.agents[1].push_back(1); });
  of_record("curves", [](Record& r) { r.agents.pop_back(); });
  of_record("agents", [](Record& r) { r.agent_mse.pop_back(); });
  of_record("more", [](Record& r) { r.more.push_back(1); });
  of_record("solution", [](Record& r) { r.solution.push_back(1); });
  of_record("tallies", [](Record& r) { r.tallies.emplace_back(); });
  expect_refused("a tally", [](T& t, T&) { t.replicate.records[0].tallies.at(0).pop_back(); });
}

TEST_F(ForgedTest, StatesOfOtherSizesAreRefused) {
  using T = TaskState;
  for (const std::int64_t step : {std::int64_t{-1}, std::int64_t{41}, INT64_MAX})
    expect_refused("step", [&](T&, T& t) { t.state.step = step; });
  expect_refused("no fields", [](T&, T& t) { t.state.fields.clear(); });
  expect_refused("one more", [](T&, T& t) { t.state.fields.push_back({"x", {}}); });
  const std::size_t fields = tasks_.at(1).state.fields.size();
  ASSERT_GT(fields, 10);
  for (std::size_t f = 0; f < fields; ++f) {
    const std::string name = tasks_[1].state.fields[f].name;
    const auto of_field = [&](const std::function<void(RunState::Field&)>& forge) {
      expect_refused(name.c_str(), [&](T&, T& t) { forge(t.state.fields[f]); });
    };
    of_field([](RunState::Field& field) { field.name += "x"; });
    of_field([](RunState::Field& field) { field.numbers.push_back(0); });
    if (!tasks_[1].state.fields[f].numbers.empty())
      of_field([](RunState::Field& field) { field.numbers.pop_back(); });
  }
}

TEST_F(ForgedTest, IndicesAndStepsThatAreNoneAreRefused) {
  using T = TaskState;
  const auto set = [&](const std::string& name, std::size_t at, double value) {
    expect_refused((name + " = " + std::to_string(value)).c_str(), [&](T&, T& t) {
      const auto field = std::find_if(t.state.fields.begin(), t.state.fields.end(),
                                      [&](const RunState::Field& f) { return f.name == name; });
      ASSERT_NE(field, t.state.fields.end()) << name;
      field->numbers.at(at) = value;
    });
  };
  for (const double value : {-1.0, 0.5, 1e9, 1e300, std::nan(""), HUGE_VAL}) {
    set("world0", 0, value);           // state
    set("world1", kLanes, value);      // action
    set("affpcl.progress", 0, value);  // steps of the tail
    set("affpcl.progress", 5, value);  // where it diverged
    set("affpcl.steps", 0, value);
  }
}

// Bytes all over the file: the study goes on with other numbers, or refuses. (A crash ends the
// test.)
TEST_F(ForgedTest, AForgedByteIsANumberOrRefused) {
  Bytes bytes;
  for (const TaskState& t : tasks_) append(pack(t), bytes);
  constexpr std::size_t kTried = 400;
  std::size_t refused = 0;
  for (std::size_t k = 0; k < kTried; ++k) {
    Bytes forged = bytes;
    forged[k * 7919 % bytes.size()] ^= std::byte{0xff};
    refused += complaint(forged).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, kTried);
}

}  // namespace
}  // namespace affpcl
