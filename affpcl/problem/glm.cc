#include "affpcl/problem/glm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

using Config = Glm::Config;

Params<Config> params_of(std::array<std::string_view, 2> labels, std::string_view labels_doc) {
  return {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "features; unknowns of each output", between(1, 10000)},
      {"delta_env", &Config::delta_env,
       "environment heterogeneity: means of length delta_env * spread", between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "objective heterogeneity: weights at distance delta_obj from those of the base",
       between(0, 1e6)},
      {"spread", &Config::spread, "how far apart environments are at delta_env = 1",
       between(0, 1e6)},
      {"length", &Config::length, "length of an output's base weights", between(0, 1e3)},
      {"noise", &Config::noise, "noise of the linear predictor, which collaboration can average",
       between(0, 1e3)},
      {"labels", &Config::drawn, labels, labels_doc},
      {"Phi", &Config::Phi,
       "central objective: channels (linear in the features and the noise); link: the model's own, "
       "AffPCL is independent"},
      {"environments", &Config::environments, "distinct environments; 0: one per agent",
       between(0, kMostAgents)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
}

// The entry of one model; defaults that differ from Config's are given.
ProblemKind kind_of(std::string_view name, std::string_view doc, Link link, Params<Config> params,
                    std::initializer_list<std::pair<std::string_view, Value>> defaults = {}) {
  std::vector<Param> table = params.table();
  for (const auto& [key, value] : defaults)
    for (Param& p : table)
      if (p.name == key) p.fallback = value;
  return {name, doc, std::move(table),
          [link, params = std::move(params)](const Values& v, std::uint64_t seed,
                                             std::uint32_t replicate) {
            return std::make_unique<Glm>(link, params.read(v), seed, replicate);
          }};
}

constexpr std::string_view kLabelsDoc =
    "drawn, or their means: without the noise of an agent's own labels";

double quantile_of(double normal) { return std::erfc(-normal / std::numbers::sqrt2) / 2; }

// A count by the inverse of its distribution function; z is a standard normal.
double poisson_count(double rate, double z) {
  constexpr double kMost = 500;  // above it exp(-rate) underflows before long: a normal instead
  if (rate > kMost) return std::max(0.0, std::round(rate + std::sqrt(rate) * z));
  const double u = quantile_of(z);
  double p = std::exp(-rate), below = p, count = 0;
  while (below <= u && p > 0) p *= rate / ++count, below += p;
  return count;
}

// Labels drawn from their means, all with one normal: a class beside class 0, or a count.
void draw_labels(Link link, double z, std::span<double> means) {
  if (link == Link::kPoisson) {
    means[0] = poisson_count(means[0], z);
    return;
  }
  const double u = quantile_of(z);
  double below = 0;
  for (double& p : means) {
    const bool hit = u >= below && u < below + p;
    below += p;
    p = hit ? 1 : 0;
  }
}

constexpr int kMostOutputs = 3;

// mu in every lane, in place.
void mean_labels_of(Link link, int lanes, Out u) {
  double one[kMostOutputs];
  for (int l = 0; l < lanes; ++l) {
    for (int o = 0; o < u.rows; ++o) one[o] = u.row(o)[l];
    mean_labels(link, {one, static_cast<std::size_t>(u.rows)});
    for (int o = 0; o < u.rows; ++o) u.row(o)[l] = one[o];
  }
}

}  // namespace

ProblemKind Logistic::kind() {
  return kind_of("logistic",
                 "logistic regression on Gaussian features: directions that are not linear in x",
                 Link::kCategorical, params_of({"probability", "binary"}, kLabelsDoc));
}

ProblemKind softmax_kind() {
  Params<Config> params = params_of({"probability", "class"}, kLabelsDoc);
  params.add({{"classes", &Config::classes, "number of classes", between(2, kMostOutputs + 1)}});
  return kind_of("softmax", "softmax regression on Gaussian features: logistic of several classes",
                 Link::kCategorical, std::move(params), {{"classes", std::int64_t{3}}});
}

ProblemKind poisson_kind() {
  return kind_of("poisson", "Poisson regression on Gaussian features: counts with a log link",
                 Link::kPoisson, params_of({"rate", "count"}, kLabelsDoc),
                 {{"length", 0.4}, {"noise", 0.3}, {"spread", 1.0}});
}

