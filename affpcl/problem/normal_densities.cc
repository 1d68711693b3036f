#include "affpcl/problem/normal_densities.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <utility>

#include "affpcl/math/kernels.h"
#include "affpcl/problem/agent_share.h"
#include "affpcl/problem/present.h"

namespace affpcl {
namespace {

double squared_length(std::span<const double> m) {
  double square = 0;
  for (const double x : m) square += x * x;
  return square;
}

// The chosen lanes of some rows, side by side.
In gathered(LaneSet which, In rows, Scratch& scratch) {
  if (rows.width == 1) return rows;
  const Out to = scratch.rows(rows.rows);
  for (int r = 0; r < rows.rows; ++r) {
    int next = 0;
    each_lane(which, [&](int l) { to.row(r)[next++] = rows.row(r)[l]; });
    std::fill(to.row(r) + next, to.row(r) + kLanes, 0.0);
  }
  return to;
}

}  // namespace

// The means of the environments, and mu^0: each made when it is first needed, for learnt ratios
// never need those of all agents.
class NormalDensities::Environments {
 public:
  Environments(std::int64_t agents, int dim, std::vector<double> means)
      : agents_(agents),
        dim_(dim),
        count_(static_cast<std::int64_t>(means.size()) / dim),
        listed_(std::move(means)) {}
  Environments(const Key& key, const NormalEnvironments& e)
      : agents_(e.agents),
        dim_(e.dim),
        count_(e.radius == 0     ? 1
               : e.distinct == 0 ? e.agents
                                 : std::min(e.distinct, e.agents)),
        key_(key),
        radius_(e.radius),
        first_central_(e.first_central) {
    if (count_ < agents_) listed_ = all();
  }

  std::int64_t count() const { return count_; }
  std::vector<double> mean(std::int64_t environment) const {
    if (!listed_.empty()) {
      const auto first = listed_.begin() + environment * dim_;
      return {first, first + dim_};
    }
    if (radius_ == 0 || (environment == 0 && first_central_))
      return std::vector<double>(static_cast<std::size_t>(dim_));
    return random_direction(key_, environment, Purpose::kEnvironment, dim_, radius_);
  }
  const std::vector<double>& means() {  // [environments][dim]
    if (!listed_.empty()) return listed_;
    std::call_once(drawn_, [&] { means_ = all(); });
    return means_;
  }
  const Mixture& mixture() {
    std::call_once(mixed_, [&] {
      std::vector<double> weights;
      for (std::int64_t e = 0; e < count_; ++e) {
        const std::int64_t dealt = (agents_ - e + count_ - 1) / count_;  // agents that have it
        weights.push_back(static_cast<double>(dealt) / static_cast<double>(agents_));
      }
      mixture_ = Mixture(dim_, means(), weights);
    });
    return mixture_;
  }

 private:
  std::vector<double> all() const {
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(count_ * dim_));
    for (std::int64_t e = 0; e < count_; ++e) {
      const std::vector<double> m = mean(e);
      all.insert(all.end(), m.begin(), m.end());
    }
    return all;
  }

  std::int64_t agents_;
  int dim_;
  std::int64_t count_;
  Key key_{};
  double radius_ = 0;
  bool first_central_ = false;
  std::vector<double> listed_;  // where there are fewer than agents, or they were given
  std::vector<double> means_;
  Mixture mixture_;
  std::once_flag drawn_, mixed_;
};

// Against the mixture of the environments that the agents present have, each with their share.
// Environments of absent agents have no component: its logit could be far above all others.
class NormalDensities::Among final : public Densities {
 public:
  Among(const NormalDensities& all, const Present& present) : all_(all), present_(present) {
    std::vector<double> shares(static_cast<std::size_t>(all.environments()));
    for (std::size_t b = 0; b < present.blocks.size(); ++b)
      each_lane(present.blocks[b], [&](int l) {
        const std::int64_t agent = static_cast<std::int64_t>(b) * kLanes + l;
        shares[static_cast<std::size_t>(all.environment(agent))] +=
            1 / static_cast<double>(present.count);
      });
    std::vector<double> means, weights;
    for (std::size_t e = 0; e < shares.size(); ++e) {
      if (shares[e] == 0) continue;
      const double* m = all.mean(static_cast<std::int64_t>(e));
      means.insert(means.end(), m, m + all.dim_);
      weights.push_back(shares[e]);
      environments_.push_back(static_cast<int>(e));
    }
    mixture_ = Mixture(all.dim_, means, weights);
  }

  int p() const override { return all_.p(); }
  void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override {
    accumulate_some(present_.of(lanes), lanes, s, g, false, scratch, M);
  }
  void accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single, Scratch& scratch,
                       double* M) const override {
    const Scratch::Frame frame(scratch);
    const In g_some = gathered(which, g, scratch);
    const auto count = static_cast<std::ptrdiff_t>(environments_.size());
    double* const part = scratch.numbers(static_cast<std::size_t>(count * g.rows));
    std::fill_n(part, count * g.rows, 0.0);
    if (count == 1) {
      const double one = 1;
      kernels::add_product(g_some, In{&one, 1, 1}, count_lanes(which), part);
    } else {
      mixture_.accumulate(gathered(which, all_.observed(s), scratch),
                          gathered(which, all_.mean(lanes), scratch), g_some, count_lanes(which),
                          single ? Precision::kSingle : Precision::kDouble, scratch, part);
    }
    for (std::ptrdiff_t r = 0; r < g.rows; ++r)
      for (std::ptrdiff_t e = 0; e < count; ++e)
        M[r * all_.environments() + environments_[static_cast<std::size_t>(e)]] +=
            part[r * count + e];
  }
  void correct(Lanes lanes, const double* M, Out rg) const override { all_.correct(lanes, M, rg); }
  double tv(std::int64_t i, std::int64_t j) const override { return all_.tv(i, j); }
  void own(Lanes lanes, In s, Scratch& scratch, Out rho) const override {
    if (environments_.size() == 1) return fill(rho, 1);
    mixture_.own_ratio(all_.observed(s), all_.mean(lanes), lanes.count, scratch, rho);
  }

 private:
  const NormalDensities& all_;
  const Present& present_;
  std::vector<int> environments_;
  Mixture mixture_;
};

