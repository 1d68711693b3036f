// What a problem may offer beside its core: interfaces that methods, ratios and scores ask for.
// Problem::facets() says which of them a problem has. The letters are the paper's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/math/blocks.h"
#include "affpcl/math/lane_set.h"
#include "affpcl/random/streams.h"

namespace affpcl {

class Problem;
struct Present;

struct Draw {
  Key key;    // key.step counts an agent's samples
  In acting;  // the iterate that acts, where Shape::acts
};

// How the central objective bhat^c is found (method/central_objective.h).
enum class ObjectiveForm { kLearnt, kMoments, kKnown, kTabular };

// One sample of every agent of a block, seen from the centre: its x and theta, and the agents' b.
struct AtCentre {
  Lanes lanes;
  In s, b, x, theta;
};
struct CentralDirections {
  Out g;       // G(s, x) - Phi(s) theta: g^{c->i}
  Out gx;      // G(s, x) - b
  Out gtheta;  // coe, k rows
};

// Objectives of k weights: bhat(s) = Phi(s) theta (eq:sys-objective).
class LinearObjective {
 public:
  virtual ~LinearObjective() = default;
  virtual void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const = 0;
  // Direction of central objective estimation (eq:obj-alg), k rows, given bhat = Phi(s) theta.
  // Here: bhat - b.
  virtual void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const;
  // All directions that the centre needs. Override it where a fused kernel is faster.
  virtual void at_centre(const Problem& problem, const AtCentre& at, Scratch& scratch,
                         const CentralDirections& to) const;
  // theta^i where b^i = Phi theta^i, else empty.
  virtual std::vector<double> theta(std::int64_t agent) const {
    return (void)agent, std::vector<double>{};
  }
};

class KnownObjective {
 public:
  virtual ~KnownObjective() = default;
  virtual void known(Lanes lanes, In s, Scratch& scratch, Out b0) const = 0;  // mean_j b^j(s_i)
};

// Expectations of a linear system under each agent's own mu^i. A nonlinear problem has none.
class Means {
 public:
  virtual ~Means() = default;
  virtual void mean_apply(Lanes lanes, In x, Out Ax) const = 0;  // Abar^i x
  virtual void mean_objective(Lanes lanes, Out b) const = 0;     // bbar^i
  virtual void mean_Phi(Lanes lanes, In theta, Out bhat) const;  // Phibar^i theta
  virtual void mean_coe(Lanes lanes, In theta, Out g) const;     // E_mu^i coe(theta)
  // Bounds E|A(s) x|^2 <= G_A^2 |x|^2, and likewise of the map in coe (Phi, or Phi'Phi in gradient
  // form), for the step-size rules; suprema over s where they are finite. 0: not known.
  virtual double G_A() const { return 0; }
  virtual double G_Phi() const { return 0; }
};

// Finitely many possible samples, each with its probability.
class Finite {
 public:
  virtual ~Finite() = default;
  virtual int outcomes() const = 0;
  virtual double probability(std::int64_t agent, int outcome) const = 0;
  virtual void outcome(Lanes lanes, int number, Out s) const = 0;  // that sample, for every agent
};

// The means of a linear problem with finitely many outcomes, as sums over them.
class FiniteMeans : public Means, public Finite {
 public:
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  void mean_coe(Lanes lanes, In theta, Out g) const override;

 protected:
  virtual const Problem& self() const = 0;
};

// Finitely many kinds of samples. A void sample (class Recorded) is in cell -1.
class Cells {
 public:
  virtual ~Cells() = default;
  virtual int cells() const = 0;
  virtual void cell(Lanes lanes, In s, Out index) const = 0;  // one row
};

// A central objective that is a running mean of `width` numbers per cell (apx:lfa).
class ObjectiveTable : public Cells {
 public:
  virtual int width() const = 0;
  virtual void table_value(Lanes lanes, In s, In b, Out value) const {  // what is averaged
    (void)lanes, (void)s, copy(b, value);
  }
  virtual void table_lift(Lanes lanes, In s, In value, Out bhat) const {  // b from the average
    (void)lanes, (void)s, copy(value, bhat);
  }
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
  // The same for some agents of the block, in either precision. Here the g of the others is taken
  // as 0.
  virtual void accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single,
                               Scratch& scratch, double* M) const;
  // The densities of these agents against their own mixture, and whether there are any. They are
  // used while `present` and these densities last.
  virtual bool has_parts() const { return false; }
  virtual std::unique_ptr<Densities> among(const Present& present) const;
  // rg^i = M' eta^i
  virtual void correct(Lanes lanes, const double* M, Out rg) const = 0;
  // Total variation distance of mu^i and mu^j; NaN where there is no closed form.
  virtual double tv(std::int64_t i, std::int64_t j) const;
  // rho^i at the agent's own sample
  virtual void own(Lanes lanes, In s, Scratch& scratch, Out rho) const = 0;
};

