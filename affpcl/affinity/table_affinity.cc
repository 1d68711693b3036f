#include "affpcl/affinity/table_affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "affpcl/affinity/environments.h"
#include "affpcl/affinity/forecast.h"
#include "affpcl/affinity/join_pilot.h"
#include "affpcl/affinity/seriation.h"
#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Estimate kNone{kNaN, kNaN, kNaN, kNaN};
// Bootstraps of agents: what D and s^2 might be. Many agents leave little open.
constexpr std::size_t kBeliefs = 20, kBeliefsOfMany = 5, kMany = 1000;
constexpr std::size_t kDraws = 200;  // from the posterior, in turn by each belief
constexpr std::size_t kGroups = 10;  // of the jackknife

double real(std::size_t i) { return static_cast<double>(i); }

void add(double factor, const Matrix& A, Matrix& to) {
  for (std::size_t j = 0; j < to.all().size(); ++j) to.all()[j] += factor * A.all()[j];
}
void add_square(const Vector& z, Matrix& to) {  // z z'
  for (std::size_t j = 0; j < z.size(); ++j)
    for (std::size_t k = 0; k < z.size(); ++k) to(j, k) += z[j] * z[k];
}

// The square root of a squared distance with its standard error.
Estimate root(double square, double se, double scale) {
  const double half = normal_limit((1 - kConfidence) / 2) * se;
  const auto length = [&](double v) { return std::sqrt(std::max(0.0, v)) * scale; };
  return {length(square), length(square - half), length(square + half), length(square)};
}

Estimate larger(const Estimate& a, const Estimate& b) {
  if (std::isnan(a.mean)) return b;
  return {std::max(a.mean, b.mean), std::max(a.lo, b.lo), std::max(a.hi, b.hi),
          std::max(a.median, b.median)};
}

// What may be true of a channel: D and s^2, and what follows from them.
struct Belief {
  Variances variances;
  std::vector<double> centre;      // x_c
  std::vector<double> centre_cov;  // once all rows are used
  std::vector<Vector> u;           // x_i - x_c, by agent
  std::vector<Matrix> root;        // R'R is its covariance
  std::vector<double> widened;
  double spent = 0;  // rows that the agents' own coefficients cost
};

struct Channel {
  std::uint32_t number = 0;
  double unit = 1;  // the target's standard deviation
  Moments moments;
  Learnt learnt;
  const Decomposition& model() const { return learnt.best(); }
  Belief best;
  std::vector<Belief> beliefs;
  std::vector<Vector> variance;  // of u_i's coefficients, not quite knowing D
};

// Everything is in units of the target, without its mean.
class Pilot {
 public:
  Pilot(const Frame& frame, const PilotOptions& options, Team& team)
      : frame_(frame),
        seed_(options.seed),
        team_(team),
        n_(frame.agents.size()),
        d_(frame.d),
        rows_(pilot_rows(frame, options)) {
    for (std::size_t c = 0; c < frame.channels; ++c) channels_.push_back(learn(c));
  }

  PilotResult result() {
    PilotResult r;
    r.encoding = frame_.encoding;
    r.files = frame_.files;
    r.names = frame_.agents;
    r.notes = frame_.notes;
    r.rows = frame_.rows;
    r.agents.resize(n_);
    for (const Channel& c : channels_) r.covariance.push_back(c.model().covariance);
    for (std::size_t i = 0; i < n_; ++i) {
      AgentPilot& a = r.agents[i];
      a.rows = frame_.agent_rows(i);
      r.used += a.used = rows_[i].size();
      for (const Channel& c : channels_) a.widened = std::max(a.widened, c.best.widened[i]);
    }
    r.noise_share = noise_share();
    each_agent([&](std::size_t i) { r.agents[i].lambda = lambda(i); });
    r.delta_env = r.delta_obj = kNone;
    if (n_ > 1) compare(r);
    add_notes(r);
    return r;
  }

 private:
  double x(std::size_t row, std::size_t j) const { return frame_.X[j * frame_.rows + row]; }
  double y(std::size_t row, std::size_t c) const { return frame_.Y[c * frame_.rows + row]; }

