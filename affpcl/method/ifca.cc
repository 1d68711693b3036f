#include "affpcl/method/ifca.h"

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<Ifca::Config>& Ifca::params() {
  static const Params<Config> kParams = {
      {"clusters", &Config::clusters, "number of common models", between(1, 10000)},
      {"start_scale", &Config::start_scale, "models start at start_scale N(0, I)", between(0, 1e6)},
      {"form", &Config::published, kForms, kFormDoc},
  };
  return kParams;
}

MethodKind Ifca::kind() {
  return method_kind_of<Ifca>(
      "ifca",
      "several common models; each agent follows the one that fits it best (Ghosh et al. 2020)");
}

void Ifca::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  if (!config_.published && setup.problem.means() == nullptr)
    throw BadInput(
        "ifca with form = \"figure\" chooses clusters by exact means, which this problem does not "
        "have; use form = \"published\"");
  x_ = agent.add("x", setup.problem.shape().d);
  cluster_ = agent.add("cluster", 1, config_.clusters);
  if (!config_.published) {
    Abar_ = agent.add("Abar", x_.rows * x_.rows);
    bbar_ = agent.add("bbar", x_.rows);
  }
  w_ = centre.add("w", config_.clusters * x_.rows);
  moved_ = sum.add_product("moved", config_.clusters, x_.rows);
  followers_ = sum.add_product("followers", config_.clusters, 1);
}

void Ifca::start(const Problem& problem, const Key& key, Centre centre) const {
  const std::vector<double> x0 = central_start(problem).x;
  const std::span<double> w = centre.mutate(w_);
  for (int c = 0; c < config_.clusters; ++c)
    for (int r = 0; r < x_.rows; ++r)
      w[static_cast<std::size_t>(c * x_.rows + r)] =
          x0[static_cast<std::size_t>(r)] +
          config_.start_scale * normal(key, c, Purpose::kMethod, static_cast<std::uint32_t>(r));
}

void Ifca::start(const Problem& problem, Agents agents) const {
  if (config_.published) return;
  const std::vector<double> Abar = mean_matrices(problem, agents.lanes);
  for (int l = 0; l < agents.lanes.count; ++l)
    for (int j = 0; j < Abar_.rows; ++j)
      agents[Abar_].row(j)[l] = Abar[static_cast<std::size_t>(l * Abar_.rows + j)];
  problem.means()->mean_objective(agents.lanes, agents[bbar_]);
}

// |Abar^i w - bbar^i|^2
void Ifca::mean_loss(Agents agents, In w, Out y, Out loss) const {
  const int d = x_.rows;
  for (int r = 0; r < d; ++r) {
    std::fill_n(y.row(r), y.lanes, 0.0);
    for (int c = 0; c < d; ++c) {
      const double* A = agents[Abar_].row(r * d + c);
      for (int l = 0; l < y.lanes; ++l) y.row(r)[l] += A[l] * w.p[c];
    }
  }
  squared_distance(y, agents[bbar_], loss);
}

void Ifca::choose(const Block& block) const {
  Scratch& scratch = block.scratch();
  const Batch& batch = block.batch;
  const Out least = scratch.rows(1), loss = scratch.rows(1), y = scratch.rows(x_.rows),
            cluster = block.agents[cluster_];
  for (int c = 0; c < config_.clusters; ++c) {
    const In w = model(block.centre, c);
    if (!config_.published) {
      mean_loss(block.agents, w, y, loss);
    } else {
      fill(loss, 0);
      const Out one = scratch.rows(1);
      for (int k = 0; k < batch.steps; ++k)
        for (int m = 0; m < batch.samples(k); ++m) {
          block.problem().direction(block.lanes(), batch.s(k, m), {}, w, scratch, y);
          squared_distance(y, batch.b(k, m), one);
          add_scaled(loss, 1, one);
        }
    }
    for (int l = 0; l < block.lanes().count; ++l)
      if (c == 0 || loss.p[l] < least.p[l]) least.p[l] = loss.p[l], cluster.p[l] = c;
  }
}

void Ifca::own_model(Agents agents, Centre centre, Out x) const {
  for (int l = 0; l < agents.lanes.count; ++l) {
    const In w = model(centre, static_cast<int>(agents[cluster_].p[l]));
    for (int r = 0; r < x.rows; ++r) x.row(r)[l] = w.p[r];
  }
}

void Ifca::contribute(const Block& block, Message message) const {
  choose(block);
  const Out start = block.scratch().rows(x_.rows), cluster = block.agents[cluster_];
  own_model(block.agents, block.centre, start);
  const In moved = local_displacement(block, start);
  each_lane(message.present(), [&](int l) {
    const auto c = static_cast<std::ptrdiff_t>(cluster.p[l]);
    double* sum = message.at(moved_, l) + c * moved_.d;
    for (int r = 0; r < x_.rows; ++r) sum[r] += moved.at(r, l);
    message.at(followers_, l)[c] += 1;
  });
}

void Ifca::centre(const Round&, Mean mean, Centre centre) const {
  const std::span<double> w = centre.mutate(w_);
  for (int c = 0; c < config_.clusters; ++c) {
    const double* sum = mean[moved_] + static_cast<std::ptrdiff_t>(c) * moved_.d;
    const double followers = mean[followers_][c];  // as a share of all; a model without any stays
    for (int r = 0; r < x_.rows && followers > 0; ++r)
      w[static_cast<std::size_t>(c * x_.rows + r)] += sum[r] / followers;
  }
}

void Ifca::update(const Block& block, Mean) const {
  own_model(block.agents, block.centre, block.agents[x_]);
}

}  // namespace affpcl
