#include "affpcl/table/stack.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/dense.h"
#include "affpcl/math/squarem.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr int kParts = 4;  // a weight is a multiple of 1/kParts
// Agents' worth of belief beside the data: in the personalised model, and spread over the grid.
constexpr double kPersonalised = 2, kAnywhere = 1;
// An agent's noise variance is unknown: a prior worth as many rows, around the mean of all agents.
constexpr double kPriorRows = 2;
constexpr int kSteps = 200;
constexpr double kStill = 1e-6;  // largest change of a share in a step of EM

using Shares = std::array<double, kStackGrid>;

// The likelihood of an agent's held-out rows at the points of the grid, the largest being 1.
Shares likelihoods(const StackLosses& of, bool log_losses, double typical) {
  Shares log_p;
  for (std::size_t g = 0; g < kStackGrid; ++g)
    log_p[g] = log_losses
                   ? -of.loss[g]
                   : -(kPriorRows + of.rows) / 2 * std::log(kPriorRows * typical + of.loss[g]);
  const double top = *std::max_element(log_p.begin(), log_p.end());
  for (double& v : log_p) v = std::exp(v - top);
  return log_p;
}

// Posterior shares of the grid's points.
Shares posterior(const Shares& likelihood, const Vector& prior) {
  Shares p;
  double sum = 0;
  for (std::size_t g = 0; g < kStackGrid; ++g) sum += p[g] = likelihood[g] * prior[g];
  for (double& v : p) v /= sum;
  return p;
}

}  // namespace

const std::array<ByKind<double>, kStackGrid>& stack_grid() {
  static const std::array<ByKind<double>, kStackGrid> kGrid = [] {
    std::array<ByKind<double>, kStackGrid> grid;
    std::size_t at = 0;
    for (int a = kParts; a >= 0; --a)  // the personalised model first
      for (int b = kParts - a; b >= 0; --b)
        grid[at++] = {a / double{kParts}, b / double{kParts}, (kParts - a - b) / double{kParts}};
    return grid;
  }();
  return kGrid;
}

void StackLosses::add(const StackLosses& other, double times) {
  for (std::size_t g = 0; g < kStackGrid; ++g) loss[g] += times * other.loss[g];
  rows += times * other.rows;
}

std::vector<ByKind<double>> stack_weights(const std::vector<StackLosses>& losses,
                                          std::size_t agents, bool log_losses, Team& team) {
  const auto first = static_cast<std::size_t>(own_agents(agents, team).first);
  AgentSum totals("losses on held-out rows", 2, agents, team);
  const double* const total = totals([&](std::size_t i, double* out) {
    out[0] += losses[i - first].loss[0], out[1] += losses[i - first].rows;
  });
  // An offset may explain every target: then there is no loss at all.
  const double typical = total[0] > 0 ? total[0] / total[1] : 1;
  std::vector<Shares> likelihood;
  for (const StackLosses& of : losses) likelihood.push_back(likelihoods(of, log_losses, typical));

  Vector prior(kStackGrid, 1.0 / kStackGrid);
  const double all = static_cast<double>(agents) + kPersonalised + kAnywhere;
  AgentSum sum("weights of the models", kStackGrid, agents, team);
  const auto next = [&](const Vector& from) {  // EM: the prior is the mean posterior
    const double* const shares = sum([&](std::size_t i, double* out) {
      const Shares p = posterior(likelihood[i - first], from);
      for (std::size_t g = 0; g < kStackGrid; ++g) out[g] += p[g];
    });
    Vector to(kStackGrid);
    for (std::size_t g = 0; g < kStackGrid; ++g)
      to[g] = (shares[g] + kAnywhere / kStackGrid + (g == 0 ? kPersonalised : 0)) / all;
    return to;
  };
  squarem(prior, kSteps, kStill, next,
          [](const Vector& p) { return *std::min_element(p.begin(), p.end()) > 0; });

  std::vector<ByKind<double>> weights;
  for (const Shares& l : likelihood) {
    const Shares p = posterior(l, prior);
    ByKind<double> w = {};
    for (std::size_t g = 0; g < kStackGrid; ++g)
      for (std::size_t k = 0; k < w.size(); ++k) w[k] += p[g] * stack_grid()[g][k];
    weights.push_back(w);
  }
  return weights;
}

}  // namespace affpcl
