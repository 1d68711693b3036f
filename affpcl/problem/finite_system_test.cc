// Reading system.json: a good file, and every way a file can be bad.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "affpcl/base/error.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

class FiniteSystemFile : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path.c_str()); }

  FiniteSystem read(const std::string& text) {
    std::ofstream(path) << text;
    return read_finite_system(path);
  }
  std::string complaint(const std::string& text) {
    try {
      read(text);
    } catch (const BadInput& e) {
      return e.what();
    } catch (const std::exception& e) {
      return std::string("not BadInput: ") + e.what();
    }
    return "accepted";
  }
  // `text` is refused by one sentence that names the file and says `what`.
  void refused(const std::string& text, const std::string& what) {
    const std::string said = complaint(text);
    EXPECT_EQ(said.find(path), 0u) << said << "\n  for " << text;
    EXPECT_NE(said.find(what), std::string::npos) << said << "\n  for " << text;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }

  const std::string path =
      ::testing::TempDir() + "affpcl_system_" + std::to_string(getpid()) + ".json";
};

// Two states, d = 2, k = 1, two agents.
const std::string kA = R"("A": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])";
const std::string kMu = R"("mu": [[0.25, 0.75], [1, 0]])";
const std::string kPhi = R"("Phi": [[[1], [2]], [[3], [4]]])";
const std::string kTheta = R"("theta": [[10], [20]])";
const std::string kB = R"("b": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])";

std::string file(std::initializer_list<std::string> parts) {
  std::string text = "{";
  for (const std::string& p : parts) text += (text.size() > 1 ? ",\n " : "") + p;
  return text + "}\n";
}

