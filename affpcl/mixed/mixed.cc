#include "affpcl/mixed/mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/mixed/given_fit.h"
#include "affpcl/mixed/joined.h"
#include "affpcl/mixed/law_check.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/mixed/serial.h"
#include "affpcl/mixed/undetermined.h"
#include "affpcl/mixed/unseen.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/class_divergence.h"
#include "affpcl/table/columns-inl.h"

namespace affpcl {
namespace {

constexpr double kNoVariance = 1e-9;        // of a random effect, in units of the target's
constexpr double kSmallestSquare = 1e-300;  // errors of an outcome without any

// One channel, learnt from the rows outside one fold or from all.
struct ChannelFit {
  Moments moments;                     // of the rows in time, where their errors are correlated
  std::optional<Moments> as_they_are;  // of the rows themselves, where these are others
  double correlation = 0;              // of successive rows' errors
  bool misled = false;                 // by agents' own noise, which is left out
  bool given = false;                  // moments that are no sums over rows have no likelihood
  Learnt learnt;
  Ridge pooled;
  double mean = 0;  // of all agents' targets

  const Decomposition& best() const { return learnt.best(); }
  // What the baselines learn from: they know of no correlation.
  const Moments& baseline() const { return as_they_are ? *as_they_are : moments; }
};

// From the frame's standardised targets to units of the target.
class Units {
 public:
  Units(const Frame& frame, std::size_t channel)
      : mean_(frame.y_mean[channel]), sd_(frame.y_sd[channel]) {}

  std::vector<double> coefficients(std::vector<double> x) const {
    for (double& v : x) v *= sd_;
    x[0] += mean_;
    return x;
  }
  std::vector<double> covariance(std::vector<double> cov) const {
    for (double& v : cov) v *= sd_ * sd_;
    return cov;
  }
  double variance(double variance) const { return sd_ * sd_ * variance; }
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

 private:
  double mean_, sd_;
};

// Predictions are a number per channel, in units of the target.
class MixedScorer final : public RowScorer {
 public:
  explicit MixedScorer(const Frame& frame) : frame_(frame) {}
  std::size_t width() const override { return frame_.channels; }

  void losses(std::size_t agent, std::size_t row, const double* predictions,
              std::span<const ByKind<double>> weights, RowLoss* out) const override {
    Vector y(width());
    for (const ByKind<double>& w : weights) {
      for (std::size_t c = 0; c < width(); ++c) y[c] = combination(predictions, w, c);
      *out++ = row_loss(frame_, agent, row, y);
    }
  }

  std::vector<double> probabilities(const double* predictions,
                                    const ByKind<double>& weights) const override {
    std::vector<double> y(width());
    for (std::size_t c = 0; c < width(); ++c) y[c] = combination(predictions, weights, c);
    return class_probabilities(y, frame_.encoding.classes.size());
  }

  double predicted(std::size_t agent, std::size_t, const double* predictions,
                   const ByKind<double>& weights) const override {
    double sum = 0;
    for (std::size_t c = 0; c < width(); ++c)
      sum += combination(predictions, weights, c) *
             (width() == 1 ? 1 : frame_.theta[agent * width() + c]);
    return sum;
  }

  ModelGap apart(std::size_t agent, std::size_t row, const double* predictions,
                 const ByKind<double>& weights, const RowLoss& chosen,
                 const RowLoss& independent) const override {
    if (frame_.encoding.classes.empty())
      return RowScorer::apart(agent, row, predictions, weights, chosen, independent);
    const Divergence d = class_divergence(probabilities(predictions, weights),
                                          probabilities(predictions, vertex(Kind::kIndependent)));
    return {d.gap, d.norm};
  }

  double distance(std::size_t agent, const double* predictions,
                  const ByKind<double>& weights) const override {
    double squares = 0, sum = 0;
    for (std::size_t c = 0; c < width(); ++c) {
      const double e = combination(predictions, weights, c) - predictions[width() + c];
      squares += e * e;
      if (!frame_.theta.empty()) sum += frame_.theta[agent * width() + c] * e;
    }
    return frame_.theta.empty() ? squares : sum * sum;
  }

