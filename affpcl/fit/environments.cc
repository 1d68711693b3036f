#include "affpcl/fit/environments.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

namespace affpcl {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMixtureRows = 1000;  // of a half that stand for the mixture

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

struct Gaussian {
  Vector mean;
  Matrix root;  // of the inverse covariance: |root (z - mean)|^2
  double log_det = 0;
  Gaussian() = default;
  Gaussian(Vector m, Matrix cov) : mean(std::move(m)) {
    cov.diagonal().array() += 1e-6 * (cov.trace() / static_cast<double>(cov.rows()) + 1e-6);
    const Eigen::LLT<Matrix> C(cov);
    root = C.matrixL().solve(Matrix::Identity(cov.rows(), cov.cols()));
    log_det = -2 * root.diagonal().array().log().sum();
  }
  Vector log_density(const Matrix& z) const {  // columns are rows of the table; up to a constant
    const Matrix r = root * (z.colwise() - mean);
    return (r.colwise().squaredNorm().transpose().array() + log_det) / -2;
  }
};

Matrix columns_of(const Frame& frame, const std::vector<std::size_t>& rows, std::size_t from,
                  std::size_t to) {
  Matrix z(index(frame.d - 1), index(to - from));
  for (std::size_t k = from; k < to; ++k)
    for (std::size_t j = 1; j < frame.d; ++j)
      z(index(j - 1), index(k - from)) = frame.X[j * frame.rows + rows[k]];
  return z;
}

// One half of every agent's rows.
struct Half {
  std::vector<Matrix> z;
  Matrix mixture;  // the first rows of every agent, side by side
  std::vector<Eigen::Index> until;
  void gather() {
    const Eigen::Index each = index(std::max<std::size_t>(1, kMixtureRows / z.size()));
    Eigen::Index all = 0;
    for (const Matrix& own : z) until.push_back(all += std::min(each, own.cols()));
    mixture.resize(z[0].rows(), all);
    for (std::size_t i = 0; i < z.size(); ++i) {
      const Eigen::Index from = i == 0 ? 0 : until[i - 1], count = until[i] - from;
      mixture.middleCols(from, count) = z[i].leftCols(count);
    }
  }
};

// The Gaussians of a half: every agent's, drawn towards what agents have in common by as much as
// its few rows leave open, and the mixture's.
struct Matched {
  std::vector<Gaussian> own;
  Gaussian mixture;

  explicit Matched(const Half& half) {
    const std::size_t n = half.z.size();
    const Eigen::Index d = half.z[0].rows();
    const auto agents = static_cast<double>(n);
    std::vector<Vector> mean;
    std::vector<Matrix> scatter;
    Vector centre = Vector::Zero(d), square = centre, noise = centre;
    Matrix within = Matrix::Zero(d, d);
    double freedom = 0;
    for (const Matrix& z : half.z) {
      mean.push_back(z.rowwise().mean());
      const Matrix r = z.colwise() - mean.back();
      scatter.push_back(r * r.transpose());
      within += scatter.back();
      freedom += static_cast<double>(z.cols() - 1);
      centre += mean.back() / agents;
    }
    within /= std::max(1.0, freedom);
    for (std::size_t i = 0; i < n; ++i) {
      square += (mean[i] - centre).cwiseAbs2() / (agents - 1);
      noise += within.diagonal() / (agents * static_cast<double>(half.z[i].cols()));
    }
    const Vector between = (square - noise).cwiseMax(0.0);
    const double prior = 2 * static_cast<double>(d) + 2;  // rows that `within` counts for
    Matrix all = Matrix::Zero(d, d);
    for (std::size_t i = 0; i < n; ++i) {
      const auto rows = static_cast<double>(half.z[i].cols());
      const Vector shrink =
          between.array() / (between + within.diagonal() / rows).array().max(1e-300);
      const Vector at = centre + shrink.cwiseProduct(mean[i] - centre);
      const Matrix cov = (scatter[i] + prior * within) / (rows - 1 + prior);
      own.emplace_back(at, cov);
      all += (cov + (at - centre) * (at - centre).transpose()) / agents;
    }
    mixture = Gaussian(centre, all);
  }