Glm::Glm(Link link, const Config& config, std::uint64_t seed, std::uint32_t replicate)
    : link_(link), config_(config), q_(config.classes - 1) {
  const int d = config_.dim;
  const Key key{seed, replicate, 0};
  laws_ = NormalDensities(key,
                          {.agents = config_.agents,
                           .distinct = config_.environments,
                           .dim = d,
                           .radius = config_.delta_env * config_.spread,
                           .first_central = config_.first_central},
                          {0, d});
  for (std::int64_t i = 0; i < config_.agents; ++i)
    for (int o = 0; o < q_; ++o) {
      const bool apart = !(i == 0 && config_.first_central);
      const std::vector<double> w =
          weights_near(key, random_direction(key, o, Purpose::kTheta, d, config_.length),
                       i * q_ + o, apart ? config_.delta_obj : 0);
      weights_.insert(weights_.end(), w.begin(), w.end());
    }
  solve_truth();
}

std::span<const double> Glm::m(std::int64_t agent) const {
  return {laws_.mean(agent % laws_.environments()), static_cast<std::size_t>(config_.dim)};
}

void Glm::solve_truth() {
  const auto d = static_cast<std::size_t>(config_.dim), q = static_cast<std::size_t>(q_),
             D = d + q;  // features and noise
  const auto m_of = [&](std::int64_t i) { return m(i); };
  const double share = 1 / static_cast<double>(config_.agents);
  Matrix all(q, d), Ecy(q, D + 1), Ecc(D + 1, D + 1);  // means over agents; c = (1, phi, xi)
  truth_.x = MadeStore(q_ * config_.dim, config_.agents);
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    Matrix W(q, D), own(q, d);  // of (phi, xi)
    Vector centre(D);
    std::copy(m(i).begin(), m(i).end(), centre.begin());
    for (std::size_t o = 0; o < q; ++o) {
      std::copy_n(weights(i).begin() + static_cast<std::ptrdiff_t>(o * d), d, W.row(o).begin());
      W(o, d + o) = config_.noise;
    }
    const LinkMoments e = link_moments(link_, centre, W, false);
    for (std::size_t o = 0; o < q; ++o) {
      Ecy(o, 0) += share * e.mean[o];
      for (std::size_t j = 0; j < D; ++j) Ecy(o, j + 1) += share * e.with_phi(o, j);
      for (std::size_t j = 0; j < d; ++j) {
        own(o, j) = e.with_phi(o, j);
        all(o, j) += share * own(o, j);
      }
    }
    for (std::size_t a = 0; a <= D; ++a)
      for (std::size_t b = 0; b <= D; ++b)
        Ecc(a, b) += share * ((a == b && a > 0 ? 1 : 0) +
                              (a == 0 ? 1 : centre[a - 1]) * (b == 0 ? 1 : centre[b - 1]));
    const Matrix X = solve_link(link_, i, i + 1, m_of, own);
    const Out to = truth_.x.block(i / kLanes)[Field{0, q_ * config_.dim}];
    for (int r = 0; r < to.rows; ++r) to.row(r)[i % kLanes] = X.all()[static_cast<std::size_t>(r)];
  }
  truth_.xc = solve_link(link_, 0, config_.agents, m_of, all).all();
  if (config_.Phi == Form::kLink) {
    truth_.thetac = truth_.xc;
    return;
  }
  for (std::size_t o = 0; o < q; ++o) {
    const Vector theta = solve_symmetric(Ecc, Ecy.row(o));
    truth_.thetac.insert(truth_.thetac.end(), theta.begin(), theta.end());
  }
}

void Glm::declare(Layout&, Layout& sample) const {
  sample.add("phi", config_.dim);
  sample.add("xi", q_);
  sample.add("y", q_);
}