  Channel learn(std::size_t c) const {
    Channel channel;
    channel.number = static_cast<std::uint32_t>(c);
    channel.unit = frame_.y_sd[c];
    channel.moments = Moments(n_, d_);
    std::vector<double> z(d_);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t row : rows_[i]) {
        for (std::size_t j = 0; j < d_; ++j) z[j] = x(row, j);
        channel.moments.add(i, z, y(row, c));
      }
    channel.learnt = learn_agents(channel.moments, {}, team_);
    channel.best = belief(channel, channel.model());
    channel.variance.resize(n_);
    each_agent([&](std::size_t i) { channel.variance[i] = variance(channel, i); });
    const std::size_t beliefs = n_ > kMany ? kBeliefsOfMany : kBeliefs;
    for (std::size_t b = 0; b < beliefs && n_ > 1; ++b) {
      channel.beliefs.push_back(belief(channel, resampled(channel, b)));
    }
    return channel;
  }

  // The decomposition with D and s^2 of a bootstrap of the agents.
  Decomposition resampled(const Channel& channel, std::size_t which) const {
    const Moments& m = channel.learnt.moments;
    Moments again(n_, d_);
    const Key key{
        .seed = seed_, .replicate = static_cast<std::uint32_t>(which), .step = channel.number};
    for (std::size_t i = 0; i < n_; ++i) {
      const double u = uniform(key, static_cast<std::int64_t>(i), Purpose::kSupport, 0);
      const auto from = std::min(n_ - 1, static_cast<std::size_t>(u * real(n_)));
      std::copy_n(m.A.begin() + static_cast<std::ptrdiff_t>(from * d_ * d_), d_ * d_,
                  again.A.begin() + static_cast<std::ptrdiff_t>(i * d_ * d_));
      std::copy_n(m.b.begin() + static_cast<std::ptrdiff_t>(from * d_), d_,
                  again.b.begin() + static_cast<std::ptrdiff_t>(i * d_));
      again.yy[i] = m.yy[from];
      again.rows[i] = m.rows[from];
      again.wide[i] = m.wide[from];
    }
    DecompositionOptions o;
    o.evidence_tolerance = 1e-3;
    o.start = &channel.model().variances;
    o.scalar = channel.model().covariance == Covariance::kScalar;
    o.diagonal = channel.model().covariance == Covariance::kDiagonal;
    o.full = channel.model().covariance == Covariance::kFull;
    return decompose_known(m, decompose(again, o, team_).best.variances, o.centre_precision, team_);
  }

  Belief belief(const Channel& channel, const Decomposition& model) const {
    Belief belief;
    belief.variances = model.variances;
    belief.centre = model.centre;
    belief.centre_cov = decompose_known(whole(channel), model.variances,
                                        DecompositionOptions{}.centre_precision, team_)
                            .centre_cov;
    belief.u.resize(n_), belief.root.resize(n_), belief.widened.resize(n_);
    std::vector<double> spent(n_);
    each_agent(
        [&](std::size_t i) { spent[i] = residual(channel.learnt.moments, model, i, belief); });
    belief.spent = std::accumulate(spent.begin(), spent.end(), 0.0);
    return belief;
  }

  template <class F>
  void each_agent(F f) const {
    team_.each(static_cast<std::int64_t>(n_),
               [&](std::int64_t i, int) { f(static_cast<std::size_t>(i)); });
  }

  // E z z' of an agent: what its few rows leave open is taken from the others.
  Matrix second_moment(const Moments& m, std::size_t i, const Matrix& common) const {
    const double prior = real(d_) + 1;
    Matrix second(d_, d_);
    for (std::size_t j = 0; j < d_ * d_; ++j)
      second.all()[j] = (m.A[i * d_ * d_ + j] + prior * common.all()[j]) / (m.rows[i] + prior);
    return second;
  }
  Matrix common_moment(const Moments& m) const {
    Matrix sum(d_, d_);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < d_ * d_; ++j)
        sum.all()[j] += m.A[i * d_ * d_ + j] / (m.rows[i] * real(n_));
    return sum;
  }

  // X'X of all rows, as far as the pilot knows, divided by the agents' noise.
  Moments whole(const Channel& channel) const {
    Moments all(n_, d_);
    const Matrix common = common_moment(channel.moments);
    for (std::size_t i = 0; i < n_; ++i) {
      all.rows[i] = real(frame_.agent_rows(i));
      const Matrix second = second_moment(channel.moments, i, common);
      for (std::size_t j = 0; j < d_ * d_; ++j)
        all.A[i * d_ * d_ + j] = all.rows[i] / channel.learnt.noise[i] * second.all()[j];
      all.wide[i] = channel.learnt.moments.wide[i];
    }
    return all;
  }

  // u_i given the pilot's rows, and how many of them it costs: the names are those of
  // docs/explain/fit.md.
  double residual(const Moments& m, const Decomposition& model, std::size_t i,
                  Belief& belief) const {
    const Posterior p = agent_posterior(m, model, i);
    const double s2 = model.variances.s2;
    const MatrixView A(m.A.data() + i * d_ * d_, d_, d_), H(model.centre_cov.data(), d_, d_);
    // M = P A / s^2 and F = I - M with P = (I + D A / s^2)^-1 D; both transposed here.
    Matrix D = MatrixView(model.variances.D.data(), d_, d_), B = multiply(A, D);
    for (std::size_t j = 0; j < d_ * d_; ++j) {
      B.all()[j] = p.widened * B.all()[j] / s2;
      D.all()[j] *= p.widened;
    }
    for (std::size_t j = 0; j < d_; ++j) B(j, j) += 1;
    Matrix M = multiply(A, solve_right(D, B)), F = Matrix::identity(d_);
    for (std::size_t j = 0; j < d_ * d_; ++j) F.all()[j] -= M.all()[j] /= s2;
    // known = P + F H F'; u's own has M H M' instead.
    const Matrix FHF = multiply(transposed(F), multiply(H, F)),
                 MHM = multiply(transposed(M), multiply(H, M));
    Matrix cov(d_, d_);
    for (std::size_t j = 0; j < d_ * d_; ++j)
      cov.all()[j] = p.smoother[j] - FHF.all()[j] + MHM.all()[j];
    symmetrise(cov);
    belief.root[i] = semidefinite_root(cov);
    belief.u[i] = p.x;
    for (std::size_t j = 0; j < d_; ++j) belief.u[i][j] -= model.centre[j];
    belief.widened[i] = p.widened;
    return trace(M);
  }

  Vector variance(const Channel& c, std::size_t i) const {
    const Posterior p = agent_posterior(c.learnt.moments, c.model(), i);
    const Matrix& root = c.best.root[i];
    Vector variance(d_);
    for (std::size_t j = 0; j < d_; ++j) {
      for (std::size_t k = 0; k < d_; ++k) variance[j] += root(k, j) * root(k, j);
      variance[j] = std::max(variance[j] + (p.cov[j * d_ + j] - p.smoother[j * d_ + j]), 0.0);
    }
    return variance;
  }

  static const Belief& by(const Channel& c, std::size_t draw) {
    return c.beliefs[draw % c.beliefs.size()];
  }

  Vector draw_residual(const Channel& c, std::size_t i, std::size_t draw) const {
    const Key key{.seed = seed_, .replicate = static_cast<std::uint32_t>(draw), .step = c.number};
    Vector z(d_), u = by(c, draw).u[i];
    for (std::size_t j = 0; j < d_; ++j)
      z[j] = normal(key, static_cast<std::int64_t>(i), Purpose::kMethod,
                    static_cast<std::uint32_t>(j));
    add_product(1, transposed(by(c, draw).root[i]), z, u);
    return u;
  }

  Estimate noise_share() const {
    double noise = 0, all = 0, freedom = 1;
    for (const Channel& c : channels_) {
      for (std::size_t i = 0; i < n_; ++i)
        noise += c.model().variances.s2 * c.unit * c.unit * c.learnt.noise[i] *
                 real(frame_.agent_rows(i)) / real(frame_.rows);
      all += c.unit * c.unit;
      freedom = std::max(freedom, c.moments.total_rows() - real(d_) - c.best.spent);
    }
    const boost::math::chi_squared_distribution<double> law(freedom);
    const auto scaled = [&](double p) { return noise / all * freedom / quantile(law, p); };
    return {noise / all, scaled((1 + kConfidence) / 2), scaled((1 - kConfidence) / 2), noise / all};
  }

  // Delete-a-group jackknife; its correction matters, since the smallest eigenvalue of few rows is
  // too small.
  Estimate lambda(std::size_t i) const {
    const std::size_t rows = rows_[i].size(), groups = std::min(kGroups, rows);
    if (rows < 2 * d_) return kNone;
    std::vector<Matrix> part(groups, Matrix(d_, d_));
    std::vector<double> count(groups);
    Matrix all(d_, d_);
    Vector z(d_);
    for (std::size_t k = 0; k < rows; ++k) {
      for (std::size_t j = 0; j < d_; ++j) z[j] = x(rows_[i][k], j);
      add_square(z, part[k % groups]);
      ++count[k % groups];
    }
    for (const Matrix& p : part) add(1, p, all);
    const auto smallest = [](Matrix A, double divided_by) {
      for (double& a : A.all()) a /= divided_by;
      return symmetric_eigen(A).values[0];
    };
    const double G = real(groups), whole = smallest(all, real(rows));
    std::vector<double> pseudo;
    for (std::size_t g = 0; g < groups; ++g) {
      Matrix others = all;
      add(-1, part[g], others);
      pseudo.push_back(G * whole - (G - 1) * smallest(others, real(rows) - count[g]));
    }
    Estimate e = estimate(pseudo);
    for (double* v : {&e.mean, &e.lo, &e.median}) *v = std::max(0.0, *v);
    return e;
  }

  void compare(PilotResult& r) const {
    const Environments apart = environments(frame_, rows_, team_);
    r.delta_env = apart.largest;
    double largest = 0;  // G_b
    r.delta_obj = objectives(largest);
    const std::vector<Estimate> means = outcomes(largest);
    for (std::size_t i = 0; i < n_; ++i) {
      r.agents[i].environment = apart.to_mixture[i];
      r.agents[i].delta_cen = larger(apart.to_mixture[i], means[i]);
    }
    std::vector<Matrix> common;
    for (const Channel& c : channels_) common.push_back(common_moment(c.moments));
    each_agent([&](std::size_t i) { forecast(i, common, r.agents[i]); });
    for (const AgentPilot& a : r.agents)
      (a.prospect == Prospect::kGain ? r.gain : a.prospect == Prospect::kLoss ? r.loss : r.even)++;
    if (n_ > kMostCompared) return;
    r.distance = distances();
    r.order = seriate(r.distance, n_);
  }

  // max_ij |x_i - x_j| / (2 G_b) over draws from the posterior: noise in the estimates makes no
  // distance, and shrinking takes none away.
  Estimate objectives(double& largest) const {
    std::vector<double> ratio(kDraws), size(kDraws);
    const std::size_t width = d_ * channels_.size();
    team_.each(static_cast<std::int64_t>(kDraws), [&](std::int64_t at, int) {
      const auto s = static_cast<std::size_t>(at);
      Matrix u(n_, width);
      Vector centre(width);
      for (std::size_t c = 0; c < channels_.size(); ++c) {
        const Channel& channel = channels_[c];
        for (std::size_t j = 0; j < d_; ++j)
          centre[c * d_ + j] = channel.unit * by(channel, s).centre[j];
        for (std::size_t i = 0; i < n_; ++i) {
          const Vector drawn = draw_residual(channel, i, s);
          for (std::size_t j = 0; j < d_; ++j) u(i, c * d_ + j) = channel.unit * drawn[j];
        }
      }
      size[s] = norm(centre);
      for (std::size_t i = 0; i < n_; ++i) {
        double square = 0;
        for (std::size_t j = 0; j < width; ++j)
          square += (u(i, j) + centre[j]) * (u(i, j) + centre[j]);
        size[s] = std::max(size[s], std::sqrt(square));
      }
      ratio[s] = size[s] > 0 ? diameter(u) / (2 * size[s]) : 0;
    });
    largest = mean(size);
    return between(mean(ratio), ratio);
  }

  // The farthest pair of rows; those far from 0 first, so that most pairs need no look.
  static double diameter(const Matrix& u) {
    Vector radius, gap(u.cols());
    for (std::size_t i = 0; i < u.rows(); ++i) radius.push_back(norm(u.row(i)));
    std::vector<std::size_t> order(u.rows());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return radius[a] > radius[b]; });
    double best = 0;
    for (std::size_t p = 0; p < order.size(); ++p)
      for (std::size_t q = p + 1; q < order.size(); ++q) {
        if (radius[order[p]] + radius[order[q]] <= best) break;
        for (std::size_t j = 0; j < gap.size(); ++j) gap[j] = u(order[p], j) - u(order[q], j);
        best = std::max(best, norm(gap));
      }
    return best;
  }

  // |bbar^i - bbar^0| / (2 G_b), bbar = E z y. The square of a noisy difference is too large by the
  // trace of its covariance V, which is taken off; its variance is 4 d'V d + 2 tr V^2.
  std::vector<Estimate> outcomes(double largest) const {
    std::vector<double> square(n_), variance(n_);
    const double share = 1 / real(n_);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      const Moments& m = channel.moments;
      std::vector<Matrix> scatter(n_, Matrix(d_, d_));
      Matrix common(d_, d_), b(n_, d_), all(d_, d_);
      double freedom = 0;
      Vector v(d_);
      for (std::size_t i = 0; i < n_; ++i) {
        for (std::size_t j = 0; j < d_; ++j) b(i, j) = channel.unit / m.rows[i] * m.b[i * d_ + j];
        for (std::size_t row : rows_[i]) {
          for (std::size_t j = 0; j < d_; ++j)
            v[j] = channel.unit * x(row, j) * y(row, c) - b(i, j);
          add_square(v, scatter[i]);
        }
        add(1, scatter[i], common);
        freedom += m.rows[i] - 1;
      }
      for (double& entry : common.all()) entry /= std::max(1.0, freedom);
      constexpr double kPrior = 2;  // rows that the others count for
      for (std::size_t i = 0; i < n_; ++i) {
        add(kPrior, common, scatter[i]);
        for (double& entry : scatter[i].all())
          entry /= (m.rows[i] - 1 + kPrior) * m.rows[i];  // of the mean
        add(share * share, scatter[i], all);
      }
      Vector centre = column_sums(b);
      for (double& entry : centre) entry /= real(n_);
      for (std::size_t i = 0; i < n_; ++i) {
        Matrix V = all;
        add(1 - 2 * share, scatter[i], V);
        for (std::size_t j = 0; j < d_; ++j) v[j] = b(i, j) - centre[j];
        const double squares = squared_norm(V.all());
        square[i] += squared_norm(v) - trace(V);
        variance[i] += std::max(4 * dot(v, multiply(transposed(V), v)) - 2 * squares, 2 * squares);
      }
    }
    std::vector<Estimate> out;
    for (std::size_t i = 0; i < n_; ++i)
      out.push_back(root(square[i], std::sqrt(variance[i]), 1 / (2 * largest)));
    return out;
  }

  void forecast(std::size_t i, const std::vector<Matrix>& common, AgentPilot& agent) const {
    std::vector<double> own(kDraws), alone(kDraws), noise(kDraws);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      const double unit = channel.unit * channel.unit;
      const Matrix second = second_moment(channel.moments, i, common[c]);
      for (std::size_t b = 0; b < channel.beliefs.size(); ++b) {
        const Belief& belief = channel.beliefs[b];
        Variances variances = belief.variances;
        for (double& v : variances.D) v *= belief.widened[i];
        variances.s2 *= channel.learnt.noise[i];
        const Forecast forecast(second.all(), real(agent.rows), variances, belief.centre_cov);
        for (std::size_t s = b; s < kDraws; s += channel.beliefs.size()) {
          const Vector u = draw_residual(channel, i, s);
          Vector x = u;
          for (std::size_t j = 0; j < d_; ++j) x[j] += belief.centre[j];
          own[s] += unit * forecast.personalised(u);
          alone[s] += unit * forecast.alone(x);
          noise[s] += unit * variances.s2;
        }
      }
    }
    std::vector<double> excess(kDraws), loss(kDraws), gain(kDraws);
    for (std::size_t s = 0; s < kDraws; ++s) {
      gain[s] = alone[s] - own[s];
      excess[s] = own[s] / alone[s];
      loss[s] = (own[s] + noise[s]) / (alone[s] + noise[s]);
    }
    agent.excess = between(mean(own) / mean(alone), excess);
    agent.gain = between(mean(gain), gain);
    agent.loss = between((mean(own) + mean(noise)) / (mean(alone) + mean(noise)), loss);
    agent.prospect = prospect_of(agent.loss);
  }

  std::vector<double> distances() const {
    std::vector<double> out(n_ * n_);
    each_agent([&](std::size_t i) {
      for (std::size_t j = 0; j < n_; ++j) {
        double sum = 0;
        for (const Channel& c : channels_)
          for (std::size_t k = 0; k < d_; ++k) {
            const double gap = c.best.u[i][k] - c.best.u[j][k];
            if (gap != 0) sum += gap * gap / (c.variance[i][k] + c.variance[j][k]);
          }
        out[i * n_ + j] = std::sqrt(sum / real(d_ * channels_.size()));
      }
    });
    return out;
  }

  void add_notes(PilotResult& r) const {
    if (n_ == 1) {
      r.notes.push_back("there is one agent, so there is none to compare it with");
      return;
    }
    bool alike = true;
    for (const Channel& c : channels_)
      for (double v : c.model().variances.D) alike &= std::abs(v) < 1e-9;
    if (alike)
      r.notes.push_back("the pilot does not tell the agents apart: one model for all should do");
    std::size_t single = 0, few = 0;
    for (const auto& rows : rows_) single += rows.size() == 1, few += rows.size() < 2 * d_;
    if (single > 0)
      r.notes.push_back(fmt::format(
          "{} of {} agents have a single row: their environment is not compared", single, n_));
    if (few > 0)
      r.notes.push_back(
          fmt::format("{} of {} agents have fewer than {} pilot rows, two a coefficient: no lambda",
                      few, n_, 2 * d_));
    if (n_ > kMostCompared)
      r.notes.push_back(
          fmt::format("no matrix of distances: {} agents are more than {}", n_, kMostCompared));
  }

  const Frame& frame_;
  std::uint64_t seed_;
  Team& team_;
  std::size_t n_, d_;
  std::vector<std::vector<std::size_t>> rows_;
  std::vector<Channel> channels_;
};

}  // namespace

