#include "affpcl/mixed/mixed.h"

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/mixed/unseen.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = 512;         // rows at a time: they stay in cache
constexpr double kMostLeverage = 1 - 1e-6;  // of a row; a residual is divided by 1 - leverage
constexpr double kNoVariance = 1e-9;        // of a random effect, in units of the target's
constexpr double kSmallestSquare = 1e-300;  // errors of an outcome without any

// One channel, learnt from the rows outside one fold or from all.
struct ChannelFit {
  Moments moments;
  Learnt learnt;
  Ridge pooled;

  const Decomposition& best() const { return learnt.best(); }
};

// A linear smoother's leave-one-out errors on its own rows: residual / (1 - leverage).
Vector leave_one_out_errors(const Matrix& X, std::span<const double> y,
                            const std::vector<double>& x, const std::vector<double>& influence,
                            double scale) {
  Vector r(y.begin(), y.end()), leverage(y.size());
  add_product(-1, transposed(X), x, r);
  column_dots(multiply({influence.data(), X.rows(), X.rows()}, X), X, leverage);
  for (std::size_t k = 0; k < r.size(); ++k)
    r[k] /= 1 - std::min(leverage[k] * scale, kMostLeverage);
  return r;
}

// Squared errors of rows, summed over classes; for weighted outcomes the square of the sum.
class Squares {
 public:
  Squares(std::size_t rows, bool weighs) : sum_(rows), weighs_(weighs) {}
  void add(double unit, const Vector& errors) {
    for (std::size_t k = 0; k < sum_.size(); ++k) {
      const double e = unit * errors[k];
      sum_[k] += weighs_ ? e : e * e;
    }
  }
  double total(std::size_t k) const { return weighs_ ? sum_[k] * sum_[k] : sum_[k]; }

 private:
  Vector sum_;
  bool weighs_;
};

// From the frame's standardised targets to units of the target.
class Units {
 public:
  Units(const Frame& frame, std::size_t channel)
      : mean_(frame.y_mean[channel]), sd_(frame.y_sd[channel]), keep_(keeps_covariances(frame)) {}

  std::vector<double> coefficients(std::vector<double> x) const {
    for (double& v : x) v *= sd_;
    x[0] += mean_;
    return x;
  }
  std::vector<double> covariance(std::vector<double> cov) const {
    for (double& v : cov) v *= sd_ * sd_;
    return cov;
  }
  double deviation(double variance) const { return sd_ * std::sqrt(std::max(0.0, variance)); }

  // Coefficients with covariance times * cov.
  LinearModel model(const std::vector<double>& x, const std::vector<double>& cov, double times,
                    double s2) const {
    const double unit = sd_ * sd_;
    const std::size_t d = x.size();
    LinearModel m;
    m.x = coefficients(x);
    for (std::size_t j = 0; j < d; ++j)
      m.se.push_back(std::sqrt(std::max(0.0, cov[j * d + j] * times * unit)));
    m.cov = cov;
    for (double& v : m.cov) v *= times * unit;
    for (std::size_t r = 0; r < d; ++r)  // to the bit, as a file holds it
      for (std::size_t k = 0; k < r; ++k) m.cov[k * d + r] = m.cov[r * d + k];
    m.s2 = s2 * unit;
    return m;
  }
  // The same for one of many agents.
  LinearModel agent(const std::vector<double>& x, const std::vector<double>& cov, double times,
                    double s2) const {
    LinearModel m = model(x, cov, times, s2);
    if (!keep_) m.cov.clear();
    return m;
  }

 private:
  double mean_, sd_;
  bool keep_;
};

class MixedAgent final : public AgentFit {
 public:
  MixedAgent(const Frame& frame, const std::vector<ChannelFit>& channels, int without,
             std::size_t agent)
      : frame_(frame), channels_(channels), without_(without), agent_(agent) {
    for (const ChannelFit& c : channels) {
      own_.push_back(averaged_posterior(c.moments, c.learnt, agent));
      independent_.push_back(fit_ridge(c.moments, agent));
    }
  }

