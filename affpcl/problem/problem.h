// What agents face: n systems Abar^i x^i = bbar^i (eq:sys), seen only through samples A(s), b^i(s),
// s ~ mu^i.
//
// A problem is one replicate's instance and const at run time. It answers for a whole block of
// agents per call; inside is a plain loop. The letters are the paper's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/math/blocks.h"
#include "affpcl/random/streams.h"

namespace affpcl {

struct Shape {
  std::int64_t agents = 0;
  int d = 0;          // unknowns of an agent
  int k = 0;          // weights theta of the objective b^i = Phi theta^i; 0: there is no Phi
  int p = 0;          // ratio features psi the problem offers; 0: none
  bool acts = false;  // what is drawn depends on the iterate (on-policy control)
};

// Finite observations whose central objective can be a running mean per cell (apx:lfa): `width`
// numbers each.
struct Table {
  int cells = 0, width = 0;
};

// How the central objective bhat^c is had (method/central_objective.h).
enum class ObjectiveForm { kLearnt, kMoments, kKnown, kTabular };

struct Draw {
  Key key;    // key.step counts an agent's samples
  In acting;  // the iterate that acts, where Shape::acts
};

// Exact density ratios rho^i(s) = psi(s)' eta^i against the mixture mu^0 (eq:ker-het-pcl-alg). psi
// and eta stay inside, so an implementation can fuse the sum over samples and never store psi.
class Densities {
 public:
  virtual ~Densities() = default;
  virtual int p() const = 0;
  // M (p x d) += sum_j psi(s_j) g_j'
  virtual void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const = 0;
  // The same with a kernel in single precision, where there is one.
  virtual bool has_single() const { return false; }
  virtual void accumulate_single(Lanes lanes, In s, In g, Scratch& scratch, double* M) const;
  // rg^i = M' eta^i
  virtual void correct(Lanes lanes, const double* M, Out rg) const = 0;
  // Total variation distance of mu^i and mu^j; NaN where there is no closed form.
  virtual double tv(std::int64_t i, std::int64_t j) const;
  // rho^i at the agent's own sample
  virtual void own(Lanes lanes, In s, Scratch& scratch, Out rho) const = 0;
};

// Where samples depend on the iterate: the law of each agent's samples over finitely many cells
// while its x acts. An agent knows its own law; the mixture of all travels in the round's sum
// (density/occupancy.h).
class Occupancy {
 public:
  virtual ~Occupancy() = default;
  virtual int cells() const = 0;
  virtual void cell(Lanes lanes, In s, Out index) const = 0;  // one row
  virtual int counted() const { return 0; }  // states whose visits are counted for it; 0: none
  virtual void visit(Lanes lanes, In s, Out index) const;  // the counted state, one row
  // q^i(cell) up to a factor; visits has counted() rows.
  virtual void law(Lanes lanes, In x, In visits, Scratch& scratch, Out q) const = 0;
};

// The solutions, where they can be computed.
struct Truth {
  Store x;                     // x^i_*, d rows
  std::vector<double> xc;      // x^c_* of eq:sys-central
  std::vector<double> thetac;  // theta^c_* of eq:sys-objective; empty where there is no Phi
};

class Problem {
 public:
  virtual ~Problem() = default;
  virtual Shape shape() const = 0;

  // What an agent remembers between samples (a Markov chain's state), and what one sample holds.
  virtual void declare(Layout& world, Layout& sample) const = 0;
  virtual void draw(const Draw& draw, Agents world, Out s) const = 0;
  virtual std::int64_t most_samples() const { return INT64_MAX; }  // per agent; recorded data end
  // Recorded data may end sooner for some agents. One without a sample of that number is absent: it
  // draws a void one (A, b, Phi and psi are 0, its cell is -1), takes no step, and means are over
  // those who are present.
  virtual bool present(std::int64_t agent, std::int64_t sample) const {
    return (void)agent, (void)sample, true;
  }
  virtual std::int64_t count_present(std::int64_t sample) const {
    return (void)sample, shape().agents;
  }

