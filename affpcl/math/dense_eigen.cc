// Eigenvalues.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "affpcl/math/blocks.h"
#include "affpcl/math/dense-inl.h"
#include "affpcl/math/dense.h"
#include "affpcl/math/products.h"

namespace affpcl {

namespace {

constexpr int kSteps = 60;  // for one eigenvalue; three are usual

// A tridiagonal matrix that turns diagonal by implicit QL steps with Wilkinson's shift. The rows of
// V, `stride` numbers apart, turn with it; there may be none.
class Tridiagonal {
 public:
  Tridiagonal(Vector diagonal, Vector beside, std::size_t stride, double* V)
      : d_(std::move(diagonal)),
        e_(std::move(beside)),
        c_(d_.size()),
        s_(d_.size()),
        stride_(stride),
        V_(V) {
    e_.resize(d_.size());
    for (std::size_t l = 0; l < d_.size(); ++l)
      for (int step = 0; step < kSteps; ++step) {
        const std::size_t end = block_end(l);
        if (end == l) break;
        chase(l, end);
      }
  }
  const Vector& diagonal() const { return d_; }

 private:
  // The last row of the block that begins with row l: behind it is a zero.
  std::size_t block_end(std::size_t l) const {
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    std::size_t m = l;
    while (m + 1 < d_.size() &&
           !(std::abs(e_[m]) <= kEpsilon * (std::abs(d_[m]) + std::abs(d_[m + 1]))))
      ++m;
    return m;
  }

  void chase(std::size_t l, std::size_t m) {
    const double half = (d_[l + 1] - d_[l]) / (2 * e_[l]);
    double g = d_[m] - d_[l] + e_[l] / (half + std::copysign(std::sqrt(half * half + 1), half));
    double s = 1, c = 1, p = 0;
    std::size_t i = m;
    while (i-- > l) {
      const double f = s * e_[i], b = c * e_[i], r = std::sqrt(f * f + g * g);
      e_[i + 1] = r;
      if (r == 0) {  // the block falls apart
        d_[i + 1] -= p;
        e_[m] = 0;
        if (V_ != nullptr && i + 1 < m)
          kernels::rotate_rows(c_.data(), s_.data(), i + 1, m, stride_, V_);
        return;
      }
      s_[i] = s = f / r;
      c_[i] = c = g / r;
      g = d_[i + 1] - p;
      const double q = (d_[i] - g) * s + 2 * c * b;
      p = s * q;
      d_[i + 1] = g + p;
      g = c * q - b;
    }
    d_[l] -= p;
    e_[l] = g;
    e_[m] = 0;
    if (V_ != nullptr) kernels::rotate_rows(c_.data(), s_.data(), l, m, stride_, V_);
  }

  Vector d_, e_;  // the diagonal; e_[i] is beside d_[i] and d_[i + 1]
  Vector c_, s_;  // the rotations of a step
  std::size_t stride_;
  double* V_;
};

Vector listed(const Eigen::VectorXd& x) { return {x.data(), x.data() + x.size()}; }

}  // namespace

// Entries are brought to size 1 first, by a power of 2, so that no square leaves the range of a double.
SymmetricEigen symmetric_eigen(MatrixView A) {
  const std::size_t n = A.rows();
  if (n == 0) return {};  // a model of an intercept alone has no slopes
  if (n == 1) return {{A(0, 0)}, Matrix::identity(1)};
  const double largest = vector_of(A.all()).cwiseAbs().maxCoeff();
  const double scale = largest > 0 && std::isfinite(largest) ? std::exp2(std::ilogb(largest)) : 1;
  const Eigen::Tridiagonalization<ColMajor> reduced(transpose_of(A) / scale);
  const std::size_t stride = (n + kLaneStep - 1) / kLaneStep * kLaneStep;
  Vector V(n * stride);
  Eigen::Map<ColMajor, 0, Eigen::OuterStride<>>(
      V.data(), index(n), index(n), Eigen::OuterStride<>(index(stride))) = reduced.matrixQ();
  const Vector values =
      Tridiagonal(listed(reduced.diagonal()), listed(reduced.subDiagonal()), stride, V.data())
          .diagonal();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  SymmetricEigen result{Vector(n), Matrix(n, n)};
  for (std::size_t k = 0; k < n; ++k) {
    result.values[k] = scale * values[order[k]];
    std::copy_n(V.data() + order[k] * stride, n, result.vectors.row(k).begin());
  }
  return result;
}

Vector symmetric_eigenvalues(MatrixView A) { return symmetric_eigen(A).values; }

Matrix semidefinite_root(MatrixView A) {
  SymmetricEigen eigen = symmetric_eigen(A);
  for (std::size_t k = 0; k < A.rows(); ++k)
    for (double& v : eigen.vectors.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  return std::move(eigen.vectors);
}

double operator_norm(MatrixView A) {
  return std::sqrt(std::max(symmetric_eigenvalues(multiply(transposed(A), A)).back(), 0.0));
}

Matrix modulus(MatrixView A) {
  const SymmetricEigen eigen = symmetric_eigen(multiply(transposed(A), A));
  Matrix scaled = eigen.vectors;
  for (std::size_t k = 0; k < scaled.rows(); ++k)  // rounding may leave values below 0
    for (double& v : scaled.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  return multiply(transposed(eigen.vectors), scaled);
}

double spectral_radius(MatrixView A) {
  if (!std::isfinite(sum(A.all()))) return std::numeric_limits<double>::infinity();
  // The Schur form has eigenvalues on its diagonal, or blocks of 2 x 2 with a conjugate pair, whose
  // squared modulus is their determinant.
  const Eigen::RealSchur<ColMajor> schur(transpose_of(A), false);
  if (schur.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const ColMajor& T = schur.matrixT();
  double radius = 0;
  for (Eigen::Index k = 0; k < T.rows(); ++k) {
    const bool pair = k + 1 < T.rows() && T(k + 1, k) != 0;
    radius = std::max(
        radius, pair ? std::sqrt(std::abs(T(k, k) * T(k + 1, k + 1) - T(k, k + 1) * T(k + 1, k)))
                     : std::abs(T(k, k)));
    if (pair) ++k;
  }
  return radius;
}

}  // namespace affpcl