  std::vector<ByKind<double>> leave_one_out() const override {
    std::vector<ByKind<double>> errors;
    for (int f = 0; f < kFolds; ++f) {
      const std::size_t to = frame_.begin(agent_, f + 1);
      if (f == without_) continue;
      for (std::size_t at = frame_.begin(agent_, f); at < to; at += kBlock)
        add_errors(at, std::min(kBlock, to - at), errors);
    }
    return errors;
  }

  std::vector<ByKind<RowLoss>> losses(std::size_t from, std::size_t to) const override {
    std::vector<ByKind<RowLoss>> losses;
    ByKind<std::vector<double>> y;
    y.fill(std::vector<double>(channels_.size()));
    for (std::size_t row = from; row < to; ++row) {
      for (std::size_t c = 0; c < channels_.size(); ++c) {
        y[0][c] = predicted(own_[c].x, c, row);
        y[1][c] = predicted(independent_[c].x, c, row);
        y[2][c] = predicted(channels_[c].pooled.x, c, row);
      }
      losses.push_back({row_loss(frame_, agent_, row, y[0]), row_loss(frame_, agent_, row, y[1]),
                        row_loss(frame_, agent_, row, y[2])});
    }
    return losses;
  }

  void describe(Kind chosen, AgentModel& agent) const override {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const Units units(frame_, c);
      const Ridge &alone = independent_[c], &all = channels_[c].pooled;
      agent.widened = std::max(agent.widened, own_[c].widened);
      agent.independent.push_back(units.coefficients(alone.x));
      agent.channels.push_back(
          chosen == Kind::kPersonalised
              ? units.agent(own_[c].x, own_[c].cov, 1, own_[c].s2)
          : chosen == Kind::kIndependent ? units.agent(alone.x, alone.inverse, alone.s2, alone.s2)
                                         : units.agent(all.x, all.inverse, all.s2, all.s2));
    }
  }

 private:
  void add_errors(std::size_t at, std::size_t count, std::vector<ByKind<double>>& errors) const {
    const bool weighs = !frame_.theta.empty();
    const Matrix X = frame_.block(at, count);
    Squares own(count, weighs), independent(count, weighs), pooled(count, weighs);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const std::span y(frame_.Y.data() + c * frame_.rows + at, count);
      const double unit =
          frame_.y_sd[c] * (weighs ? frame_.theta[agent_ * frame_.channels + c] : 1);
      const auto add = [&](Squares& to, const auto& model, const auto& influence, double scale) {
        to.add(unit, leave_one_out_errors(X, y, model.x, influence, scale));
      };
      add(own, own_[c], own_[c].smoother, 1 / own_[c].s2);
      add(independent, independent_[c], independent_[c].inverse, 1);
      add(pooled, channels_[c].pooled, channels_[c].pooled.inverse, 1);
    }
    for (std::size_t k = 0; k < count; ++k)
      errors.push_back({own.total(k), independent.total(k), pooled.total(k)});
  }

  double predicted(const std::vector<double>& x, std::size_t channel, std::size_t row) const {
    double sum = 0;
    for (std::size_t j = 0; j < frame_.d; ++j) sum += frame_.X[j * frame_.rows + row] * x[j];
    const double offset = frame_.subtracted.empty() ? 0 : frame_.subtracted[row];
    return offset + frame_.y_mean[channel] + frame_.y_sd[channel] * sum;
  }

  const Frame& frame_;
  const std::vector<ChannelFit>& channels_;
  int without_;
  std::size_t agent_;
  std::vector<Posterior> own_;  // by channel
  std::vector<Ridge> independent_;
};

// Correlations of the outcomes' errors, over all rows.
std::vector<double> noise_correlations(const Frame& frame, const Model& model, Team& team) {
  const std::size_t k = frame.channels;
  AgentSum sum(k * k, frame.agents.size(), team);
  const double* const S = sum([&](std::size_t i, double* out) {
    const std::size_t from = frame.begin(i, 0), count = frame.agent_rows(i);
    const Matrix X = frame.block(from, count);
    Matrix errors(k, count);
    for (std::size_t c = 0; c < k; ++c) {
      for (std::size_t r = 0; r < count; ++r) errors(c, r) = frame.y(c, from + r);
      add_product(-1, transposed(X), model.agents[i].channels[c].x, errors.row(c));
      for (std::size_t r = 0; r < count && !frame.row_weight.empty(); ++r)
        errors(c, r) *= std::sqrt(frame.row_weight[from + r]);
    }
    const Matrix squares = multiply(errors, transposed(errors));
    for (std::size_t j = 0; j < k * k; ++j) out[j] += squares.all()[j];
  });
  Vector scale;
  for (std::size_t c = 0; c < k; ++c)
    scale.push_back(1 / std::sqrt(std::max(S[c * k + c], kSmallestSquare)));
  std::vector<double> R(k * k);
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < k; ++b) R[a * k + b] = scale[b] * S[a * k + b] * scale[a];
  return R;
}

