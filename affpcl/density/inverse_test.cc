#include "affpcl/density/inverse.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

TEST(Inverse, SolvesWhatCanBeSolved) {
  // Rank 2 of 3: the third row is the sum of the others; badly scaled.
  const double a = 1e4, b = 1e-3;
  const double G[9] = {a * a, 0, a * a, 0, b * b, b * b, a * a, b * b, a * a + b * b};
  double W[9], GWG[9];
  Scratch scratch;
  // Scaled, the third feature is the first one to 1e-14: rank 2 either way.
  EXPECT_EQ(generalised_inverse(G, 3, 0, scratch, W), 2);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      GWG[3 * i + j] = 0;
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 3; ++l) GWG[3 * i + j] += G[3 * i + k] * W[3 * k + l] * G[3 * l + j];
      EXPECT_NEAR(GWG[3 * i + j], G[3 * i + j], 1e-8 * std::sqrt(G[4 * i] * G[4 * j]));
    }
  const double zero[4] = {};
  EXPECT_EQ(generalised_inverse(zero, 2, 0.1, scratch, W), 0);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(W[k], 0);
}

}  // namespace
}  // namespace affpcl
