// A folder with a file for a test of readers, gone when the test is over.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "affpcl/base/error.h"

namespace affpcl {

class FileTest : public ::testing::Test {
 protected:
  explicit FileTest(const std::string& ending = "")
      : folder(::testing::TempDir() + "affpcl_data_" + std::to_string(getpid())),
        path(folder + "/file" + ending) {
    std::filesystem::create_directories(folder);
  }
  ~FileTest() override { std::filesystem::remove_all(folder); }

  void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }

  // `f` is refused by one sentence that names the file and says `what`.
  template <class F>
  void refused(F f, const std::string& what) const {
    std::string said = "accepted";
    try {
      f();
    } catch (const BadInput& e) {
      said = e.what();
    }
    EXPECT_NE(said.find(path), std::string::npos) << said << "\n  wanted: " << what;
    EXPECT_NE(said.find(what), std::string::npos) << said << "\n  wanted: " << what;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }

  const std::string folder, path;  // what is beside the file goes with it
};

}  // namespace affpcl