ChannelModel describe_channel(const ChannelFit& fit, const Units& units) {
  const Decomposition& best = fit.best();
  const std::size_t d = best.centre.size();
  ChannelModel channel;
  channel.pooled = units.coefficients(fit.pooled.x);
  channel.covariance = best.covariance;
  channel.converged = best.converged;
  for (const Decomposition& t : fit.learnt.tried)
    channel.tried.push_back({to_text(t.covariance), t.log_evidence, t.bic});
  const Posterior unseen = averaged_unseen(fit.learnt);
  channel.centre = units.model(unseen.x, unseen.cov, 1, unseen.s2);
  Vector D(d * d);
  for (const auto& [model, root, weight] : fit.learnt.forms) {
    for (std::size_t j = 0; j < d * d; ++j) D[j] += weight * model.variances.D[j];
    for (CovarianceTried& t : channel.tried)
      if (t.name == to_text(model.covariance)) t.weight = weight;
  }
  for (std::size_t j = 0; j < d; ++j)  // of the centre itself
    channel.centre.se[j] = units.deviation(unseen.cov[j * d + j] - D[j * d + j]);
  channel.D = units.covariance(D);
  return channel;
}

class MixedFit final : public FoldFit {
 public:
  MixedFit(const Frame& frame, int without, double centre_precision,
           std::vector<ChannelFit> channels)
      : frame_(frame),
        without_(without),
        centre_precision_(centre_precision),
        channels_(std::move(channels)) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<MixedAgent>(frame_, channels_, without_, agent);
  }

  void describe(Model& model, Team& team) const override {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const ChannelFit& fit = channels_[c];
      model.channels.push_back(describe_channel(fit, Units(frame_, c)));
      model.channels.back().pooled_weight =
          pooled_weight(fit.moments, fit.learnt, fit.pooled, centre_precision_, team);
    }
    if (!frame_.theta.empty()) model.noise = noise_correlations(frame_, model, team);
  }

  std::vector<std::string> notes() const override {
    bool same = true, converged = true;
    for (const ChannelFit& c : channels_) {
      for (double v : c.best().variances.D) same &= std::abs(v) < kNoVariance;
      converged &= c.best().converged;
    }
    std::vector<std::string> notes;
    if (same) notes.push_back("the rows do not tell the agents apart: all have the same model");
    if (!converged)
      notes.push_back("the variances were still moving when the search for them ended");
    return notes;
  }

 private:
  const Frame& frame_;
  int without_;
  double centre_precision_;
  std::vector<ChannelFit> channels_;
};

}  // namespace

std::unique_ptr<FoldFit> MixedSolver::learn(const Frame& frame, int without, Team& team) {
  if (frame.encoding.generalised()) {
    if (options_.plain) throw BadInput("`plain` belongs to the gaussian family: others always are");
    return generalised_.learn(frame, without, team);
  }
  std::vector<ChannelFit> channels;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    ChannelFit fit;
    DecompositionOptions o = options_.decomposition;
    o.plain = options_.plain;
    choose_forms(options_.covariance, o);
    if (without != kAllRows) o.start = &found_[c], o.evidence_tolerance = options_.fold_tolerance;
    fit.moments = frame.moments(c, without, team);
    fit.learnt = learn_agents(fit.moments, o, team);
    fit.pooled = fit_ridge(pooled(fit.moments, team), 0);
    channels.push_back(std::move(fit));
  }
  if (without == kAllRows) {
    found_.clear();
    for (const ChannelFit& c : channels) found_.push_back(c.best().variances);
  }
  return std::make_unique<MixedFit>(frame, without, options_.decomposition.centre_precision,
                                    std::move(channels));
}

}  // namespace affpcl
