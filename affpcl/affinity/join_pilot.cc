#include "affpcl/affinity/join_pilot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/affinity/join_families.h"
#include "affpcl/affinity/new_rows.h"
#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/mixed/joined.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr std::size_t kDraws = 200, kDrawsOfWide = 60, kWide = 60;  // columns
constexpr std::size_t kMostSimulated = 400;   // rows; more count as so many, each several times
constexpr std::uint32_t kRowStep = 1u << 20;  // of the streams of rows, beside those of channels

double real(std::size_t i) { return static_cast<double>(i); }

struct Channel {
  double unit = 1;  // of the target
  Moments moments;
  Learnt learnt;
};

class JoinPilot {
 public:
  JoinPilot(const Frame& frame, const PilotOptions& options, Team& team)
      : frame_(frame),
        options_(options),
        team_(team),
        n_(frame.agents.size()),
        d_(frame.d),
        draws_(frame.d > kWide ? kDrawsOfWide : kDraws),
        rows_(pilot_rows(frame, options)) {
    Vector z(d_);
    for (std::size_t c = 0; c < frame.channels; ++c) {
      Channel channel{.unit = frame.y_sd[c], .moments = Moments(n_, d_), .learnt = {}};
      for (std::size_t i = 0; i < n_; ++i)
        for (const std::size_t row : rows_[i]) {
          for (std::size_t j = 0; j < d_; ++j) z[j] = frame.X[j * frame.rows + row];
          channel.moments.add(i, z, frame.Y[c * frame.rows + row]);
        }
      channel.learnt = joined_agents(options.centre->channels[c], frame.y_mean[c], frame.y_sd[c],
                                     channel.moments, team);
      channels_.push_back(std::move(channel));
    }
  }

  PilotResult result() const {
    PilotResult r = begin_join(frame_, *options_.centre);
    for (const Channel& c : channels_) r.covariance.push_back(c.learnt.best().covariance);
    team_.each(static_cast<std::int64_t>(n_), [&](std::int64_t i, int) {
      forecast(static_cast<std::size_t>(i), r.agents[static_cast<std::size_t>(i)]);
    });
    count_prospects(r);
    return r;
  }

 private:
  // Coefficients and noise variance that the pilot's rows allow for.
  struct Truth {
    Vector x;
    double s2;
  };
  class Truths {
   public:
    Truths(const Channel& channel, std::size_t agent)
        : p_(averaged_posterior(channel.moments, channel.learnt, agent)) {
      const std::size_t d = p_.x.size();
      root_ = semidefinite_root(MatrixView(p_.cov.data(), d, d));
      // E f and 1 / E 1/f of a log-normal f are apart by exp of its variance.
      const double harmonic = channel.learnt.best().variances.s2 * channel.learnt.noise[agent];
      spread_ = std::sqrt(std::max(0.0, std::log(p_.s2 / harmonic)));
    }
    Truth draw(const Key& key, std::int64_t agent) const {
      Truth t{p_.x, p_.s2};
      Vector z(t.x.size());
      for (std::size_t j = 0; j < z.size(); ++j)
        z[j] = normal(key, agent, Purpose::kMethod, static_cast<std::uint32_t>(j));
      add_product(1, transposed(root_), z, t.x);
      const double e = normal(key, agent, Purpose::kMethod, static_cast<std::uint32_t>(z.size()));
      t.s2 *= std::exp(spread_ * e - spread_ * spread_ / 2);
      return t;
    }

   private:
    Posterior p_;
    Matrix root_;
    double spread_;
  };

  // All rows of the agent: the pilot's, and as many more as it has from this truth.
  Moments all_rows(const Channel& channel, std::size_t i, const Truth& truth, const NewRows& rows,
                   const Vector& mean, const Key& key) const {
    Moments m(1, d_);
    std::copy_n(channel.moments.A.begin() + static_cast<std::ptrdiff_t>(i * d_ * d_), d_ * d_,
                m.A.begin());
    std::copy_n(channel.moments.b.begin() + static_cast<std::ptrdiff_t>(i * d_), d_, m.b.begin());
    m.yy[0] = channel.moments.yy[i], m.rows[0] = channel.moments.rows[i];
    const std::size_t more = frame_.agent_rows(i) - rows_[i].size();
    const std::size_t simulated = std::min(more, kMostSimulated);
    if (simulated == 0) return m;
    Moments drawn(1, d_);
    Vector at(d_);
    const Key of_rows{.seed = key.seed, .replicate = key.replicate, .step = kRowStep};
    for (std::size_t r = 0; r < simulated; ++r) {
      const auto number = [&](std::size_t j) {
        return normal(of_rows, static_cast<std::int64_t>(i), Purpose::kSample,
                      static_cast<std::uint32_t>(r * (d_ + 1) + j));
      };
      for (std::size_t j = 0; j < d_; ++j) at[j] = number(j);
      drawn.add(0, rows.row(mean, at), std::sqrt(truth.s2) * number(d_));  // the noise alone
    }
    const double times = real(more) / real(simulated);
    Vector pull = multiply(MatrixView(drawn.A.data(), d_, d_), truth.x);  // A x
    const double signal = dot(pull, truth.x), with_noise = dot(drawn.b, truth.x);
    for (std::size_t j = 0; j < d_ * d_; ++j) m.A[j] += times * drawn.A[j];
    for (std::size_t j = 0; j < d_; ++j) m.b[j] += times * pull[j] + std::sqrt(times) * drawn.b[j];
    m.yy[0] += times * (signal + drawn.yy[0]) + 2 * std::sqrt(times) * with_noise;
    m.rows[0] += real(more);
    return m;
  }

