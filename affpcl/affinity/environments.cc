#include "affpcl/affinity/environments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMixtureRows = 1000;   // of a half that stand for the mixture
constexpr std::size_t kMixtureAgents = 300;  // whose rows they are, of more than kMixtureRows

// Every row of z without the mean.
Matrix centred(Matrix z, const Vector& mean) {
  for (std::size_t k = 0; k < z.rows(); ++k)
    for (std::size_t j = 0; j < z.cols(); ++j) z(k, j) -= mean[j];
  return z;
}

struct Gaussian {
  Vector mean;
  Matrix root;  // of the inverse covariance: |(z - mean)' root|^2
  double log_det = 0;
  Gaussian() = default;
  Gaussian(Vector m, Matrix cov) : mean(std::move(m)), root(Matrix::identity(cov.rows())) {
    const double ridge = 1e-6 * (trace(cov) / static_cast<double>(cov.rows()) + 1e-6);
    for (std::size_t j = 0; j < cov.rows(); ++j) cov(j, j) += ridge;
    Cholesky(cov).forward(root);
    double logs = 0;
    for (std::size_t j = 0; j < cov.rows(); ++j) logs += std::log(root(j, j));
    log_det = -2 * logs;
  }
  Vector log_density(const Matrix& z) const {  // of every row; up to a constant
    const Matrix r = multiply(centred(z, mean), root);
    Vector density(r.rows());
    for (std::size_t k = 0; k < r.rows(); ++k) density[k] = (squared_norm(r.row(k)) + log_det) / -2;
    return density;
  }
};

Matrix rows_of(const Frame& frame, const std::vector<std::size_t>& rows, std::size_t from,
               std::size_t to) {
  Matrix z(to - from, frame.d - 1);
  for (std::size_t k = from; k < to; ++k)
    for (std::size_t j = 1; j < frame.d; ++j)
      z(k - from, j - 1) = frame.X[j * frame.rows + rows[k]];
  return z;
}

// One half of every agent's rows.
struct Half {
  std::vector<Matrix> z;
  Matrix mixture;  // the first rows of each of `members`, one after the other
  std::vector<std::size_t> members, until;
  // The work is agents times rows of the mixture, so many agents are represented by some of them.
  void gather() {
    const std::size_t step = z.size() > kMixtureRows ? z.size() / kMixtureAgents : 1;
    for (std::size_t i = 0; i < z.size(); i += step) members.push_back(i);
    const std::size_t each = std::max<std::size_t>(1, kMixtureRows / members.size());
    std::size_t all = 0;
    for (std::size_t i : members) until.push_back(all += std::min(each, z[i].rows()));
    mixture = Matrix(all, z[0].cols());
    for (std::size_t k = 0; k < members.size(); ++k)
      std::copy_n(z[members[k]].data(), count(k) * mixture.cols(),
                  mixture.data() + from(k) * mixture.cols());
  }
  std::size_t from(std::size_t member) const { return member == 0 ? 0 : until[member - 1]; }
  std::size_t count(std::size_t member) const { return until[member] - from(member); }
};

// The Gaussians of a half: every agent's, drawn towards what agents have in common by as much as
// its few rows leave open, and the mixture's.
struct Matched {
  std::vector<Gaussian> own;
  Gaussian mixture;

