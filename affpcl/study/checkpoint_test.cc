#include "affpcl/study/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

Study study(const std::string& steps = "20") {
  return read_study("[problem]\nkind = \"gaussian\"\n[run]\nsteps = " + steps +
                        "\n[[method]]\nkind = \"independent\"\n",
                    "spec.toml");
}

TaskState state_of(std::size_t task, double value) { return {task, false, {5, {{value, 2}, {}}}}; }

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest()
      : folder_(fs::path(::testing::TempDir()) /
                ("affpcl_checkpoint_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  // `count` checkpoints, whose only task holds the number of its checkpoint.
  void write(int count) {
    Checkpoints checkpoints(folder_.string(), study(), false);
    for (int i = 1; i <= count; ++i) {
      TaskState task = state_of(3, i);
      checkpoints.write({&task});
    }
  }
  fs::path file(int number) const {
    return folder_ / ("checkpoint-" + std::to_string(number) + ".affpcl");
  }
  // What is read, by the number that `write` put there; with the notes.
  double found(const Study& of = study()) {
    notes_.clear();
    const std::vector<TaskState> tasks =
        Checkpoints(folder_.string(), of, true).read([&](const std::string& n) { notes_ += n; });
    return tasks.empty() ? 0 : tasks.at(0).state.numbers.at(0).at(0);
  }
  std::string complaint(const Study& of = study()) {
    try {
      found(of);
    } catch (const BadInput& e) {
      return e.what();
    }
    return "";
  }

  fs::path folder_;
  std::string notes_;
};

TEST_F(CheckpointTest, TheNewestIsReadAndTwoAreKept) {
  write(4);
  EXPECT_EQ(found(), 4);
  EXPECT_EQ(notes_, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
  EXPECT_TRUE(fs::exists(file(3)) && fs::exists(file(4)));
}

TEST_F(CheckpointTest, NoneIsABeginning) { EXPECT_EQ(found(), 0); }

TEST_F(CheckpointTest, AnyChangedByteIsNoticedAndTheOlderOneUsed) {
  write(2);
  const std::string whole = text_of(file(2));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file(2), std::ios::binary) << damaged;
    ASSERT_EQ(found(), 1) << "byte " << at;
    ASSERT_NE(notes_.find(file(2).string()), std::string::npos) << notes_;
    ASSERT_NE(notes_.find("going on from " + file(1).string()), std::string::npos) << notes_;
  }
}

TEST_F(CheckpointTest, AnyCutIsNoticed) {
  write(1);
  const std::string whole = text_of(file(1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(file(1), std::ios::binary) << whole.substr(0, size);
    ASSERT_NE(complaint(), "") << size << " bytes";
  }
}

TEST_F(CheckpointTest, AnotherStudyIsRefusedAndTheDifferenceNamed) {
  write(2);
  const std::string said = complaint(study("30"));
  EXPECT_NE(said.find("run.steps is 20 there and 30 here"), std::string::npos) << said;
  const std::string more = complaint(study("20\nseed = 5"));
  EXPECT_NE(more.find("run.seed is not set there and 5 here"), std::string::npos) << more;
  const std::string method =
      complaint(read_study(study().toml + "\n[[method]]\nkind = \"fedavg\"\n", "spec.toml"));
  EXPECT_NE(method.find(R"(method.1 is not set there and {"kind":"fedavg"} here)"),
            std::string::npos)
      << method;
}

TEST_F(CheckpointTest, AFolderWithCheckpointsIsNotBegunAnew) {
  write(1);
  EXPECT_THROW(Checkpoints(folder_.string(), study(), false), BadInput);
}

TEST_F(CheckpointTest, AFolderOfOtherThingsIsLeftAlone) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "thesis.tex") << "x";
  EXPECT_THROW(Checkpoints(folder_.string(), study(), true), BadInput);
  EXPECT_THROW(Checkpoints((folder_ / "thesis.tex").string(), study(), true), BadInput);
}

TEST(Task, AReplicateComesBackAsItWas) {
  Record r;
  r.steps = {1, 2};
  r.curve = {3, 4};
  r.agents = {{5, 6}, {7, 8}};
  r.mse = 9;
  r.agent_mse = {10, 11, 12};
  r.central_x = 13;
  r.central_theta = 14;
  r.diverged_at = -1;
  r.sent = 15;
  r.published = {16, 17};
  r.more = {18};
  r.solution = {19, 20};
  r.tallies = {{21, 22}};
  r.seconds = 23;
  const Replicate replicate{{r, Record{}}, 60, 7, {24, 25}};
  std::vector<double> numbers;
  append(state_of(1, 0), numbers);
  append(pack(2, replicate), numbers);
  std::span<const double> rest = numbers;
  EXPECT_FALSE(take(rest).finished);
  const TaskState task = take(rest);
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(task.task, 2);
  ASSERT_TRUE(task.finished);
  const Replicate back = unpack(task);
  EXPECT_EQ(back.steps, 60);
  EXPECT_EQ(back.number, 7);
  EXPECT_EQ(back.distance, replicate.distance);
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
  EXPECT_EQ((std::vector{b.diverged_at, b.sent, b.published.up, b.published.down}),
            (std::vector<std::int64_t>{-1, 15, 16, 17}));
  // Cut anywhere, it is noticed.
  for (std::size_t size = 1; size + 1 < numbers.size(); ++size) {
    std::span<const double> cut = std::span(numbers).first(size);
    EXPECT_THROW(
        {
          while (!cut.empty()) {
            const TaskState t = take(cut);
            if (t.task == 1 && cut.empty()) throw std::runtime_error("only the first");
          }
        },
        std::runtime_error)
        << size;
  }
}

}  // namespace
}  // namespace affpcl