// The normal that was drawn in the label's place decides the label.
void Glm::draw(const Draw& draw, Agents world, Out s) const {
  normals_about(mean(world.lanes), draw.key, world.lanes, Purpose::kSample, 0, s);
  std::vector<double> u(static_cast<std::size_t>(q_));
  for (int l = 0; l < world.lanes.count; ++l) {
    const double* w = weights(world.lanes.first + l).data();
    for (int o = 0; o < q_; ++o) {
      double sum = config_.noise * xi(s).row(o)[l];
      for (int r = 0; r < config_.dim; ++r) sum += w[o * config_.dim + r] * s.row(r)[l];
      u[static_cast<std::size_t>(o)] = sum;
    }
    mean_labels(link_, u);
    if (config_.drawn) draw_labels(link_, y(s, 0)[l], u);
    for (int o = 0; o < q_; ++o) s.row(config_.dim + q_ + o)[l] = u[static_cast<std::size_t>(o)];
  }
}

void Glm::objective(Lanes, In s, Out b) const {
  for (int o = 0; o < q_; ++o) scale(phi(s), y(s, o), output(b, o));
}

void Glm::direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const {
  const Scratch::Frame frame(scratch);
  const Out u = scratch.rows(q_);
  for (int o = 0; o < q_; ++o) dot(phi(s), output(x, o), g.lanes, u.row(o));
  mean_labels_of(link_, lanes.count, u);
  for (int o = 0; o < q_; ++o) scale(phi(s), u.row(o), output(g, o));
  subtract_objective(b, g);
}

void Glm::central_label(In s, In theta, int lanes, Out label) const {
  const int width = per_output(), d = config_.dim;
  for (int o = 0; o < q_; ++o) {
    const In own{theta.row(o * width), width, theta.width};
    if (config_.Phi == Form::kLink) {
      dot(phi(s), own, lanes, label.row(o));
      continue;
    }
    dot(phi(s), {own.row(1), d, own.width}, lanes, label.row(o));
    for (int l = 0; l < lanes; ++l) {
      label.row(o)[l] += own.at(0, l);
      for (int e = 0; e < q_; ++e) label.row(o)[l] += own.at(1 + d + e, l) * xi(s).row(e)[l];
    }
  }
  if (config_.Phi == Form::kLink) mean_labels_of(link_, lanes, label);
}

void Glm::Phi(Lanes, In s, In theta, Scratch& scratch, Out bhat) const {
  const Scratch::Frame frame(scratch);
  const Out label = scratch.rows(q_);
  central_label(s, theta, bhat.lanes, label);
  for (int o = 0; o < q_; ++o) scale(phi(s), label.row(o), output(bhat, o));
}

// c (c'theta_o - y_o), or phi (mu_o - y_o) where Phi = link.
void Glm::coe(Lanes, In s, In, In theta, In, Out g) const {
  alignas(64) double space[kMostOutputs * kLanes];
  const Out gap{space, q_, g.lanes};
  central_label(s, theta, g.lanes, gap);
  const int width = per_output(), d = config_.dim;
  for (int o = 0; o < q_; ++o) {
    double* off = gap.row(o);
    for (int l = 0; l < g.lanes; ++l) off[l] -= y(s, o)[l];
    const Out own{g.row(o * width), width, g.lanes};
    if (config_.Phi == Form::kLink) {
      scale(phi(s), off, own);
      continue;
    }
    std::copy_n(off, g.lanes, own.row(0));
    scale(phi(s), off, {own.row(1), d, g.lanes});
    scale(xi(s), off, {own.row(1 + d), q_, g.lanes});
  }
}

void Glm::known(Lanes lanes, In s, Scratch& scratch, Out b0) const {
  const Scratch::Frame frame(scratch);
  const Out u = scratch.rows(q_), sum = scratch.rows(q_);
  fill(sum, 0);
  for (std::int64_t j = 0; j < config_.agents; ++j) {
    const In W{weights(j).data(), q_ * config_.dim, 1};
    for (int o = 0; o < q_; ++o) dot(phi(s), output(W, o), b0.lanes, u.row(o));
    add_scaled(u, config_.noise, xi(s));
    mean_labels_of(link_, lanes.count, u);
    add_scaled(sum, 1 / static_cast<double>(config_.agents), u);
  }
  for (int o = 0; o < q_; ++o) scale(phi(s), sum.row(o), output(b0, o));
}

void Glm::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  laws_.keep(first_block, last_block);
}

}  // namespace affpcl
