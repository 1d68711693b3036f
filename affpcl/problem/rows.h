// Least squares on recorded rows: an agent's samples are its rows (phi, c, y), with
//
//   A(s) = phi phi',    b^i(s) = phi y,    y = c' theta^i where outcomes c have weights
//
// It is TD(0) without a next state, so the rest is Transitions. Where labels are not made of
// outcome channels there is no Phi that explains them, and one has to be chosen: A itself makes
// AffPCL learning alone (x^c and theta^c are then the same recursion), the identity lets it average
// the noise of A(s) x but not that of labels, and needs the guard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/some_agents.h"
#include "affpcl/problem/transitions.h"

namespace affpcl {

class Rows final : public Transitions,
                   public KnownObjective,
                   public FiniteMeans,
                   public RatioFeatures,
                   public Recorded,
                   public Scores,
                   public SomeAgents {
 public:
  // An agent's rows one after the other, after which it is absent; or at random with replacement.
  enum class Order { kOnce, kRandom };
  enum class Form { kChannels, kIdentity, kFeatures };  // Phi = phi c', I, phi phi'
  struct Data {
    int d = 0, k = 0;                                // k: outcome channels; 0: none
    std::vector<std::int64_t> first;                 // [agents + 1]: whose rows are whose
    std::shared_ptr<const std::vector<double>> phi;  // [rows][d]; lines of one table share it
    std::vector<double> c, y;                        // [rows][k], [rows]
    std::vector<double> theta;                       // [agents][k]: weights of the channels
    Names names;
  };
  // Where the agents of the data stand among those of all sites of a federation.
  struct Place {
    std::int64_t first = 0,
                 agents = -1;  // the first one's number, of so many; -1: there are no others
    std::int64_t samples = 0;  // of an agent that the run asks for
    std::int64_t sites = 1;    // whose agents a sum has at least, or none
    std::function<void(std::span<Fixed>)> sum = {};  // over all sites
  };
  // `ridge` is added to every A(s): with fewer rows than features a solution needs it.
  Rows(Data data, Order order, Form form, double ridge = 0)
      : Rows(std::move(data), order, form, ridge, {}) {}
  Rows(Data data, Order order, Form form, double ridge, Place place);
  static ProblemKind kind();  // from a file (rows_read.cc)
  // What sites of a federation have to agree on, of a site's file; and its problem once they have.
  struct Found {
    std::int64_t agents = 0, folds = 1, repeats = 1;
    std::vector<std::string> features, channels;
  };
  static Found find(const Values& values);
  static std::unique_ptr<Problem> at_site(const Values& values, std::uint32_t replicate,
                                          const Found& found, const Place& place);

  // From now on the error of an agent's x is its mean squared error on these rows of its own, and
  // its solution is that of the rows it learns from.
  void score_on(const Data& other);

  Shape shape() const override;
  std::int64_t most_samples() const override;
  bool present(std::int64_t agent, std::int64_t sample) const override;
  std::int64_t count_present(std::int64_t sample) const override;
  std::int64_t rows_drawn_again(std::int64_t agent) const override {
    return order_ == Order::kRandom ? std::max<std::int64_t>(1, rows(agent)) : 0;
  }
  void draw(const Draw& draw, Agents world, Out s) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  Facets facets() const override;
  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void known(Lanes lanes, In s, Scratch& scratch, Out b0) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  void psi(Lanes lanes, In s, Out features) const override;  // 1, phi
  // Every row of an agent is as likely as the others.
  int outcomes() const override { return static_cast<int>(longest_); }
  double probability(std::int64_t agent, int outcome) const override;
  void outcome(Lanes lanes, int number, Out s) const override;
  void error(Lanes lanes, In x, Scratch& scratch, Out one_row) const override;
  std::vector<double> theta(std::int64_t agent) const override;

  Leaves own() const override { return own_; }
  using SomeAgents::sum_sites;
  void sum_sites(std::span<Fixed> numbers) const override { sum_(numbers); }

  std::int64_t rows(std::int64_t agent) const;  // 0 of an agent whose data are elsewhere
  const double* phi(std::int64_t agent, std::int64_t row) const;  // d numbers
  double y(std::int64_t agent, std::int64_t row) const;

 private:
  const Problem& self() const override { return *this; }
  ObjectiveForm form() const;
  std::size_t at(std::int64_t agent, std::int64_t row) const;
  void average_weights();
  void count_agents_of_sites(std::int64_t samples, std::int64_t fewest_sites);
  void write(std::size_t row, Out s, int lane) const;

  Data data_;
  Order order_;
  Form form_;
  std::int64_t longest_ = 0;
  std::vector<std::int64_t> lengths_;  // sorted
  // Agents of all sites that have a sample, by its number; empty where all data are here.
  std::vector<std::int64_t> present_;
  std::vector<double> theta_mean_;
  double ridge_ = 0;
  std::int64_t agents_ = 0;  // of all sites
  Leaves own_;
  std::function<void(std::span<Fixed>)> sum_;
  // Of the rows that x is scored on, by agent of its own: mean phi phi', phi y, y^2.
  std::vector<double> test_A_, test_b_, test_yy_;
};

}  // namespace affpcl
