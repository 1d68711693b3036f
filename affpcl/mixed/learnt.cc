#include "affpcl/mixed/learnt.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr int kTurns = 3;              // of the law and the decomposition, at most
constexpr double kNear = 0.1;          // of log f and log t: no further turn
constexpr double kLeastWeight = 0.01;  // of a form of D that is kept

// The variances need no more digits than f and t have.
constexpr double kTurnTolerance = 1e-3;

double largest_move(const LearntLaw& now, const Learnt& before) {
  double moved = 0;
  for (std::size_t i = 0; i < now.noise.size(); ++i)
    moved = std::max({moved, std::abs(std::log(now.noise[i] / before.noise[i])),
                      std::abs(std::log(now.wide[i] / before.moments.wide[i]))});
  return moved;
}

DecompositionOptions only(Covariance form, DecompositionOptions options) {
  options.scalar = form == Covariance::kScalar;
  options.diagonal = form == Covariance::kDiagonal;
  options.full = form == Covariance::kFull;
  return options;
}

// exp(-BIC / 2) approximates the evidence of a form with its numbers in D integrated out.
std::vector<WeightedForm> weighted(std::vector<Decomposition> forms) {
  std::sort(forms.begin(), forms.end(),
            [](const Decomposition& a, const Decomposition& b) { return a.bic < b.bic; });
  std::vector<WeightedForm> out;
  double all = 0;
  for (Decomposition& form : forms) {
    const double weight = out.empty() ? 1 : std::exp((out[0].model.bic - form.bic) / 2);
    if (weight < kLeastWeight) continue;
    const MatrixView D = as_matrix(form.variances.D, form.centre.size());
    Matrix root = root_of(D, is_diagonal(D));
    out.push_back({std::move(form), std::move(root), weight});
    all += weight;
  }
  for (WeightedForm& form : out) form.weight /= all;
  return out;
}

}  // namespace

Learnt learn_agents(const Moments& moments, const DecompositionOptions& options, Team& team) {
  Learnt learnt;
  learnt.tried = decompose(moments, options, team).tried;
  learnt.forms = weighted(learnt.tried);
  learnt.law = AgentLaw::plain();
  learnt.moments = moments;
  learnt.noise.assign(moments.held(), 1.0);
  if (options.plain || moments.n < 2) return learnt;
  DecompositionOptions again = options;
  again.evidence_tolerance = std::max(options.evidence_tolerance, kTurnTolerance);
  bool relearnt = false;
  for (int turn = 0;; ++turn) {
    LearntLaw now = learn_law(moments, learnt.best(), team);
    learnt.law = now.law;
    if (turn == kTurns || !team.processes().any(largest_move(now, learnt) >= kNear)) break;
    learnt.moments = divided(moments, now);
    learnt.noise = std::move(now.noise);
    const Variances near = learnt.best().variances;
    again.start = &near;
    learnt.forms =
        weighted(decompose(learnt.moments, only(learnt.best().covariance, again), team).tried);
    relearnt = true;
  }
  if (!relearnt || learnt.tried.size() == 1) return learnt;
  const Variances near = learnt.best().variances;
  again.start = &near;
  again.scalar = options.scalar, again.diagonal = options.diagonal, again.full = options.full;
  learnt.forms = weighted(decompose(learnt.moments, again, team).tried);
  return learnt;
}

}  // namespace affpcl
