// The evidence of a mixed model as a function of D and s^2, and what a climb needs beside its
// value: sums over agents, in two passes. Names are those of docs/explain/fit.md.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/moments.h"

namespace affpcl {

// Which variance each coordinate has: one group is a scalar D, d groups are a diagonal one.
struct VarianceGroups {
  std::vector<std::size_t> of;  // by coordinate
  std::size_t count = 0;
};

// How the evidence changes with D and s^2.
struct EvidenceSlopes {
  Matrix G, T;          // d/dD is (G - T) / 2
  Matrix cross, reach;  // row j of reach belongs to coordinate j
  Vector noise, c;
  double ee = 0, trace_P = 0;  // d/ds^2 is (ee - trace_P) / 2
  double eVe = 0;
  Matrix centre_cov;

  // The gradient and the average information in (variances of the groups, s^2).
  struct Information {
    Vector score;
    Matrix AI;
  };
  Information information(const VarianceGroups& groups) const;

  // Factors of a step that never lowers the evidence: sqrt(slope up / slope down).
  double noise_ratio() const;
  double group_ratio(const VarianceGroups& groups, std::size_t which) const;
  // The same step for a full D: the geometric mean of T^-1 and D G D. A prior with its mode at
  // diag(mode) counts like `agents` more agents; 0: none.
  Matrix full_step(const Matrix& D, const Vector& mode, double agents) const;
};

class Evidence {
 public:
  // Not restricted: the likelihood with x_c at its best value, less the prior of x_c (ML).
  Evidence(const Moments& moments, double centre_precision, Team& team, bool restricted = true);

  // The log evidence, x_c and its covariance, all at one (D, s^2).
  struct Value {
    double log_evidence = 0;
    Vector centre;
    Matrix centre_cov;
  };
  const Value& operator()(const Matrix& D, double s2, bool diagonal);
  // At the point of the last value.
  const Value& value() const { return value_; }
  EvidenceSlopes slopes();
  // Of an agent held: X'V^-1 X and X'V^-1 y.
  MatrixView information(std::size_t agent) const {
    return {W_.data() + m_.at(agent) * m_.d * m_.d, m_.d, m_.d};
  }
  std::span<const double> pull(std::size_t agent) const {
    return {v_.data() + m_.at(agent) * m_.d, m_.d};
  }
  // Inverse of the expected information on the groups' variances, for every pair of coordinates.
  Matrix variance_cov(const VarianceGroups& groups);

  // Of all agents.
  double rows() const { return N_; }
  double yy() const { return yy_; }
  const Vector& column_squares() const { return column_squares_; }  // diagonal of X'X

 private:
  struct First;
  struct Second;
  // A = R R' and b = R z of an agent with fewer rows than coefficients, by rank.
  struct LowRank {
    LowRank() = default;
    LowRank(MatrixView A, std::span<const double> b, std::size_t rows);
    Matrix R, B;  // [d][rank]; B at the point of the last value
    Vector z;
  };
  void add_first(std::size_t agent, const Matrix& root, First& space, double* out);
  void add_many_rows(std::size_t agent, const Matrix& root, First& space, MatrixSpan W,
                     std::span<double> v, double* rest) const;
  void add_few_rows(std::size_t agent, const Matrix& root, MatrixSpan W, std::span<double> v,
                    double* rest);
  double centre_part(std::size_t agent, Second& space) const;
  void add_second(std::size_t agent, const Vector& D_diagonal, Second& space, double* out) const;

  const Moments& m_;
  double precision_;
  bool restricted_;
  Team& team_;
  double N_ = 0, yy_ = 0;
  Vector column_squares_;
  std::vector<double> W_, v_;      // X'V^-1 X and X'V^-1 y of every agent held
  std::vector<LowRank> low_rank_;  // empty ones where A has full rank
  AgentSum first_, second_, squares_;
  // The point of the last value.
  Matrix D_;
  double s2_ = 1;
  bool diagonal_ = true;
  Value value_;
  double trace_AP_ = 0;
};

}  // namespace affpcl