TEST_F(FiniteSystemFile, AllKeysAreRead) {
  const FiniteSystem f = read(
      file({kA, kMu, kPhi, kTheta, R"("psi": [[1, 2, 3], [4, 5, 6]])", R"("x0": [[1, 2], [3, 4]])",
            R"("xc0": [5, 6])", R"("thetac0": [7])", R"("states": [[0, 1, 1], [0, 0, 0]])"}));
  EXPECT_EQ(f.agents, 2);
  EXPECT_EQ(f.states, 2);
  EXPECT_EQ(f.d, 2);
  EXPECT_EQ(f.k, 1);
  EXPECT_EQ(f.p, 3);
  EXPECT_EQ(f.steps, 3);
  EXPECT_EQ(f.A, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(f.mu, (std::vector<double>{0.25, 0.75, 1, 0}));
  EXPECT_EQ(f.Phi, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(f.theta, (std::vector<double>{10, 20}));
  EXPECT_EQ(f.psi, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(f.x0, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(f.xc0, (std::vector<double>{5, 6}));
  EXPECT_EQ(f.thetac0, (std::vector<double>{7}));
  EXPECT_EQ(f.order, (std::vector<int>{0, 1, 1, 0, 0, 0}));
  EXPECT_TRUE(f.b.empty());
}

TEST_F(FiniteSystemFile, ObjectivesWithoutPhi) {
  const FiniteSystem f = read(file({kA, kMu, kB}));
  EXPECT_EQ(f.k, 0);
  EXPECT_EQ(f.p, 0);
  EXPECT_EQ(f.b, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(f.theta.empty());
  EXPECT_TRUE(f.order.empty());
}

TEST_F(FiniteSystemFile, ObjectivesBesidePhi) {  // b^i(s) outside the range of Phi is allowed
  const FiniteSystem f = read(file({kA, kMu, kPhi, kB}));
  EXPECT_EQ(f.k, 1);
  EXPECT_EQ(f.b.size(), 8u);
}

TEST_F(FiniteSystemFile, RoundingOfMuIsForgiven) {
  EXPECT_NO_THROW(read(file({kA, R"("mu": [[0.3333333333, 0.6666666667], [1, 0]])", kB})));
}

TEST_F(FiniteSystemFile, MissingFile) {
  try {
    read_finite_system("/nowhere/system.json");
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("/nowhere/system.json"), std::string::npos);
  }
}

TEST_F(FiniteSystemFile, NotJsonIsRefusedWithItsLine) {
  refused("{\"A\": [\n1,\n2,,\n3]}", "line 3");
  refused("{\n\"mu\": [[NaN]]}", "line 2");
  refused("", "line 1");
  refused(file({kA, kMu}).substr(0, 30), "line 1");
  refused("A = 1\n", "line 1");
}

TEST_F(FiniteSystemFile, ANumberTooLargeIsRefused) {
  refused(file({R"("A": [[[1e999]]])", R"("mu": [[1]])", R"("b": [[[1]]])"}), "1e999");
}

TEST_F(FiniteSystemFile, NotAnObjectIsRefused) { refused("[1, 2]\n", "object"); }

TEST_F(FiniteSystemFile, UnknownKeysAreRefusedWithASuggestion) {
  refused(file({kA, kMu, kB, R"("phi": [])"}), "'phi' is not a known key; did you mean 'Phi'?");
  refused(file({kA, kMu, kB, R"("comment": "mine")"}), "'comment'");
}

TEST_F(FiniteSystemFile, MissingKeysAreNamed) {
  refused(file({kMu, kB}), "'A'");
  refused(file({kA, kB}), "'mu'");
  refused(file({kA, kMu}), "theta");
  refused(file({kA, kMu, kPhi}), "theta");
  refused(file({kA, kMu, kTheta}), "no Phi");
  refused(file({kA, kMu, kPhi, kTheta, kB}), "not both");
}

TEST_F(FiniteSystemFile, WrongShapesAreNamedByPlace) {
  refused(file({R"("A": 3)", kMu, kB}), "A must be an array");
  refused(file({R"("A": [[1, 2], [3, 4]])", kMu, kB}), "A[0][0] must be an array");
  refused(file({R"("A": [])", kMu, kB}), "A is empty");
  refused(file({R"("A": [[[1, 2]], [[3, 4]]])", kMu, kB}), "square");
  refused(file({R"("A": [[[1, 2], [3, 4]], [[5, 6], [7]]])", kMu, kB}), "A[1][1] has 1");
  refused(file({kA, R"("mu": [[1], [1]])", kB}), "mu[0] has 1 entries, expected 2");
  refused(file({kA, R"("mu": [])", kB}), "mu is empty");
  refused(file({kA, kMu, R"("b": [[[1, 2], [3, 4]]])"}), "b has 1 entries, expected 2");
  refused(file({kA, kMu, R"("b": [[[1, 2], [3]], [[5, 6], [7, 8]]])"}), "b[0][1]");
  refused(file({kA, kMu, R"("Phi": [[[1], [2]]])", kTheta}), "Phi has 1 entries, expected 2");
  refused(file({kA, kMu, R"("Phi": [[[1], [2, 3]], [[3], [4]]])", kTheta}), "Phi[0][1]");
  refused(file({kA, kMu, kPhi, R"("theta": [[1, 2], [3, 4]])"}), "theta[0] has 2");
  refused(file({kA, kMu, kB, R"("psi": [[1, 2]])"}), "psi has 1");
  refused(file({kA, kMu, kB, R"("x0": [[1, 2]])"}), "x0 has 1");
  refused(file({kA, kMu, kB, R"("x0": [1, 2])"}), "x0[0] must be an array");
  refused(file({kA, kMu, kB, R"("xc0": [1])"}), "xc0 has 1");
  refused(file({kA, kMu, kPhi, kTheta, R"("thetac0": [1, 2])"}), "thetac0 has 2");
  refused(file({kA, kMu, kB, R"("thetac0": [1])"}), "thetac0");
}

TEST_F(FiniteSystemFile, EntriesMustBeFiniteNumbers) {
  refused(file({R"("A": [[[1, "2"], [3, 4]], [[5, 6], [7, 8]]])", kMu, kB}), "A[0][0][1] is \"2\"");
  refused(file({kA, kMu, R"("b": [[[1, 2], [3, null]], [[5, 6], [7, 8]]])"}), "b[0][1][1] is null");
  refused(file({kA, R"("mu": [[true, 0], [1, 0]])", kB}), "mu[0][0] is true");
  refused(file({kA, R"("mu": [[[1], 0], [1, 0]])", kB}), "mu[0][0]");
}

TEST_F(FiniteSystemFile, MuMustBeALaw) {
  refused(file({kA, R"("mu": [[0.25, 0.75], [0.5, 0.4]])", kB}), "mu[1] sums to 0.9");
  refused(file({kA, R"("mu": [[1.25, -0.25], [1, 0]])", kB}), "mu[0][1] = -0.25 is negative");
}

TEST_F(FiniteSystemFile, StatesMustExist) {
  refused(file({kA, kMu, kB, R"("states": [[0, 2], [0, 0]])"}), "states holds 2");
  refused(file({kA, kMu, kB, R"("states": [[0, -1], [0, 0]])"}), "states holds -1");
  refused(file({kA, kMu, kB, R"("states": [[0, 0.5], [0, 0]])"}), "states holds 0.5");
  refused(file({kA, kMu, kB, R"("states": [[0, 1], [0]])"}), "states[1] has 1");
  refused(file({kA, kMu, kB, R"("states": [[0, 1]])"}), "states has 1");
}

}  // namespace
}  // namespace affpcl
