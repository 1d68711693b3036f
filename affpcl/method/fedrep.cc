#include "affpcl/method/fedrep.h"

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<FedRep::Config>& FedRep::params() {
  static const Params<Config> kParams = {
      {"rank", &Config::rank, "columns of the shared representation, at most d", between(1, 10000)},
      {"head_steps", &Config::head_steps, "steps of an agent's head for each local step",
       between(1, 10000)},
  };
  return kParams;
}

MethodKind FedRep::kind() {
  return method_kind_of<FedRep>(
      "fedrep", "a shared linear representation and each agent's own head (Collins et al. 2021)");
}

void FedRep::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  const std::vector<double> x0 = central_start(setup.problem).x;
  if (std::any_of(x0.begin(), x0.end(), [](double x) { return x != 0; }))
    throw BadInput(
        "fedrep's models are B w, which start at 0; this problem's unknowns start elsewhere, as "
        "where they are no weights of features");
  r_ = std::min(config_.rank, d);
  w_ = agent.add("w", r_);
  x_ = agent.add("x", d);
  B_ = centre.add("B", d * r_);
  moved_ = sum.add("moved", d * r_);
}

void FedRep::start(const Problem&, const Key& key, Centre centre) const {
  const std::span<double> B = centre.mutate(B_);
  for (int c = 0; c < r_; ++c)
    normals_of(key, c, Purpose::kMethod,
               B.subspan(static_cast<std::size_t>(c * x_.rows), static_cast<std::size_t>(x_.rows)));
  orthonormalise(B);
}

void FedRep::orthonormalise(std::span<double> B) const {
  const int d = x_.rows;
  for (int c = 0; c < r_; ++c) {
    double* b = B.data() + c * d;
    for (int e = 0; e < c; ++e) {
      const double* q = B.data() + e * d;
      double along = 0;
      for (int j = 0; j < d; ++j) along += q[j] * b[j];
      for (int j = 0; j < d; ++j) b[j] -= along * q[j];
    }
    double square = 0;
    for (int j = 0; j < d; ++j) square += b[j] * b[j];
    for (int j = 0; j < d; ++j) b[j] /= std::sqrt(square);
  }
}

void FedRep::combine(In B, In w, int lanes, Out x) const {
  for (int j = 0; j < x.rows; ++j) {
    std::fill_n(x.row(j), lanes, 0.0);
    for (int c = 0; c < r_; ++c)
      for (int l = 0; l < lanes; ++l) x.row(j)[l] += B.at(c * x.rows + j, l) * w.row(c)[l];
  }
}

void FedRep::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const In w = block.agents[w_];
  const int d = x_.rows, lanes = block.lanes().count;
  const Out moved = scratch.rows(d * r_), B = scratch.rows(d * r_), x = scratch.rows(d),
            g = scratch.rows(d);
  fill(moved, 0);
  for (int k = 0; k < block.batch.steps; ++k) {
    copy(block.centre[B_], B);
    add_scaled(B, 1, moved);
    combine(B, w, lanes, x);
    direction(block, k, x, g);
    const double alpha = block.central_step(k);
    for (int c = 0; c < r_; ++c)
      for (int j = 0; j < d; ++j)
        for (int l = 0; l < lanes; ++l)
          moved.row(c * d + j)[l] -= alpha * g.row(j)[l] * w.row(c)[l];
  }
  message.add(moved_, moved);
}

void FedRep::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(B_), mean[moved_]);
  orthonormalise(centre.mutate(B_));
}

void FedRep::update(const Block& block, Mean) const {
  Scratch& scratch = block.scratch();
  const Out w = block.agents[w_], x = block.agents[x_], g = scratch.rows(x_.rows),
            head = scratch.rows(r_);
  const In B = block.centre[B_];
  const int d = x_.rows, lanes = block.lanes().count;
  for (int k = 0; k < block.batch.steps; ++k) {
    const In alpha = block.step_sizes(k);
    for (int h = 0; h < config_.head_steps; ++h) {
      combine(B, w, lanes, x);
      direction(block, k, x, g);
      for (int c = 0; c < r_; ++c)
        dot(g, {B.p + static_cast<std::ptrdiff_t>(c) * d, d, 1}, head.lanes, head.row(c));
      descend(w, alpha, head);
    }
  }
  combine(B, w, lanes, x);
}

}  // namespace affpcl