std::vector<double> random_direction(const Key& key, std::int64_t agent, Purpose purpose, int dim,
                                     double length) {
  std::vector<double> v(static_cast<std::size_t>(dim));
  normals_of(key, agent, purpose, v);
  const double square = squared_length(v);
  for (double& x : v) x *= length / std::sqrt(square);
  return v;
}

std::vector<double> weights_near(const Key& key, std::vector<double> base, std::int64_t agent,
                                 double distance) {
  if (distance == 0) return base;
  const std::vector<double> u =
      random_direction(key, agent, Purpose::kObjective, static_cast<int>(base.size()), distance);
  for (std::size_t r = 0; r < base.size(); ++r) base[r] += u[r];
  return base;
}

NormalDensities::NormalDensities(const Key& key, const NormalEnvironments& e, Field observed,
                                 const AgentShare& share)
    : NormalDensities(std::make_shared<Environments>(key, e), e.agents, e.dim, observed, share) {}

NormalDensities::NormalDensities(std::int64_t agents, int dim, std::vector<double> means,
                                 Field observed)
    : NormalDensities(std::make_shared<Environments>(agents, dim, std::move(means)), agents, dim,
                      observed, all_agents()) {}

NormalDensities::NormalDensities(std::shared_ptr<Environments> drawn, std::int64_t agents, int dim,
                                 Field observed, const AgentShare& share)
    : dim_(dim), observed_(observed), count_(drawn->count()), drawn_(std::move(drawn)) {
  std::mutex mutex;
  double most = 0;
  const auto make = [environments = drawn_, agents](std::int64_t block, Out rows) {
    double farthest = 0;
    const Lanes lanes = lanes_of(block, agents);
    for (int l = 0; l < lanes.count; ++l) {
      const std::vector<double> m = environments->mean((lanes.first + l) % environments->count());
      for (int r = 0; r < rows.rows; ++r) rows.row(r)[l] = m[static_cast<std::size_t>(r)];
      farthest = std::max(farthest, squared_length(m));
    }
    return farthest;
  };
  mean_ = MadeStore(dim, agents, share, make);
  share.sum(agents, 0, [&](std::int64_t block, double*) {
    const double farthest = make(block, mean_.block(block)[Field{0, dim}]);
    const std::lock_guard lock(mutex);
    most = std::max(most, farthest);
  });
  farthest_ = share.largest(most);
}

const double* NormalDensities::mean(std::int64_t environment) const {
  return drawn_->means().data() + environment * dim_;
}

const Mixture& NormalDensities::mixture() const { return drawn_->mixture(); }

void NormalDensities::accumulate(Lanes lanes, In s, In g, Precision precision, Scratch& scratch,
                                 double* M) const {
  if (p() == 1) {  // one environment: rho = 1
    const double one = 1;
    return kernels::add_product(g, In{&one, 1, 1}, lanes.count, M);
  }
  mixture().accumulate(observed(s), mean(lanes), g, lanes.count, precision, scratch, M);
}

void NormalDensities::accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const {
  accumulate(lanes, s, g, Precision::kDouble, scratch, M);
}

void NormalDensities::accumulate_single(Lanes lanes, In s, In g, Scratch& scratch,
                                        double* M) const {
  accumulate(lanes, s, g, Precision::kSingle, scratch, M);
}

void NormalDensities::accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single,
                                      Scratch& scratch, double* M) const {
  const Scratch::Frame frame(scratch);
  const In g_some = gathered(which, g, scratch);
  if (p() == 1) {
    const double one = 1;
    return kernels::add_product(g_some, In{&one, 1, 1}, count_lanes(which), M);
  }
  mixture().accumulate(gathered(which, observed(s), scratch), gathered(which, mean(lanes), scratch),
                       g_some, count_lanes(which), single ? Precision::kSingle : Precision::kDouble,
                       scratch, M);
}

std::unique_ptr<Densities> NormalDensities::among(const Present& present) const {
  return std::make_unique<Among>(*this, present);
}

void NormalDensities::correct(Lanes lanes, const double* M, Out rg) const {
  const std::int64_t all = environments();
  const std::int64_t first = environment(lanes.first);
  for (int r = 0; r < rg.rows; ++r, M += all) {  // dealt out in turn: runs of neighbours
    std::int64_t e = first;
    for (int l = 0; l < lanes.count; e = 0) {
      const auto run = static_cast<int>(std::min<std::int64_t>(lanes.count - l, all - e));
      std::copy_n(M + e, run, rg.row(r) + l);
      l += run;
    }
  }
}

// Two unit normals overlap by their distance alone: TV = 2 Phi(|m_i - m_j| / 2) - 1.
double NormalDensities::tv(std::int64_t i, std::int64_t j) const {
  const double *a = mean(environment(i)), *b = mean(environment(j));
  double square = 0;
  for (int r = 0; r < dim_; ++r) square += (a[r] - b[r]) * (a[r] - b[r]);
  return std::erf(std::sqrt(square / 8));
}

void NormalDensities::own(Lanes lanes, In s, Scratch& scratch, Out rho) const {
  if (p() == 1) return fill(rho, 1);
  mixture().own_ratio(observed(s), mean(lanes), lanes.count, scratch, rho);
}

}  // namespace affpcl