  virtual void apply(Lanes lanes, In s, In x, Out Ax) const = 0;  // A(s_i) x_i
  virtual void objective(Lanes lanes, In s, Out b) const = 0;     // b^i(s_i)
  virtual void Phi(Lanes lanes, In s, In theta, Out bhat) const;  // Phi(s_i) theta
  virtual void known(Lanes lanes, In s, Out b0) const;  // b^0(s_i), the mean of all agents' b^j
  // Direction of central objective estimation (eq:obj-alg), k rows; bhat = Phi(s) theta is at hand.
  // Here: bhat - b.
  virtual void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const;
  // The same, put together as they are used; a problem may know a shorter way.
  virtual void residual(Lanes lanes, In s, In b, In x, Out g) const;  // A(s_i) x_i - b
  struct AtCentre {
    Out g;       // A(s) x - Phi(s) theta: g^{c->i}
    Out gx;      // A(s) x - b
    Out gtheta;  // coe, k rows
  };
  virtual void at_centre(Lanes lanes, In s, In b, In x, In theta, const AtCentre& to) const;
  virtual void psi(Lanes lanes, In s, Out features) const;  // p rows
  virtual const Densities* densities() const { return nullptr; }
  // Where Shape::acts: the exact law, or the one that counts what it does not know.
  virtual const Occupancy* occupancy(bool exact) const { return (void)exact, nullptr; }
  // What counts as one cell where ratios are counted; here: the table's cells.
  virtual int ratio_cells() const { return table().cells; }
  virtual void ratio_cell(Lanes lanes, In s, Out index) const { cell(lanes, s, index); }
  // The oracle of ex:couple, where couples(): s^i ~ mu^i and s^0 ~ mu^0 that are the same with
  // probability 1 - TV(mu^i, mu^0).
  virtual bool couples() const { return false; }
  virtual void draw_pair(const Draw& draw, Lanes lanes, Out own, Out mixed) const;

  virtual Table table() const { return {}; }
  // The form of the central objective where a method's spec leaves it open.
  virtual ObjectiveForm objective_form() const { return ObjectiveForm::kLearnt; }
  virtual void cell(Lanes lanes, In s, Out index) const;  // one row
  virtual void table_value(Lanes lanes, In s, In b, Out value) const {
    (void)lanes, (void)s, copy(b, value);
  }
  virtual void table_lift(Lanes lanes, In s, In value, Out bhat) const {
    (void)lanes, (void)s, copy(value, bhat);
  }

  // Expectations under each agent's own mu^i, where they are known (has_means). Here: sums over the
  // outcomes of a finite problem.
  virtual bool has_means() const { return outcomes() > 0; }
  virtual void mean_apply(Lanes lanes, In x, Out Ax) const;      // Abar^i x
  virtual void mean_objective(Lanes lanes, Out b) const;         // bbar^i
  virtual void mean_Phi(Lanes lanes, In theta, Out bhat) const;  // Phibar^i theta
  virtual void mean_coe(Lanes lanes, In theta, Out g) const;     // E_mu^i coe(theta)
  // Bounds E|A(s) x|^2 <= G_A^2 |x|^2, likewise of the map in coe (Phi, or Phi'Phi in gradient
  // form), for the step-size rules; suprema over s where they are finite.
  virtual double G_A() const;
  virtual double G_Phi() const;

  // A finite problem can be enumerated: so many possible samples, each with its probability.
  virtual int outcomes() const { return 0; }
  virtual double probability(std::int64_t agent, int outcome) const;
  virtual void outcome(Lanes lanes, int number, Out s) const;  // that sample, for every agent
  // theta^i where b^i = Phi theta^i, else empty.
  virtual std::vector<double> theta(std::int64_t agent) const {
    return (void)agent, std::vector<double>{};
  }

  virtual std::vector<double> start_x(std::int64_t agent) const;  // x^i_0
  virtual std::vector<double> start_xc() const;                   // x^c_0
  virtual std::vector<double> start_thetac() const;               // theta^c_0

  // Where agents and unknowns have names (recorded data), the solutions themselves are of interest
  // and are written out.
  virtual std::vector<std::string> agent_names() const { return {}; }
  virtual std::vector<std::string> unknown_names() const { return {}; }

  // From now on this process asks of these blocks only; what is kept of the others may go.
  virtual void keep(std::int64_t first_block, std::int64_t last_block) {
    if (truth() != nullptr) truth_.x.keep(first_block, last_block);
  }

  const Truth* truth() const { return truth_.xc.empty() ? nullptr : &truth_; }
  // Squared error of each agent's x, one row. Only where there is a truth.
  virtual void error(Lanes lanes, In x, Out one_row) const;
  // Other measures of error, reported beside it: their names, and one row each.
  virtual std::vector<std::string> more_errors() const { return {}; }
  virtual void more_errors(Lanes lanes, In x, Out rows) const { (void)lanes, (void)x, (void)rows; }

 protected:
  void solve();  // fills truth_ from the means; a derived constructor's last act
  Truth truth_;
};

// lambda^i, lambda^c, lambda^b: smallest eigenvalues of the symmetric parts of Abar^i, Abar^0 and
// the central objective's system. Needs has_means().
struct Monotonicity {
  std::vector<double> agents;
  double central = 0, objective = 0;  // objective: 0 where there is no Phi
};
Monotonicity monotonicity(const Problem& problem);

// Abar^i (d x d, row major) of every agent of a block, one after the other; for tests, scores and
// small solves.
std::vector<double> mean_matrices(const Problem& problem, Lanes lanes);

}  // namespace affpcl
