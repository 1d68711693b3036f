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

TaskState state_of(std::int64_t task, double value) {
  return {.task = task, .state = {5, {{"a", {value, 2}}, {"b", {}}}}};
}

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
      checkpoints.write({{3, pack(state_of(3, i))}});
    }
  }
  fs::path file(int number) const {
    return folder_ / ("checkpoint-" + std::to_string(number) + ".affpcl");
  }
  // What is read, by the number that `write` put there; with the notes.
  double found(const Study& of = study()) {
    notes_.clear();
    const std::vector<TaskState> tasks =
        Checkpoints(folder_.string(), of, true)
            .read([&](const std::string& n) { notes_ += n; },
                  [&](const std::vector<TaskState>& t) {
                    if (refuse_ > 0 && t.at(0).state.fields.at(0).numbers.at(0) == refuse_)
                      throw BadInput("it is refused");
                  });
    return tasks.empty() ? 0 : tasks.at(0).state.fields.at(0).numbers.at(0);
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
  double refuse_ = 0;  // the checkpoint that the check refuses
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

TEST_F(CheckpointTest, AnOlderOneIsUsedWhereTheCheckRefusesTheNewest) {
  write(2);
  refuse_ = 2;
  EXPECT_EQ(found(), 1);
  EXPECT_NE(notes_.find("checkpoint-2.affpcl cannot be used: it is refused"), std::string::npos)
      << notes_;
}

TEST_F(CheckpointTest, AnOlderFormatIsRefusedByItsVersion) {
  write(1);
  std::string text = text_of(file(1));
  const std::size_t at = text.find("\"version\":2");
  ASSERT_NE(at, std::string::npos) << text.substr(0, 300);
  text[at + 10] = '1';
  std::ofstream(file(1), std::ios::binary) << text;
  EXPECT_NE(complaint().find("it has format 1, and this affpcl reads format 2"), std::string::npos)
      << complaint();
}

}  // namespace
}  // namespace affpcl
