// Expectations of a generalised linear model's mean mu(X phi) under phi ~ N(m, I), to about 1e-12,
// and the solution of E mu(X phi) phi' = target by Newton's method.
//
// mu depends on phi only through the span of X's rows. With Q an orthonormal basis of it, phi = m +
// Q t + z, t ~ N(0, I) of at most q numbers and z independent of t, so that
//
//   E f(X phi) phi      = m E f + Q E f t
//   E f(X phi) phi phi' = (I - QQ') E f + E f (m + Q t)(m + Q t)'
//
// are integrals over t, by the trapezoidal rule: it converges geometrically for an analytic
// function times a Gaussian.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "affpcl/math/dense.h"

namespace affpcl {

enum class Link { kCategorical, kPoisson };

// mu(u), in place.
void mean_labels(Link link, std::span<double> u);

struct LinkMoments {
  Vector mean;       // E mu, q
  Matrix with_phi;   // E mu phi', q x D
  Matrix curvature;  // d(E mu phi') / dX, qD x qD
};
// X is q x D. The curvature is left empty where it is not asked for.
LinkMoments link_moments(Link link, std::span<const double> m, MatrixView X, bool curvature);

// X with the mean over means [first, last) of E mu(X phi) phi' equal to `target` (q x D); m_of(i)
// is the i-th mean. BadInput where Newton's method finds none.
Matrix solve_link(Link link, std::int64_t first, std::int64_t last,
                  const std::function<std::span<const double>(std::int64_t)>& m_of,
                  const Matrix& target);

}  // namespace affpcl