  // Which columns of z lie in B of agent i.
  Vector inside(std::size_t i, const Matrix& z) const {
    return (own[i].log_density(z) - mixture.log_density(z)).unaryExpr([](double ratio) {
      return ratio > 0 ? 1.0 : 0.0;
    });
  }
};

struct Excess {
  double value = 0, variance = 0;
};

// mu^i(B) - mu^0(B) on the rows of a half.
Excess excess(const Matched& by, const Half& half, std::size_t i) {
  const auto agents = static_cast<double>(half.z.size());
  // The variance of a share, not 0 where all rows agree.
  const auto scatter = [](double share, double rows) {
    const double p = (share * rows + 0.5) / (rows + 1);
    return p * (1 - p) / rows;
  };
  const auto own_rows = static_cast<double>(half.z[i].cols());
  const double own = by.inside(i, half.z[i]).mean();
  Excess e{own * (1 - 1 / agents), scatter(own, own_rows) * (1 - 1 / agents) * (1 - 1 / agents)};
  const Vector in = by.inside(i, half.mixture);
  for (std::size_t j = 0; j < half.z.size(); ++j) {
    if (j == i) continue;
    const Eigen::Index from = j == 0 ? 0 : half.until[j - 1], count = half.until[j] - from;
    const double share = in.segment(from, count).mean();
    e.value -= share / agents;
    e.variance += scatter(share, static_cast<double>(count)) / (agents * agents);
  }
  return e;
}

Estimate averaged(const Excess& a, const Excess& b, double factor) {
  const double value = factor * (a.value + b.value) / 2;
  const double half_width =
      normal_limit((1 - kConfidence) / 2) * factor * std::sqrt(a.variance + b.variance) / 2;
  return {value, value - half_width, std::min(1.0, value + half_width), value};
}

}  // namespace

Environments environments(const Frame& frame, const std::vector<std::vector<std::size_t>>& rows,
                          Team& team) {
  Environments out;
  const Estimate none{kNaN, kNaN, kNaN, kNaN};
  out.largest = none;
  out.to_mixture.assign(rows.size(), none);
  std::vector<std::size_t> agents;
  Half halves[2];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() < 2) continue;
    agents.push_back(i);
    const std::size_t middle = rows[i].size() / 2;
    halves[0].z.push_back(columns_of(frame, rows[i], 0, middle));
    halves[1].z.push_back(columns_of(frame, rows[i], middle, rows[i].size()));
  }
  if (agents.size() < 2) return out;
  std::vector<Excess> held[2], resubstituted[2];
  for (Half& half : halves) half.gather();
  for (std::size_t h = 0; h < 2; ++h) {
    const Matched by(halves[h]);
    held[h].resize(agents.size());
    resubstituted[h].resize(agents.size());
    team.each(static_cast<std::int64_t>(agents.size()), [&](std::int64_t at, int) {
      const auto i = static_cast<std::size_t>(at);
      held[h][i] = excess(by, halves[1 - h], i);
      resubstituted[h][i] = excess(by, halves[h], i);
    });
  }
  for (std::size_t i = 0; i < agents.size(); ++i)
    out.to_mixture[agents[i]] = averaged(held[0][i], held[1][i], 1);
  std::size_t farthest[2];
  for (std::size_t h = 0; h < 2; ++h)
    farthest[h] = static_cast<std::size_t>(
        std::max_element(resubstituted[h].begin(), resubstituted[h].end(),
                         [](const Excess& a, const Excess& b) { return a.value < b.value; }) -
        resubstituted[h].begin());
  const auto n = static_cast<double>(agents.size());
  out.largest = averaged(held[0][farthest[0]], held[1][farthest[1]], n / (n - 1));
  return out;
}

}  // namespace affpcl