  explicit Matched(const Half& half) {
    const std::size_t n = half.z.size(), d = half.z[0].cols();
    const auto agents = static_cast<double>(n);
    std::vector<Vector> mean;
    std::vector<Matrix> scatter;
    Vector centre(d), square(d), noise(d), between(d);
    Matrix within(d, d);
    double freedom = 0;
    for (const Matrix& z : half.z) {
      mean.push_back(column_sums(z));
      for (std::size_t j = 0; j < d; ++j) {
        mean.back()[j] /= static_cast<double>(z.rows());
        centre[j] += mean.back()[j] / agents;
      }
      const Matrix r = centred(z, mean.back());
      scatter.push_back(multiply(transposed(r), r));
      for (std::size_t j = 0; j < d * d; ++j) within.all()[j] += scatter.back().all()[j];
      freedom += static_cast<double>(z.rows() - 1);
    }
    for (double& v : within.all()) v /= std::max(1.0, freedom);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        square[j] += (mean[i][j] - centre[j]) * (mean[i][j] - centre[j]) / (agents - 1);
        noise[j] += within(j, j) / (agents * static_cast<double>(half.z[i].rows()));
      }
    for (std::size_t j = 0; j < d; ++j) between[j] = std::max(square[j] - noise[j], 0.0);
    const double prior = 2 * static_cast<double>(d) + 2;  // rows that `within` counts for
    Matrix all(d, d);
    for (std::size_t i = 0; i < n; ++i) {
      const auto rows = static_cast<double>(half.z[i].rows());
      Vector at = centre;
      for (std::size_t j = 0; j < d; ++j)
        at[j] += between[j] / std::max(between[j] + within(j, j) / rows, 1e-300) *
                 (mean[i][j] - centre[j]);
      Matrix cov(d, d);
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k < d; ++k) {
          cov(j, k) = (scatter[i](j, k) + prior * within(j, k)) / (rows - 1 + prior);
          all(j, k) += (cov(j, k) + (at[j] - centre[j]) * (at[k] - centre[k])) / agents;
        }
      own.emplace_back(at, cov);
    }
    mixture = Gaussian(centre, all);
  }

  // Whether each row of z, where the mixture has density `mixed`, lies in B of agent i.
  std::vector<bool> inside(std::size_t i, const Matrix& z, const Vector& mixed) const {
    const Vector own_density = own[i].log_density(z);
    std::vector<bool> in(z.rows());
    for (std::size_t k = 0; k < z.rows(); ++k) in[k] = own_density[k] - mixed[k] > 0;
    return in;
  }
};

struct Excess {
  double value = 0, variance = 0;
};

// mu^i(B) - mu^0(B) on the rows of a half; the mixture has density `mixed` at its own rows.
Excess excess(const Matched& by, const Half& half, const Vector& mixed, std::size_t i) {
  const auto agents = static_cast<double>(half.z.size());
  // The variance of a share, not 0 where all rows agree.
  const auto scatter = [](double share, double rows) {
    const double p = (share * rows + 0.5) / (rows + 1);
    return p * (1 - p) / rows;
  };
  const auto share_of = [](const std::vector<bool>& in, std::size_t from, std::size_t count) {
    const auto first = in.begin() + static_cast<std::ptrdiff_t>(from);
    return static_cast<double>(
               std::count(first, first + static_cast<std::ptrdiff_t>(count), true)) /
           static_cast<double>(count);
  };
  const auto own_rows = static_cast<double>(half.z[i].rows());
  const double own =
      share_of(by.inside(i, half.z[i], by.mixture.log_density(half.z[i])), 0, half.z[i].rows());
  const std::vector<bool> in = by.inside(i, half.mixture, mixed);
  double share = 0, variance = 0, others = 0;
  for (std::size_t k = 0; k < half.members.size(); ++k) {
    if (half.members[k] == i) continue;
    const double theirs = share_of(in, half.from(k), half.count(k));
    share += theirs;
    variance += scatter(theirs, static_cast<double>(half.count(k)));
    ++others;
  }
  const double rest = 1 - 1 / agents;  // the agent itself is in the mixture
  return {rest * (own - share / others),
          rest * rest * (scatter(own, own_rows) + variance / (others * others))};
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
    halves[0].z.push_back(rows_of(frame, rows[i], 0, middle));
    halves[1].z.push_back(rows_of(frame, rows[i], middle, rows[i].size()));
  }
  if (agents.size() < 2) return out;
  std::vector<Excess> held[2], resubstituted[2];
  for (Half& half : halves) half.gather();
  for (std::size_t h = 0; h < 2; ++h) {
    const Matched by(halves[h]);
    const Vector mixed[2] = {by.mixture.log_density(halves[0].mixture),
                             by.mixture.log_density(halves[1].mixture)};
    held[h].resize(agents.size());
    resubstituted[h].resize(agents.size());
    team.each(static_cast<std::int64_t>(agents.size()), [&](std::int64_t at, int) {
      const auto i = static_cast<std::size_t>(at);
      held[h][i] = excess(by, halves[1 - h], mixed[1 - h], i);
      resubstituted[h][i] = excess(by, halves[h], mixed[h], i);
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
