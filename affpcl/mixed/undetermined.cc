#include "affpcl/mixed/undetermined.h"

namespace affpcl {
namespace {

constexpr double kOpen = 0.5;        // of the prior variance
constexpr double kSmallPart = 1e-3;  // squared part of a coefficient in a direction, of rounding

}  // namespace

std::vector<std::size_t> undetermined(MatrixView covariance, double precision) {
  const SymmetricEigen eigen = symmetric_eigen(covariance);
  Vector part(covariance.rows());
  for (std::size_t k = 0; k < eigen.values.size(); ++k)
    if (eigen.values[k] * precision > kOpen)
      for (std::size_t j = 0; j < part.size(); ++j)
        part[j] += eigen.vectors(k, j) * eigen.vectors(k, j);
  std::vector<std::size_t> open;
  for (std::size_t j = 0; j < part.size(); ++j)
    if (part[j] > kSmallPart) open.push_back(j);
  return open;
}

}  // namespace affpcl