 private:
  double combination(const double* predictions, const ByKind<double>& w, std::size_t c) const {
    return w[0] * predictions[c] + w[1] * predictions[width() + c] +
           w[2] * predictions[2 * width() + c];
  }
  const Frame& frame_;
};

class MixedAgent final : public AgentFit {
 public:
  MixedAgent(const Frame& frame, const std::vector<ChannelFit>& channels, std::size_t agent)
      : frame_(frame), channels_(channels), agent_(agent) {
    for (const ChannelFit& c : channels) {
      independent_.push_back(fit_ridge(c.baseline(), agent));
      // Without a row of its own an agent has the mean of the others' targets.
      if (c.moments.rows[c.moments.at(agent)] == 0) independent_.back().x[0] = c.mean;
    }
  }

  void predict(std::size_t from, std::size_t to, double* out) const override {
    const std::size_t width = channels_.size();
    std::vector<Vector> own;
    for (const ChannelFit& c : channels_)
      own.push_back(averaged_coefficients(c.moments, c.learnt, agent_));
    for (std::size_t row = from; row < to; ++row, out += 3 * width)
      for (std::size_t c = 0; c < width; ++c) {
        out[c] = predicted(own[c], c, row);
        out[width + c] = predicted(independent_[c].x, c, row);
        out[2 * width + c] = predicted(channels_[c].pooled.x, c, row);
      }
  }

  void describe(const ByKind<double>& weights, AgentModel& agent) const override {
    if (own_.empty())
      for (const ChannelFit& c : channels_)
        own_.push_back(averaged_posterior(c.moments, c.learnt, agent_));
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const Units units(frame_, c);
      const Ridge &alone = independent_[c], &all = channels_[c].pooled;
      agent.widened = std::max(agent.widened, own_[c].widened);
      agent.independent.push_back(units.coefficients(alone.x));
      // The pooled model does not know how far agents are from it; the mixed model does.
      std::vector<double> cov = own_[c].cov;
      for (std::size_t j = 0; j < frame_.d; ++j)
        for (std::size_t k = 0; k < frame_.d; ++k)
          cov[j * frame_.d + k] += (all.x[j] - own_[c].x[j]) * (all.x[k] - own_[c].x[k]);
      agent.channels.push_back(combined({units.model(own_[c].x, own_[c].cov, 1, own_[c].s2),
                                         units.model(alone.x, alone.inverse, alone.s2, alone.s2),
                                         units.model(all.x, cov, 1, own_[c].s2)},
                                        weights));
    }
  }

 private:
  double predicted(const std::vector<double>& x, std::size_t channel, std::size_t row) const {
    double sum = 0;
    for (std::size_t j = 0; j < frame_.d; ++j) sum += frame_.X[j * frame_.rows + row] * x[j];
    const double offset = frame_.subtracted.empty() ? 0 : frame_.subtracted[row];
    return offset + frame_.y_mean[channel] + frame_.y_sd[channel] * sum;
  }

