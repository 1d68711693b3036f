// Chains and decision processes at chosen heterogeneity.
#include <fmt/format.h>

#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/mdp.h"

namespace affpcl {
namespace {

std::uint32_t index(std::size_t i) { return static_cast<std::uint32_t>(i); }

double environment(const Key& key, std::int64_t agent, std::size_t i) {
  return uniform(key, agent, Purpose::kEnvironment, index(i));
}

void check_range(const char* name, double value, double lo, double hi) {
  if (!(value >= lo && value <= hi))
    throw BadInput(
        fmt::format("{} = {} is not allowed: it must be from {} to {}", name, value, lo, hi));
}

// A kernel whose rows are proportional to weight(i), i counting entries.
template <class F>
std::vector<double> normalised(std::size_t size, int cols, F weight) {
  std::vector<double> P(size);
  const auto n = static_cast<std::size_t>(cols);
  for (std::size_t row = 0; row < size; row += n) {
    double sum = 0;
    for (std::size_t i = row; i < row + n; ++i) sum += P[i] = weight(i);
    for (std::size_t i = row; i < row + n; ++i) P[i] /= sum;
  }
  return P;
}

std::size_t entries(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

}  // namespace

std::vector<double> uniform_kernel(const Key& key, std::int64_t agent, int rows, int cols) {
  return normalised(entries(rows, cols), cols,
                    [&](std::size_t i) { return environment(key, agent, i); });
}

// Gamma variates by their inverse distribution function: one uniform each, whatever the
// concentration. Below 0.05 whole rows could fall short of the smallest double.
std::vector<double> dirichlet_kernel(const Key& key, std::int64_t agent, int rows, int cols,
                                     double concentration) {
  check_range("concentration", concentration, 0.05, 1e6);
  return normalised(entries(rows, cols), cols, [&](std::size_t i) {
    return boost::math::gamma_p_inv(concentration, environment(key, agent, i));
  });
}

std::vector<double> perturbed_kernel(const Key& key, std::int64_t agent,
                                     std::span<const double> base, int cols, double delta) {
  check_range("delta", delta, 0, 1);
  if (delta == 0) return {base.begin(), base.end()};
  return normalised(base.size(), cols, [&](std::size_t i) {
    return base[i] * (1 + delta * (2 * environment(key, agent, i) - 1));
  });
}

std::vector<double> mixed_kernel(std::span<const double> base, std::span<const double> own,
                                 double h) {
  check_range("h", h, 0, 1);
  std::vector<double> P(base.size());
  for (std::size_t i = 0; i < P.size(); ++i) P[i] = (1 - h) * base[i] + h * own[i];
  return P;
}

std::vector<double> uniform_rewards(const Key& key, std::int64_t agent, int rows) {
  std::vector<double> R(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < R.size(); ++i)
    R[i] = uniform(key, agent, Purpose::kObjective, index(i));
  return R;
}

std::vector<double> perturbed_rewards(const Key& key, std::int64_t agent,
                                      std::span<const double> base, double delta) {
  std::vector<double> R(base.begin(), base.end());
  for (std::size_t i = 0; i < R.size(); ++i)
    R[i] *= 1 + delta * normal(key, agent, Purpose::kObjective, index(i));
  return R;
}

Basis random_basis(const Key& key, int rows, int dim) {
  Basis basis{rows, dim, std::vector<double>(entries(rows, dim))};
  const auto d = static_cast<std::size_t>(dim);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::span phi = std::span(basis.phi).subspan(row * d, d);
    normals_of(key, static_cast<std::int64_t>(row), Purpose::kSystemPhi, phi);
    double square = 0;
    for (const double x : phi) square += x * x;
    for (double& x : phi) x /= std::sqrt(square);
  }
  return basis;
}

}  // namespace affpcl
