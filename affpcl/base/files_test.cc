#include "affpcl/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

// A folder of the test's own, removed at its end.
class Files : public ::testing::Test {
 protected:
  Files() { fs::create_directories(root); }
  ~Files() override { fs::remove_all(root); }

  std::string at(const std::string& name) const { return (root / name).string(); }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // Everything below the folder, by relative name.
  std::set<std::string> all() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root))
      names.insert(fs::relative(entry.path(), root).string());
    return names;
  }
  using Names = std::set<std::string>;

  const fs::path root = fs::path(::testing::TempDir()) /
                        ("affpcl_files_" + std::to_string(getpid()) + "_" +
                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Files, WriteFileWritesAndReplaces) {
  write_file(at("a"), "one\n");
  EXPECT_EQ(read(at("a")), "one\n");
  write_file(at("a"), std::string_view("t\0o", 3));
  EXPECT_EQ(read(at("a")), std::string("t\0o", 3));
  EXPECT_EQ(all(), (Names{"a"}));  // no temporary name is left
}

TEST_F(Files, WriteFileThatCannotBeWrittenLeavesNothing) {
  write_file(at("file"), "x");
  fs::create_directories(at("folder/inside"));
  for (const std::string& bad :
       {at("file/below"), at("nowhere/a"), at("folder"), std::string("/proc/a")}) {
    try {
      write_file(bad, "y");
      FAIL() << bad;
    } catch (const Failure& e) {
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(all(), (Names{"file", "folder", "folder/inside"}));
  EXPECT_EQ(read(at("file")), "x");
}

TEST(CsvField, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_field("affpcl"), "affpcl");
  EXPECT_EQ(csv_field("affpcl, no correction"), "\"affpcl, no correction\"");
  EXPECT_EQ(csv_field("the \"best\""), "\"the \"\"best\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST_F(Files, AFolderAppearsOnlyWhenItIsWhole) {
  {
    ResultFolder folder(at("out"), false);
    folder.add("summary.json", "{}");
    folder.add("curves.csv", "a,b\n");
    EXPECT_FALSE(fs::exists(at("out")));
    folder.commit();
    EXPECT_EQ(all(), (Names{"out", "out/summary.json", "out/curves.csv"}));
  }
  EXPECT_EQ(read(at("out/curves.csv")), "a,b\n");
  EXPECT_EQ(all(), (Names{"out", "out/summary.json", "out/curves.csv"}));
}

TEST_F(Files, NothingIsLeftWithoutCommit) {
  {
    ResultFolder folder(at("out"), false);
    folder.add("summary.json", "{}");
  }
  EXPECT_EQ(all(), Names{});
}

// Folders above it that had to be made go away with it.
TEST_F(Files, NothingIsLeftWithoutCommitNotEvenParents) {
  {
    ResultFolder folder(at("new/deep/out"), false);
    folder.add("summary.json", "{}");
  }
  EXPECT_EQ(all(), Names{});
}

TEST_F(Files, ParentsAreMade) {
  ResultFolder folder(at("new/deep/out"), false);
  folder.add("summary.json", "{}");
  folder.commit();
  EXPECT_TRUE(fs::exists(at("new/deep/out/summary.json")));
}

TEST_F(Files, ASlashAtTheEndChangesNothing) {
  ResultFolder folder(at("out") + "//", false);
  folder.add("summary.json", "{}");
  folder.commit();
  EXPECT_EQ(all(), (Names{"out", "out/summary.json"}));
}

TEST_F(Files, AnExistingFolderIsLeftAlone) {
  fs::create_directories(at("out"));
  write_file(at("out/summary.json"), "old");
  try {
    ResultFolder folder(at("out"), false);
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find(at("out")), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("force"), std::string::npos);
  }
  EXPECT_EQ(read(at("out/summary.json")), "old");
  EXPECT_EQ(all(), (Names{"out", "out/summary.json"}));
}

TEST_F(Files, ForceReplacesAResultFolder) {
  fs::create_directories(at("out"));
  write_file(at("out/summary.json"), "old");
  write_file(at("out/curves.csv"), "old");
  ResultFolder folder(at("out"), true);
  folder.add("summary.json", "new");
  EXPECT_EQ(read(at("out/summary.json")), "old");  // until the new one is whole
  folder.commit();
  EXPECT_EQ(read(at("out/summary.json")), "new");
  EXPECT_EQ(all(), (Names{"out", "out/summary.json"}));
}

TEST_F(Files, ForceKeepsTheFilesOfTheUser) {
  fs::create_directories(at("out/notes"));
  write_file(at("out/summary.json"), "old");
  write_file(at("out/figure.pdf"), "mine");
  write_file(at("out/notes/a.txt"), "mine too");
  ResultFolder folder(at("out"), true);
  folder.add("summary.json", "new");
  folder.commit();
  EXPECT_EQ(read(at("out/summary.json")), "new");
  EXPECT_EQ(read(at("out/figure.pdf")), "mine");
  EXPECT_EQ(read(at("out/notes/a.txt")), "mine too");
  EXPECT_EQ(all(),
            (Names{"out", "out/summary.json", "out/figure.pdf", "out/notes", "out/notes/a.txt"}));
}

// A process that was killed holds no lock; one that lives does.
TEST_F(Files, WhatKilledProcessesLeftIsRemoved) {
  fs::create_directories(at("out.999999999.part"));
  write_file(at("out.999999999.part/summary.json"), "half");
  write_file(at("table.csv.999999999.part"), "half");
  write_file(at("out.mine.part"), "the user's");
  const ResultFolder living(at("other"), false);
  ResultFolder folder(at("out"), false);
  write_file(at("table.csv"), "a\n");
  ResultFolder again(at("third"), false);
  folder.add("summary.json", "{}");
  folder.commit();
  const std::string own = "." + std::to_string(getpid()) + ".part";
  EXPECT_EQ(all(), (Names{"other" + own, "out", "out/summary.json", "out.mine.part", "table.csv",
                          "third" + own}));
}

// It was killed after the two folders had changed names.
TEST_F(Files, AKillWhileAFolderIsReplacedLosesNothingOfTheUser) {
  fs::create_directories(at("out"));
  write_file(at("out/summary.json"), "new");
  fs::create_directories(at("out.999999999.part/notes"));
  write_file(at("out.999999999.part/summary.json"), "old");
  write_file(at("out.999999999.part/notes/a.txt"), "mine");
  { ResultFolder folder(at("out"), true); }
  EXPECT_EQ(read(at("out/summary.json")), "new");
  EXPECT_EQ(read(at("out/notes/a.txt")), "mine");
  EXPECT_EQ(all(), (Names{"out", "out/summary.json", "out/notes", "out/notes/a.txt"}));
}

TEST_F(Files, WhatIsNewIsNotReplacedByWhatWasThere) {
  fs::create_directories(at("out"));
  for (const char* name : {"out/summary.json", "out/ledger.json", "out/of-a-later-version.json"})
    write_file(at(name), "old");
  ResultFolder folder(at("out"), true);
  for (const char* name : {"summary.json", "ledger.json", "of-a-later-version.json"})
    folder.add(name, "new");
  folder.commit();
  for (const char* name : {"out/summary.json", "out/ledger.json", "out/of-a-later-version.json"})
    EXPECT_EQ(read(at(name)), "new");
}

TEST_F(Files, TheFolderOfALivingProcessStays) {
  const std::string busy = at("out.999999999.part");
  fs::create_directories(busy);
  const OwnedFile lock(busy, O_RDONLY);
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  { ResultFolder folder(at("out"), false); }
  EXPECT_TRUE(fs::exists(busy));
}

TEST_F(Files, ForceWithoutCommitKeepsTheOld) {
  fs::create_directories(at("out"));
  write_file(at("out/summary.json"), "old");
  { ResultFolder folder(at("out"), true); }
  EXPECT_EQ(read(at("out/summary.json")), "old");
  EXPECT_EQ(all(), (Names{"out", "out/summary.json"}));
}

TEST_F(Files, ForceReplacesOnlyResultFolders) {
  fs::create_directories(at("precious"));
  write_file(at("precious/thesis.tex"), "years");
  write_file(at("file"), "x");
  EXPECT_THROW(ResultFolder(at("precious"), true), BadInput);
  EXPECT_THROW(ResultFolder(at("file"), true), BadInput);
  EXPECT_EQ(all(), (Names{"file", "precious", "precious/thesis.tex"}));
  fs::create_directories(at("empty"));
  ResultFolder folder(at("empty"), true);
  folder.add("summary.json", "{}");
  folder.commit();
  EXPECT_TRUE(fs::exists(at("empty/summary.json")));
}

// Somebody's own DIR.old is neither in the way nor lost.
TEST_F(Files, ForceDoesNotTouchWhatLiesBeside) {
  fs::create_directories(at("out"));
  write_file(at("out/summary.json"), "old");
  fs::create_directories(at("out.old"));
  write_file(at("out.old/mine"), "kept");
  ResultFolder folder(at("out"), true);
  folder.add("summary.json", "new");
  EXPECT_NO_THROW(folder.commit());
  EXPECT_EQ(read(at("out/summary.json")), "new");
  EXPECT_EQ(read(at("out.old/mine")), "kept");
}

TEST_F(Files, PlacesThatCannotBeWrittenToAreRefusedAtOnce) {
  write_file(at("file"), "x");
  for (const std::string& bad :
       {at("file/out"), at("file/deep/out"), std::string("/proc/affpcl/out")})
    try {
      ResultFolder folder(bad, false);
      FAIL() << bad;
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
    }
  EXPECT_EQ(all(), (Names{"file"}));
}

}  // namespace
}  // namespace affpcl