  const Frame& frame_;
  const std::vector<ChannelFit>& channels_;
  std::size_t agent_;
  mutable std::vector<Posterior> own_;  // by channel, once they are described
  std::vector<Ridge> independent_;
};

// Correlations of the outcomes' errors, over all rows.
std::vector<double> noise_correlations(const Frame& frame, const Model& model, Team& team) {
  const std::size_t k = frame.channels;
  AgentSum sum("correlations of outcomes", k * k, frame.agents.size(), team);
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

CentreForm form_in_units(const WeightedForm& form, const Units& units) {
  const Decomposition& m = form.model;
  return {.covariance = m.covariance,
          .weight = form.weight,
          .x = units.coefficients(m.centre),
          .cov = units.covariance(m.centre_cov),
          .D = units.covariance(m.variances.D),
          .D_cov = units.covariance(units.covariance(m.variance_cov)),
          .s2 = units.variance(m.variances.s2)};
}

ChannelModel describe_channel(const ChannelFit& fit, const Units& units, double centre_precision) {
  const Decomposition& best = fit.best();
  const std::size_t d = best.centre.size();
  ChannelModel channel;
  channel.undetermined = undetermined({best.centre_cov.data(), d, d}, centre_precision);
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
  for (const WeightedForm& form : fit.learnt.forms)
    channel.forms.push_back(form_in_units(form, units));
  if (const AgentLaw& law = fit.learnt.law; !law.is_plain())
    channel.usual = law.usual, channel.outlying = law.outlying;
  return channel;
}

class MixedFit final : public FoldFit {
 public:
  MixedFit(const Frame& frame, const MixedOptions& options, std::vector<ChannelFit> channels,
           std::vector<SerialTest> serial, const Model* centre = nullptr)
      : frame_(frame),
        centre_(centre),
        centre_precision_(options.decomposition.centre_precision),
        restricted_(options.estimate != EstimateChoice::kMl),
        channels_(std::move(channels)),
        serial_(std::move(serial)) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<MixedAgent>(frame_, channels_, agent);
  }
  std::unique_ptr<RowScorer> scorer() const override {
    return std::make_unique<MixedScorer>(frame_);
  }

  void describe(Model& model, Team& team) const override {
    if (centre_ != nullptr) return take_centre(*centre_, model);
    model.restricted = restricted_;
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const ChannelFit& fit = channels_[c];
      model.channels.push_back(describe_channel(fit, Units(frame_, c), centre_precision_));
      if (fit.given) continue;
      add_likelihood(fit, Units(frame_, c), team, model.channels.back());
      model.channels.back().pooled_weight =
          pooled_weight(frame_.in_groups(kUnseenGroups, team), fit.baseline(), fit.learnt,
                        fit.pooled, centre_precision_, team);
    }
    if (!frame_.theta.empty()) model.noise = noise_correlations(frame_, model, team);
  }

  std::vector<std::string> notes() const override {
    if (centre_ != nullptr) return joined_notes();
    bool same = true, converged = true, misled = false;
    for (const ChannelFit& c : channels_) {
      misled |= c.misled;
      for (double v : c.best().variances.D) same &= std::abs(v) < kNoVariance;
      converged &= c.best().converged;
    }
    std::vector<std::string> notes;
    if (same) notes.push_back("the rows do not tell the agents apart: all have the same model");
    if (misled)
      notes.push_back(
          "held-out rows do not support noise variances of the agents' own: all have the same");
    add_undetermined(notes);
    if (!converged)
      notes.push_back("the variances were still moving when the search for them ended");
    for (std::size_t c = 0; c < serial_.size(); ++c)
      if (serial_[c].found() || channels_[c].correlation > 0) notes.push_back(serial_note(c));
    return notes;
  }

 private:
  // Columns are the same for all channels.
  void add_undetermined(std::vector<std::string>& notes) const {
    const Decomposition& best = channels_[0].best();
    std::vector<std::string> names;
    for (std::size_t j :
         undetermined({best.centre_cov.data(), frame_.d, frame_.d}, centre_precision_))
      names.push_back(frame_.encoding.names()[j]);
    if (!names.empty())
      notes.push_back(fmt::format(
          "columns are collinear, so that the rows settle sums of the effects of {} only: "
          "predictions are as good, but single coefficients say nothing",
          columns::listed(names)));
  }

  std::string serial_note(std::size_t c) const {
    const std::vector<std::string>& outcomes = frame_.encoding.outcomes;
    const std::string of = outcomes.empty() ? "" : fmt::format(" of '{}'", outcomes[c]);
    if (const double r = channels_[c].correlation; r > 0)
      return fmt::format(
          "errors{} of an agent's successive rows in the order of '{}' have a correlation "
          "of {:.2f}: the model allows for it (AR(1))",
          of, frame_.held_out.column, r);
    return fmt::format(
        "residuals{} of an agent's successive rows are correlated ({:.2f}, false alarms 1 %): if "
        "the "
        "rows are in the order of time, intervals are too narrow; `time` names the column of "
        "times, "
        "and then the model allows for it",
        of, serial_[c].correlation);
  }