  void forecast(std::size_t i, AgentPilot& agent) const {
    agent.rows = frame_.agent_rows(i), agent.used = rows_[i].size();
    const NewRows rows(frame_, rows_[i]);
    std::vector<double> own(draws_), alone(draws_), noise(draws_);
    const auto id = static_cast<std::int64_t>(i);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      const Truths truths(channel, i);
      const double unit = channel.unit * channel.unit;
      for (std::size_t s = 0; s < draws_; ++s) {
        if (options_.stop != nullptr && *options_.stop) throw Interrupted();
        const Key key{.seed = options_.seed,
                      .replicate = static_cast<std::uint32_t>(s),
                      .step = static_cast<std::uint32_t>(c)};
        const Truth truth = truths.draw(key, id);
        const Vector mean = rows.draw_mean(key, id);
        const Moments m = all_rows(channel, i, truth, rows, mean, key);
        const auto error = [&](Vector x) {
          for (std::size_t j = 0; j < d_; ++j) x[j] -= truth.x[j];
          return unit * rows.square(mean, x);
        };
        own[s] += error(averaged_coefficients(m, channel.learnt, 0));
        alone[s] += error(fit_ridge(m, 0).x);
        noise[s] += unit * truth.s2;
      }
    }
    compare(own, alone, noise, agent);
  }

  const Frame& frame_;
  const PilotOptions& options_;
  Team& team_;
  std::size_t n_, d_, draws_;
  std::vector<std::vector<std::size_t>> rows_;
  std::vector<Channel> channels_;
};

}  // namespace

PilotResult begin_join(const Frame& frame, const Model& centre) {
  PilotResult r;
  r.encoding = frame.encoding;
  r.files = frame.files, r.names = frame.agents, r.notes = frame.notes;
  r.rows = frame.rows;
  r.centre_agents = centre.centre_agents, r.centre_rows = centre.centre_rows;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Estimate none{kNaN, kNaN, kNaN, kNaN};
  r.delta_env = r.delta_obj = r.noise_share = none;
  r.agents.resize(frame.agents.size());
  for (AgentPilot& a : r.agents) a.environment = a.delta_cen = a.lambda = none;
  return r;
}

void count_prospects(PilotResult& r) {
  for (const AgentPilot& a : r.agents) {
    r.used += a.used;
    (a.prospect == Prospect::kGain ? r.gain : a.prospect == Prospect::kLoss ? r.loss : r.even)++;
  }
}

void compare(std::span<const double> own, std::span<const double> alone,
             std::span<const double> noise, AgentPilot& agent) {
  std::vector<double> excess, loss, gain;
  double own_sum = 0, alone_sum = 0, noise_sum = 0;
  for (std::size_t s = 0; s < own.size(); ++s) {
    excess.push_back(own[s] / alone[s]);
    loss.push_back((own[s] + noise[s]) / (alone[s] + noise[s]));
    gain.push_back(alone[s] - own[s]);
    own_sum += own[s], alone_sum += alone[s], noise_sum += noise[s];
  }
  agent.excess = between(own_sum / alone_sum, std::move(excess));
  agent.loss = between((own_sum + noise_sum) / (alone_sum + noise_sum), std::move(loss));
  const double mean_gain = (alone_sum - own_sum) / static_cast<double>(gain.size());
  agent.gain = between(mean_gain, std::move(gain));
  agent.prospect = prospect_of(agent.loss);
}

PilotResult join_pilot(const Frame& frame, const PilotOptions& options, Team& team) {
  if (frame.encoding.generalised()) return join_families(frame, options, team);
  return JoinPilot(frame, options, team).result();
}

}  // namespace affpcl