Estimate between(double value, std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  const auto at = [&](double share) {
    return draws[static_cast<std::size_t>(share * real(draws.size() - 1) + 0.5)];
  };
  return {value, at((1 - kConfidence) / 2), at((1 + kConfidence) / 2), at(0.5)};
}

Prospect prospect_of(const Estimate& loss) {
  constexpr double kSmall = 0.01;  // a smaller change of the loss is none
  return loss.hi < 1 - kSmall   ? Prospect::kGain
         : loss.lo > 1 + kSmall ? Prospect::kLoss
                                : Prospect::kEven;
}

const char* to_text(Prospect prospect) {
  return prospect == Prospect::kGain   ? "should gain"
         : prospect == Prospect::kLoss ? "should learn alone"
                                       : "about even";
}

std::vector<std::vector<std::size_t>> pilot_rows(const Frame& frame, const PilotOptions& options) {
  if (!(options.share > 0 && options.share <= 1))
    throw BadInput(
        fmt::format("`pilot {}`: the share must be above 0 and at most 1", options.share));
  std::vector<std::vector<std::size_t>> rows(frame.agents.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = frame.begin(i, 0), all = frame.agent_rows(i);
    std::vector<std::pair<double, std::size_t>> drawn;
    for (std::size_t k = 0; k < all; ++k)
      drawn.emplace_back(
          uniform({.seed = options.seed, .replicate = 0, .step = 1}, static_cast<std::int64_t>(i),
                  Purpose::kSample, static_cast<std::uint32_t>(k & 0x1FFFFFF)),
          first + k);
    std::sort(drawn.begin(), drawn.end());
    const auto wanted = static_cast<std::size_t>(std::ceil(options.share * real(all)));
    drawn.resize(std::min(all, std::max(wanted, kFewestPilot)));
    for (const auto& [_, row] : drawn) rows[i].push_back(row);
  }
  return rows;
}

PilotResult pilot(const Frame& frame, const PilotOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const int threads = options.threads > 0
                          ? options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::unique_ptr<Team> team = thread_team(threads);
  team->set_stop(options.stop);
  PilotResult result =
      options.centre ? join_pilot(frame, options, *team) : Pilot(frame, options, *team).result();
  result.threads = threads;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
