#include "affpcl/math/dense.h"

#include <Eigen/Dense>

namespace affpcl {

constexpr double kRank = 1e-12;  // of the largest pivot

std::vector<double> solve_least_norm(std::span<const double> A, std::span<const double> b) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto n = static_cast<Eigen::Index>(b.size());
  Eigen::CompleteOrthogonalDecomposition<Matrix> qr;
  qr.setThreshold(kRank);
  qr.compute(Eigen::Map<const Matrix>(A.data(), n, n));
  const Eigen::VectorXd x = qr.solve(Eigen::Map<const Eigen::VectorXd>(b.data(), n));
  return {x.data(), x.data() + n};
}

}  // namespace affpcl
