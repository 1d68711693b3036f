#include "affpcl/mixed/undetermined.h"

#include <gtest/gtest.h>

namespace affpcl {
namespace {

// The posterior covariance of x_c from rows with X'X / s^2 = information.
Matrix posterior(Matrix information, double precision) {
  for (std::size_t j = 0; j < information.rows(); ++j) information(j, j) += precision;
  return Ldlt(information).inverse();
}

TEST(Undetermined, NamesTheColumnsThatAreCollinear) {
  // Four columns, z2 = -z1; the others are independent of these and of each other.
  Matrix X = Matrix::identity(4);
  X(1, 2) = X(2, 1) = -1;
  for (double& v : X.all()) v *= 500;
  EXPECT_EQ(undetermined(posterior(X, 0.01), 0.01), (std::vector<std::size_t>{1, 2}));
}

TEST(Undetermined, NamesNoneWhereRowsSettleAll) {
  // A correlation of .9999 over 1,000 rows is known well enough.
  Matrix X = Matrix::identity(3);
  X(1, 2) = X(2, 1) = 0.9999;
  for (double& v : X.all()) v *= 1000;
  EXPECT_TRUE(undetermined(posterior(X, 0.01), 0.01).empty());
}

TEST(Undetermined, NamesAllWithoutRows) {
  EXPECT_EQ(undetermined(posterior(Matrix(2, 2), 0.01), 0.01), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace affpcl