  // In units of the target, of the form with the smallest BIC.
  void add_likelihood(const ChannelFit& fit, const Units& units, Team& team,
                      ChannelModel& channel) const {
    const auto& tried = fit.learnt.tried;
    const Decomposition& best = *std::min_element(
        tried.begin(), tried.end(), [](const auto& a, const auto& b) { return a.bic < b.bic; });
    AgentSum rows("number of rows", 1, frame_.agents.size(), team);
    const double N =
        *rows([&](std::size_t i, double* out) { *out += fit.moments.rows[fit.moments.at(i)]; });
    const auto d = static_cast<double>(frame_.d);
    channel.log_likelihood =
        log_likelihood(best.log_evidence, best.centre, centre_precision_, restricted_) -
        (N - (restricted_ ? d : 0)) * std::log(units.deviation(1));
    channel.parameters = frame_.d + static_cast<std::size_t>(best.numbers) + 1;
    channel.correlation = fit.correlation;
    if (fit.correlation == 0) return;
    channel.log_likelihood += log_whitening(fit.moments, fit.correlation, team);
    ++channel.parameters;
  }

  // Of a centre that allows for correlated errors, and rows whose order is not known.
  std::vector<std::string> joined_notes() const {
    std::vector<std::string> notes;
    for (std::size_t c = 0; c < channels_.size(); ++c)
      if (const double r = centre_->channels[c].correlation; r > 0 && channels_[c].correlation == 0)
        notes.push_back(
            fmt::format("the centre found a correlation of {:.2f} in the errors of successive "
                        "rows: `time` names the column of times, and then intervals allow for it",
                        r));
    return notes;
  }

  const Frame& frame_;
  const Model* centre_;
  double centre_precision_;
  bool restricted_;
  std::vector<ChannelFit> channels_;
  std::vector<SerialTest> serial_;  // by channel; empty: not tested
};

// Classes by least squares have no errors of that kind.
bool tests_serial(const Frame& frame) { return frame.encoding.classes.empty(); }

// Rows in time whose errors can have correlations.
bool in_time(const Frame& frame) {
  return frame.held_out.how == Holdout::kForward && frame.encoding.row_weight.empty();
}

// The generalised model is fitted by maximum likelihood only.
void refuse_reml(const MixedOptions& options, const Encoding& encoding) {
  if (options.estimate != EstimateChoice::kReml) return;
  throw BadInput(
      fmt::format("`estimate reml`: restricted likelihood is not available {}; allowed: ml",
                  encoding.family == Family::kGaussian
                      ? "with `common` columns and one factor"
                      : fmt::format("for family {}", to_text(encoding.family))));
}

void take_correlation(double correlation, const Frame& frame, std::size_t channel, int without,
                      Team& team, ChannelFit& fit) {
  fit.correlation = correlation;
  fit.as_they_are = std::move(fit.moments);
  fit.moments = moments_in_time(frame, channel, without, correlation, team);
}

// The form of D that the rows support best, from where it is.
DecompositionOptions at_best(const Learnt& learnt, DecompositionOptions options) {
  const Covariance form = learnt.best().covariance;
  options.scalar = form == Covariance::kScalar;
  options.diagonal = form == Covariance::kDiagonal;
  options.full = form == Covariance::kFull;
  options.start = &learnt.best().variances;
  return options;
}

}  // namespace

std::unique_ptr<RowScorer> channel_scorer(const Frame& frame) {
  return std::make_unique<MixedScorer>(frame);
}

std::unique_ptr<FoldFit> given_fit(const Frame& frame, const MixedOptions& options,
                                   GivenMoments given) {
  ChannelFit fit;
  fit.moments = given.learnt.moments;
  fit.as_they_are = std::move(given.own);
  fit.learnt = std::move(given.learnt);
  fit.given = true;
  fit.pooled = fit_ridge(given.together, 0);
  fit.mean = given.together.b[0] / given.together.rows[0];
  std::vector<ChannelFit> channels;
  channels.push_back(std::move(fit));
  return std::make_unique<MixedFit>(frame, options, std::move(channels), std::vector<SerialTest>());
}

