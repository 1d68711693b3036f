// Densities over finitely many cells: psi is one-hot, M collects the directions cell by cell, and
// eta^i is rho^i itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/problem/problem.h"

namespace affpcl {

class FiniteDensities final : public Densities {
 public:
  FiniteDensities() = default;
  // mu is [agents][cells]; a sample's row `cell_row` says which cell it is in.
  FiniteDensities(int cells, std::vector<double> mu, int cell_row);

  double mu(std::int64_t agent, int cell) const { return mu_[index(agent, cell)]; }
  double mu0(int cell) const { return mu0_[static_cast<std::size_t>(cell)]; }
  double rho(std::int64_t agent, int cell) const { return rho_[index(agent, cell)]; }
  // A cell of mu^i, given a uniform.
  int pick(std::int64_t agent, double u) const;

  int p() const override { return cells_; }
  void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override;
  void correct(Lanes lanes, const double* M, Out rg) const override;
  double tv(std::int64_t i, std::int64_t j) const override;
  void own(Lanes lanes, In s, Scratch& scratch, Out rho) const override;
  void accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single, Scratch& scratch,
                       double* M) const override;
  bool has_parts() const override { return true; }
  std::unique_ptr<Densities> among(const Present& present) const override;

 private:
  class Among;

  std::size_t index(std::int64_t agent, int cell) const {
    return static_cast<std::size_t>(agent * cells_ + cell);
  }
  int cell_of(In s, int lane) const { return static_cast<int>(s.row(cell_row_)[lane]); }

  int cells_ = 0, cell_row_ = 0;
  std::vector<double> mu_, cumulative_, rho_;  // [agents][cells]
  std::vector<double> mu0_;                    // the mixture
};

}  // namespace affpcl
