// The log-likelihood of rows as a function of their linear predictors, for every family, with the
// derivatives that Laplace evidence needs. docs/explain/families.md derives them.
//
// Blocks of rows come predictor after predictor: eta, g and T are [m][count], w and H are
// [m (m + 1) / 2][count], lower triangles row by row. psi are a family's further parameters:
// dispersion, degrees of freedom, distances of thresholds, all on a scale without bounds.
#pragma once

#include <cstddef>
#include <span>

#include "affpcl/math/dense.h"
#include "affpcl/table/family.h"

namespace affpcl {

struct RowBlock {
  std::size_t count = 0;
  const double* y = nullptr;       // a number, a count, successes, or which class
  const double* weight = nullptr;  // of rows; null: all 1
  const double* trials = nullptr;  // binomial; null: all 1
};

class Likelihood {
 public:
  Likelihood(Family family, std::size_t classes);  // classes: of multinomial and ordinal targets

  Family family() const { return family_; }
  std::size_t predictors() const { return m_; }
  std::size_t pairs() const { return m_ * (m_ + 1) / 2; }
  std::size_t extras() const { return extras_; }  // numbers in psi
  // Whether w moves with eta.
  bool curves() const { return family_ != Family::kGaussian && family_ != Family::kT; }
  // Times w it bounds the curvature everywhere, where Newton steps with w might overshoot without
  // end: expected information of t. Else 1.
  double curvature_bound(std::span<const double> psi) const;
  // [channels][predictors]: what people read are the channels, basis() times the predictors: of a
  // multinomial target the logits of its classes, which sum to 0 (class_basis.h), else the predictor.
  const Matrix& basis() const { return basis_; }
  std::size_t outputs() const;  // numbers that mean() gives: probabilities of classes, or one
  // A model without columns: what a row adds to its sums, and the intercepts and psi these give.
  std::size_t totals() const { return 2 + classes_; }
  void add_totals(const RowBlock& rows, double* totals) const;
  struct Start {
    Vector intercepts, psi;
  };
  Start start(std::span<const double> totals) const;

  // The part of the log-likelihood that no linear predictor moves.
  double constant(const RowBlock& rows, std::span<const double> psi) const;
  // The rest of it, and its slope g in eta.
  double slope(const RowBlock& rows, std::span<const double> psi, const double* eta,
               double* g) const;
  // The same and w = -dg/deta: observed information, of t expected information.
  double curve(const RowBlock& rows, std::span<const double> psi, const double* eta, double* g,
               double* w) const;
  // Over normal linear predictors with means eta and covariances V, [pairs][count]: a lower bound of
  // the expected log-likelihood without its constant, its slope g in eta, and w, minus twice that in V.
  // Of one predictor it is the expectation, by quadrature. Binomial and multinomial targets.
  double expect(const RowBlock& rows, const double* eta, const double* V, double* g,
                double* w) const;
  // T_c = sum_ab H_ab dw_ab/deta_c for symmetric H.
  void third(const RowBlock& rows, std::span<const double> psi, const double* eta, const double* H,
             double* T) const;
  // out_k += sum over rows of dl/dpsi_k - H dw/dpsi_k / 2 - a dg/dpsi_k / 2. Null H and a count
  // as 0. Families with psi have one linear predictor.
  void add_extras(const RowBlock& rows, std::span<const double> psi, const double* eta,
                  const double* H, const double* a, double* out) const;
  // The expected target of one row, or the probabilities of its classes.
  void mean(std::span<const double> psi, const double* eta, double* out) const;
  double variance(std::span<const double> psi, double mean) const;  // of a number at this mean
  // -2 log-likelihood of one row beyond that of a model that fits it exactly; of classes -log p.
  double loss(std::span<const double> psi, double y, double trials, const double* mean) const;

 private:
  Family family_;
  std::size_t m_, extras_, classes_;
  Matrix basis_;
};

}  // namespace affpcl