// Where samples depend on the iterate: the law of each agent's samples over finitely many cells
// while its x acts. An agent has its own law; the mixture of all travels in the round's sum
// (density/occupancy.h).
class Occupancy : public Cells {
 public:
  virtual int counted() const { return 0; }  // states whose visits are counted for it; 0: none
  virtual void visit(Lanes lanes, In s, Out index) const;  // the counted state, one row
  // q^i(cell) up to a factor; visits has counted() rows.
  virtual void law(Lanes lanes, In x, In visits, Scratch& scratch, Out q) const = 0;
};

// The oracle of ex:couple: s^i ~ mu^i and s^0 ~ mu^0 that are the same with probability
// 1 - TV(mu^i, mu^0).
class Pairs {
 public:
  virtual ~Pairs() = default;
  virtual void draw_pair(const Draw& draw, Lanes lanes, Out own, Out mixed) const = 0;
};

// Features that the problem offers for learnt density ratios, Shape::p rows.
class RatioFeatures {
 public:
  virtual ~RatioFeatures() = default;
  virtual void psi(Lanes lanes, In s, Out features) const = 0;
};

// Recorded data end, for some agents sooner than for others. An agent without a sample of that
// number is absent: it draws a void one (A, b, Phi and psi are 0, its cell is -1), takes no step,
// and means are over the agents that are present.
class Recorded {
 public:
  virtual ~Recorded() = default;
  virtual std::int64_t most_samples() const = 0;  // of any agent
  virtual bool present(std::int64_t agent, std::int64_t sample) const = 0;
  virtual std::int64_t count_present(std::int64_t sample) const = 0;
  // The number of an agent's rows where they are drawn with replacement; 0: each is drawn once.
  virtual std::int64_t rows_drawn_again(std::int64_t agent) const { return (void)agent, 0; }
};

// Errors that are not the squared distance to the truth, or beside it. Needs a truth.
class Scores {
 public:
  virtual ~Scores() = default;
  virtual void error(Lanes lanes, In x, Scratch& scratch, Out one_row) const = 0;
  // Other measures, reported beside it: their names, and one row each.
  virtual std::vector<std::string> more_errors() const { return {}; }
  virtual void more_errors(Lanes lanes, In x, Out rows) const { (void)lanes, (void)x, (void)rows; }
};

// Where agents and unknowns have names (recorded data), the solutions themselves are of interest
// and are written out.
struct Names {
  std::vector<std::string> agents, unknowns;
};

// All of them, nullptr where there is none. The pointers are valid as long as the problem is.
struct Facets {
  const LinearObjective* linear = nullptr;  // exactly where Shape::k > 0
  const KnownObjective* known = nullptr;
  const ObjectiveTable* table = nullptr;
  // The form of the central objective where a method's spec leaves it open.
  ObjectiveForm form = ObjectiveForm::kLearnt;
  const Means* means = nullptr;
  const Finite* finite = nullptr;
  const Densities* densities = nullptr;
  const Cells* ratio_cells = nullptr;       // what counts as one cell where ratios are counted
  const RatioFeatures* features = nullptr;  // exactly where Shape::p > 0
  const Pairs* pairs = nullptr;
  // Exactly where Shape::acts: the exact law, and the one that counts what an agent cannot compute.
  const Occupancy* occupancy = nullptr;
  const Occupancy* counted_occupancy = nullptr;
  const Recorded* recorded = nullptr;
  const Scores* scores = nullptr;
  const Names* names = nullptr;
};

}  // namespace affpcl
