// What agents face: n systems E G(s, x^i) = E b^i(s), s ~ mu^i, seen only through samples. In the
// paper G is linear, G(s, x) = A(s) x (eq:sys); methods need only the direction G(s, x) - b.
//
// A problem is one replicate's instance and const at run time. It answers for a whole block of
// agents per call; inside is a plain loop. The core is six functions. What only some problems have
// (densities, exact means, finitely many samples, names, ...) is a facet (facets.h).
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/math/blocks.h"
#include "affpcl/problem/facets.h"
#include "affpcl/problem/made_store.h"
#include "affpcl/random/streams.h"

namespace affpcl {

struct Shape {
  std::int64_t agents = 0;
  int d = 0;          // unknowns of an agent
  int k = 0;          // weights theta of the objective b^i = Phi theta^i; 0: there is no Phi
  int p = 0;          // ratio features psi the problem offers; 0: none
  bool acts = false;  // what is drawn depends on the iterate (on-policy control)
};

// The solutions, where they can be computed.
struct Truth {
  MadeStore x;                 // x^i_*, d rows
  std::vector<double> xc;      // x^c_* of eq:sys-central
  std::vector<double> thetac;  // theta^c_* of eq:sys-objective; empty where it is not known
};

struct CentralStart {
  std::vector<double> x, theta;  // x^c_0 and theta^c_0; empty: zeros
};

class Problem {
 public:
  virtual ~Problem() = default;

  virtual Shape shape() const = 0;
  // What an agent remembers between samples (a Markov chain's state), and what one sample holds.
  virtual void declare(Layout& world, Layout& sample) const = 0;
  virtual void draw(const Draw& draw, Agents world, Out s) const = 0;
  virtual void objective(Lanes lanes, In s, Out b) const = 0;  // b^i(s_i)
  // g = G(s_i, x_i) - b, and G(s_i, x_i) itself where b has no rows. With b = b^i(s) it is the
  // agent's direction g^i(x), with b = bhat^c(s) the central one, g^{c->i}. G is the same function
  // for all agents: what differs between them belongs in the sample s or in b^i.
  virtual void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const = 0;
  // Where agents start, x^i_0, and where the centre does; zeros where it is left as it is.
  virtual void start(Lanes lanes, Out x) const;
  virtual CentralStart central_start() const { return {}; }

  virtual Facets facets() const { return {}; }

  // From now on this process asks of these blocks only; what is kept of the others may go.
  virtual void keep(std::int64_t first_block, std::int64_t last_block);

  const LinearObjective* linear() const { return facets().linear; }
  const Means* means() const { return facets().means; }
  const Finite* finite() const { return facets().finite; }
  const Densities* densities() const { return facets().densities; }
  const Cells* ratio_cells() const { return facets().ratio_cells; }

  const Truth* truth() const { return truth_.xc.empty() ? nullptr : &truth_; }
  // The error of each agent's x, one row: the squared distance to the truth, or the problem's own.
  void error(Lanes lanes, In x, Scratch& scratch, Out one_row) const;

 protected:
  // Fills truth_ from the means; a derived constructor's last act.
  void solve(const AgentShare& share = all_agents());
  Truth truth_;

 private:
  void solve_block(std::int64_t block, Out x, double* sums) const;
};

// g -= b, where b has rows: the end of a direction.
void subtract_objective(In b, Out g);

// x^c_0 and theta^c_0, zeros written out.
CentralStart central_start(const Problem& problem);

// How many samples of an agent there are; INT64_MAX where they never end.
std::int64_t most_samples(const Problem& problem);

// lambda^i, lambda^c, lambda^b: smallest eigenvalues of the symmetric parts of Abar^i, Abar^0 and
// the central objective's system. Needs means.
struct Monotonicity {
  std::vector<double> agents;
  double central = 0, objective = 0;  // objective: 0 where there is no Phi
};
Monotonicity monotonicity(const Problem& problem);

// Abar^i (d x d, row major) of every agent of a block, one after the other; for tests, scores and
// small solves. Needs means.
std::vector<double> mean_matrices(const Problem& problem, Lanes lanes);

}  // namespace affpcl
