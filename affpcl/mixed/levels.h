// A linear mixed model with a second factor. A row of agent i at level g of that factor has
//   y = x'(x_c + u_i) + w_g + noise,  u_i ~ N(0, D),  w_g ~ N(0, tau^2),  noise ~ N(0, s^2)
// with a diagonal D. Agents are eliminated one by one, which leaves a system in the levels:
// diagonal if every agent lies within one level (nested), dense if agents and levels cross.
// docs/explain/levels.md derives it; names are those of that page.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/mixed/levels_system.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/model.h"
#include "affpcl/table/moments.h"

namespace affpcl {

// The rows of each agent by level: a cell is what an agent and a level have in common.
struct LevelCells {
  std::size_t levels = 0;
  bool nested = true;                    // every agent has one cell at most
  std::vector<std::size_t> first = {0};  // of the cells of each agent held; at last their number
  std::vector<std::size_t> level;        // by cell, ascending within an agent
  std::vector<double> X, y;  // [cells][d] and [cells]: sums over rows; X[.][0] is their number
  std::size_t count() const { return level.size(); }
};

struct LevelVariances {
  Vector D;  // of the random coefficients
  double tau2 = 0, s2 = 1;
};

// Which coefficients vary between agents, and which of them share a variance.
struct LevelEffects {
  std::vector<std::size_t> random;  // coefficients
  std::vector<std::size_t> group;   // of each of them
  std::size_t groups = 0;
};

// The evidence as a function of the variances: x_c is integrated out (restricted: REML), or has its
// best value (ML).
class LevelEvidence {
 public:
  LevelEvidence(const Moments& moments, const LevelCells& cells, std::vector<std::size_t> random,
                double centre_precision, Team& team, bool restricted = true);

  double operator()(const LevelVariances& at);  // its logarithm

  // How it changes with the groups' variances, tau^2 and s^2, in this order: its gradient is
  // (up - down) / 2, and the average information is close to its curvature.
  struct Slopes {
    Vector up, down;
    Matrix information;
  };
  Slopes slopes(const LevelEffects& effects);

  // At the point of the last value.
  double value() const { return value_; }
  const Vector& centre() const { return centre_; }
  const Matrix& centre_cov() const { return centre_cov_; }
  const Vector& level_effects() const { return w_; }
  // The covariance of w_g and w_h, and of w_g and x_c. Both need slopes() at this point.
  double level_cov(std::size_t g, std::size_t h) const;
  void centre_level_cov(std::size_t g, std::span<double> out) const;
  // Information that the rows have on a level's effect: Q_g' V^-1 Q_g. Needs slopes().
  double level_information(std::size_t g) const { return information_[g]; }
  // X_i' V^-1 X_i of an agent held. Needs slopes().
  Matrix agent_information(std::size_t agent) const;

  const LevelVariances& at() const { return at_; }
  const Moments& moments() const { return m_; }
  const LevelCells& cells() const { return cells_; }
  const std::vector<std::size_t>& random() const { return random_; }
  double rows() const { return N_; }
  double yy() const { return yy_; }
  const Vector& column_squares() const { return column_squares_; }  // diagonal of X'X
  Team& team() const { return team_; }

 private:
  struct First;
  struct Second;
  void add_first(std::size_t agent, First& space, double* out);
  void solve_levels(const double* sums);
  void begin_second(std::size_t agent, const LevelEffects& effects, Second& space) const;
  void add_gradient(std::size_t agent, const LevelEffects& effects, const Second& space,
                    double* out) const;
  void add_information(std::size_t agent, const LevelEffects& effects, const Second& space,
                       Matrix& by_cell, double* out) const;
  void add_to_rows(Leaves run, MatrixSpan E) const;
  // Sums over the cells of each level, in the order of agents; on all ranks.
  Matrix by_level(const Matrix& by_cell) const;

  const Moments& m_;
  const LevelCells& cells_;
  std::vector<std::size_t> random_;
  double precision_;
  bool restricted_;
  Team& team_;
  double N_ = 0, yy_ = 0;
  Vector column_squares_;
  // By agent held or by cell, at the point of the last value.
  std::vector<double> W_, v_;  // X'V^-1 X and X'V^-1 y without the levels
  Matrix cell_;                // [cells][d + 2]: B (Q'V^-1 X), q (Q'V^-1 y), the diagonal of E
  Matrix reach_;               // [cells][q]: E = rows / s^2 - reach reach'
  TeamSum first_;
  // Of the levels.
  LevelSystem system_;
  Matrix U_, UH_;  // [levels][d]: S^-1 B, and that times the covariance of x_c
  Vector g_, w_;   // [levels]: Q'V^-1 (y - X x_c), and the effects
  Vector information_;
  LevelVariances at_;
  Vector centre_;
  Matrix centre_cov_;
  double value_ = 0;
};

// The variances of largest evidence.
struct LevelDecomposition {
  Covariance covariance = Covariance::kScalar;
  LevelVariances variances;
  double log_evidence = 0;
  double numbers = 0;  // variances of effects that are not 0
  double bic = 0;      // -2 log evidence + numbers log(agents)
  bool converged = true;
};

struct LevelOptions {
  double tolerance = 1e-9;        // largest relative change of a variance in the last step
  double evidence_tolerance = 0;  // a step that gains no more is the last one
  int iterations = 200;           // at most, for each form of D
};

// One form of D, searched from `start`; `evidence` is left at the result.
LevelDecomposition climb_levels(const LevelEffects& effects, const LevelVariances& start,
                                const LevelOptions& options, LevelEvidence& evidence);

// Scalar and diagonal D, or the form of `start` alone where there is one. The smallest BIC wins,
// and comes first.
std::vector<LevelDecomposition> decompose_levels(const LevelOptions& options,
                                                 const LevelDecomposition* start,
                                                 LevelEvidence& evidence);

// One variance for all coefficients that vary, or one each.
LevelEffects effects_of(Covariance covariance, const std::vector<std::size_t>& random);

}  // namespace affpcl