std::unique_ptr<FoldFit> MixedSolver::join(const Frame& frame, int without, Team& team) const {
  std::vector<ChannelFit> channels;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    const ChannelModel& from = centre_->channels[c];
    ChannelFit fit;
    fit.moments = frame.moments(c, without, team);
    if (from.correlation > 0 && in_time(frame))
      take_correlation(from.correlation, frame, c, without, team, fit);
    fit.learnt = joined_learnt(from, frame.y_mean[c], frame.y_sd[c], fit.moments);
    fit.pooled.x = joined_unseen(from, frame.y_mean[c], frame.y_sd[c]);
    fit.mean = fit.pooled.x[0];
    channels.push_back(std::move(fit));
  }
  return std::make_unique<MixedFit>(frame, options_, std::move(channels), std::vector<SerialTest>(),
                                    centre_.get());
}

std::unique_ptr<FoldFit> MixedSolver::learn(const Frame& frame, int without, Team& team) {
  if (centre_ && !frame.encoding.generalised()) return join(frame, without, team);
  if (frame.encoding.generalised()) {
    if (options_.plain) throw BadInput("`plain` belongs to the gaussian family: others always are");
    refuse_reml(options_, frame.encoding);
    return generalised_.learn(frame, without, team);
  }
  if (frame.encoding.leveled()) return leveled_.learn(frame, without, team);
  std::vector<ChannelFit> channels;
  std::vector<SerialTest> serial;
  if (without == kAllRows)
    correlations_.assign(frame.channels, 0.0), misled_.assign(frame.channels, 0);
  for (std::size_t c = 0; c < frame.channels; ++c) {
    ChannelFit fit;
    DecompositionOptions o = options_.decomposition;
    o.plain = options_.plain;
    o.restricted = options_.estimate != EstimateChoice::kMl;
    choose_forms(options_.covariance, o);
    o.own_noise = misled_[c] == 0;
    if (without != kAllRows) o.start = &found_[c], o.evidence_tolerance = options_.fold_tolerance;
    fit.moments = frame.moments(c, without, team);
    if (without != kAllRows && correlations_[c] > 0)
      take_correlation(correlations_[c], frame, c, without, team, fit);
    // Folds in time must not know of later rows.
    const bool near = without != kAllRows && frame.held_out.how != Holdout::kForward;
    fit.learnt =
        near ? learn_near(*near_[c], fit.moments, o, team) : learn_agents(fit.moments, o, team);
    if (without == kAllRows && tests_serial(frame)) {
      serial.push_back(test_serial(
          frame, c,
          [&](std::size_t i) { return averaged_coefficients(fit.moments, fit.learnt, i); }, team));
      if (in_time(frame))
        correlations_[c] = most_evident_correlation(frame, c, at_best(fit.learnt, o), team);
      if (correlations_[c] > 0) {
        take_correlation(correlations_[c], frame, c, without, team, fit);
        fit.learnt = learn_agents(fit.moments, o, team);
      }
    }
    if (without == kAllRows && !options_.plain && correlations_[c] == 0 &&
        frame.agents.size() > 1 && law_misleads(frame, c, fit.moments, fit.learnt, team)) {
      misled_[c] = 1, fit.misled = true;
      fit.learnt = without_law(fit.learnt, fit.moments);
    }
    const Moments all = pooled(fit.baseline(), team);
    fit.pooled = fit_ridge(all, 0);
    fit.mean = all.b[0] / all.rows[0];
    channels.push_back(std::move(fit));
  }
  if (without == kAllRows) {
    found_.clear(), near_.clear();
    for (const ChannelFit& c : channels) {
      found_.push_back(c.best().variances);
      near_.push_back(std::make_shared<Learnt>(c.learnt));
    }
  }
  return std::make_unique<MixedFit>(frame, options_, std::move(channels), std::move(serial));
}

}  // namespace affpcl
