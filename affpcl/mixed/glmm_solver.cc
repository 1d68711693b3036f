#include "affpcl/mixed/glmm_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/mixed/penalised.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr int kPoints = 25;              // of quadrature, where there is one random effect
constexpr int kPredictionPoints = 15;

Likelihood likelihood_of(const Frame& frame) {
  return {frame.encoding.family, frame.encoding.classes.size()};
}

GlmmRows rows_of(const Frame& frame, int without, Team& team) {
  const Leaves own = own_agents(frame.agents.size(), team);
  const auto column = [](const std::vector<double>& v) { return v.empty() ? nullptr : v.data(); };
  GlmmRows rows;
  rows.agents = frame.agents.size(), rows.first = static_cast<std::size_t>(own.first);
  rows.d = frame.d, rows.stride = frame.rows, rows.X = frame.X.data();
  rows.y = frame.Y.data();
  rows.weight = column(frame.row_weight), rows.trials = column(frame.trials);
  rows.offset = column(frame.offset);
  for (std::int64_t at = own.first; at < own.last; ++at) {
    const auto i = static_cast<std::size_t>(at);
    const auto [before, after] = frame.training(i, without);
    rows.runs.push_back({{{before.from, before.to}, {after.from, after.to}}});
  }
  return rows;
}

// What one fold learnt, for all agents.
struct Everything {
  GlmmRows rows;
  Likelihood likelihood;
  GlmmLearnt learnt;
  Penalised pooled;
  std::span<const double> psi() const { return learnt.best.point.psi; }
};

// Predictions are the linear predictors and, where there is one, its variance.
class GlmmScorer final : public RowScorer {
 public:
  GlmmScorer(const Frame& frame, const Likelihood& likelihood, std::span<const double> psi)
      : frame_(frame), likelihood_(likelihood), psi_(psi.begin(), psi.end()) {}
  std::size_t width() const override { return likelihood_.predictors() + 1; }

  void losses(std::size_t, std::size_t row, const double* predictions,
              std::span<const ByKind<double>> weights, RowLoss* out) const override {
    for (const ByKind<double>& w : weights) *out++ = loss(row, mean(predictions, w));
  }

  std::vector<double> probabilities(const double* predictions,
                                    const ByKind<double>& weights) const override {
    return mean(predictions, weights);
  }

  double distance(std::size_t, const double* predictions,
                  const ByKind<double>& weights) const override {
    double squares = 0;
    for (std::size_t a = 0; a < likelihood_.predictors(); ++a)
      squares += std::pow(combination(predictions, weights, a) - predictions[width() + a], 2);
    return squares * frame_.y_sd[0] * frame_.y_sd[0];
  }

 private:
  double combination(const double* predictions, const ByKind<double>& w, std::size_t a) const {
    return w[0] * predictions[a] + w[1] * predictions[width() + a] +
           w[2] * predictions[2 * width() + a];
  }

  Vector mean(const double* predictions, const ByKind<double>& w) const {
    const std::size_t m = likelihood_.predictors();
    Vector eta(m), variances(m);
    for (std::size_t a = 0; a < m; ++a) eta[a] = combination(predictions, w, a);
    variances[0] = combination(predictions, w, m);  // as folds.h combines covariances
    for (std::size_t k = 0; k < w.size() && m == 1; ++k)
      variances[0] += w[k] * std::pow(predictions[k * width()] - eta[0], 2);
    return expected_mean(likelihood_, psi_, eta, variances);
  }

  RowLoss loss(std::size_t row, const Vector& mean) const {
    const double y = frame_.Y[row], trials = frame_.trials.empty() ? 1 : frame_.trials[row];
    const double unit = frame_.y_sd[0];
    RowLoss l{likelihood_.loss(psi_, y, trials, mean.data()) *
                  (frame_.encoding.numeric() ? unit * unit : 1),
              0};
    if (has_classes(frame_.encoding.family) && frame_.trials.empty()) {
      const auto top = std::max_element(mean.begin(), mean.end()) - mean.begin();
      l.right = static_cast<double>(top) == y;
    }
    return l;
  }

  const Frame& frame_;
  Likelihood likelihood_;
  Vector psi_;
};

class GlmmAgent final : public AgentFit {
 public:
  GlmmAgent(const Frame& frame, const Everything& all, std::size_t agent)
      : frame_(frame),
        all_(all),
        held_(all.rows.at(agent)),
        own_(glmm_posterior(all.learnt, held_)),
        independent_(fit_penalised(all.rows, all.likelihood, all.psi(), held_)) {
    // Without a row of its own an agent has the mean of the others' targets.
    std::size_t rows = 0;
    for (const GlmmRows::Run& run : all.rows.runs[held_]) rows += run.to - run.from;
    for (std::size_t a = 0; a < all.likelihood.predictors() && rows == 0; ++a)
      independent_.x[a * frame.d] = all.pooled.x[a * frame.d];
  }

  void predict(std::size_t from, std::size_t to, double* out) const override {
    const std::size_t p = own_.x.size();
    for (std::size_t row = from; row < to; ++row) {
      out = predict(row, own_.x, {own_.cov.data(), p, p}, out);
      out = predict(row, independent_.x, independent_.inverse, out);
      out = predict(row, all_.pooled.x, all_.pooled.inverse, out);
    }
  }

  void describe(const ByKind<double>& weights, AgentModel& agent) const override {
    const std::size_t d = frame_.d, m = all_.likelihood.predictors();
    for (std::size_t a = 0; a < m; ++a) {
      agent.independent.push_back(in_units(frame_, a, independent_.x).x);
      agent.channels.push_back(
          combined({in_units(frame_, a, own_.x, {own_.cov.data(), m * d, m * d}),
                    in_units(frame_, a, independent_.x, independent_.inverse),
                    in_units(frame_, a, all_.pooled.x, all_.pooled.inverse)},
                   weights));
    }
  }

  // Coefficients of one predictor, on the scale of the linear predictor.
  static LinearModel in_units(const Frame& frame, std::size_t a, const Vector& x,
                              MatrixView cov = {nullptr, 0, 0}) {
    const std::size_t d = frame.d;
    const double sd = frame.y_sd[0];
    LinearModel model;
    model.x.assign(x.begin() + static_cast<std::ptrdiff_t>(a * d),
                   x.begin() + static_cast<std::ptrdiff_t>((a + 1) * d));
    for (double& v : model.x) v *= sd;
    model.x[0] += frame.y_mean[0];
    for (std::size_t j = 0; j < d && cov.rows() > 0; ++j) {
      model.se.push_back(sd * std::sqrt(std::max(0.0, cov(a * d + j, a * d + j))));
      for (std::size_t k = 0; k < d; ++k)
        model.cov.push_back(sd * sd * cov(a * d + std::max(j, k), a * d + std::min(j, k)));
    }
    return model;
  }

 private:
  double* predict(std::size_t row, const Vector& x, MatrixView cov, double* out) const {
    const std::size_t d = frame_.d, m = all_.likelihood.predictors();
    Vector z(d);
    for (std::size_t j = 0; j < d; ++j) z[j] = frame_.X[j * frame_.rows + row];
    for (std::size_t a = 0; a < m; ++a) {
      double& eta = *out++ = frame_.offset.empty() ? 0 : frame_.offset[a * frame_.rows + row];
      for (std::size_t j = 0; j < d; ++j) eta += z[j] * x[a * d + j];
    }
    double& variance = *out++ = 0;
    for (std::size_t j = 0; j < d && m == 1; ++j)
      for (std::size_t k = 0; k < d; ++k) variance += z[j] * cov(j, k) * z[k];
    return out;
  }

  const Frame& frame_;
  const Everything& all_;
  std::size_t held_;
  Posterior own_;
  Penalised independent_;
};

class GlmmFit final : public FoldFit {
 public:
  GlmmFit(const Frame& frame, Everything all) : frame_(frame), all_(std::move(all)) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<GlmmAgent>(frame_, all_, agent);
  }
  std::unique_ptr<RowScorer> scorer() const override {
    return std::make_unique<GlmmScorer>(frame_, all_.likelihood, all_.psi());
  }

  void describe(Model& model, Team& team) const override {
    const Glmm& best = all_.learnt.best;
    const std::size_t d = frame_.d, m = all_.likelihood.predictors(), p = m * d;
    const std::size_t c = all_.learnt.random.size();
    const Posterior unseen = glmm_unseen(all_.learnt);
    const double sd = frame_.y_sd[0];
    for (std::size_t a = 0; a < m; ++a) {
      ChannelModel channel;
      channel.pooled = GlmmAgent::in_units(frame_, a, all_.pooled.x).x;
      channel.covariance = best.covariance;
      channel.converged = best.converged;
      channel.singular = best.singular;
      for (const Glmm& t : all_.learnt.tried)
        channel.tried.push_back({to_text(t.covariance), t.log_likelihood, t.bic});
      channel.centre = GlmmAgent::in_units(frame_, a, unseen.x, {unseen.cov.data(), p, p});
      for (std::size_t j = 0; j < d; ++j)
        channel.centre.se[j] = sd * std::sqrt(std::max(0.0, best.centre_cov(a * d + j, a * d + j)));
      channel.D.assign(d * d, 0.0);
      for (std::size_t j = 0; j < c; ++j)
        for (std::size_t k = 0; k < c; ++k)
          channel.D[all_.learnt.random[j] * d + all_.learnt.random[k]] =
              sd * sd * best.D(a * c + j, a * c + k);
      model.channels.push_back(std::move(channel));
    }
    model.psi = best.point.psi;
    // Numbers were standardised: N log sd less, and the noise in units of the target.
    model.log_likelihood = best.log_likelihood;
    if (frame_.encoding.numeric()) {
      AgentSum weights(1, frame_.agents.size(), team);
      model.log_likelihood -= std::log(sd) * *weights([&](std::size_t i, double* out) {
        for (std::size_t r = frame_.begin(i, 0); r < frame_.begin(i + 1, 0); ++r)
          *out += frame_.row_weight.empty() ? 1 : frame_.row_weight[r];
      });
      model.psi[0] += 2 * std::log(sd);
      for (ChannelModel& channel : model.channels) channel.centre.s2 = std::exp(model.psi[0]);
    }
    const std::size_t q = best.D.rows();
    std::size_t numbers = 0;
    for (std::size_t j = 0; j < q; ++j) numbers += best.D(j, j) > 0;
    if (best.covariance == Covariance::kScalar) numbers = std::min<std::size_t>(numbers, 1);
    if (best.covariance == Covariance::kFull) numbers = q * (q + 1) / 2;
    model.parameters = p + numbers + best.point.psi.size();
  }

  std::vector<std::string> notes() const override {
    const Glmm& best = all_.learnt.best;
    std::vector<std::string> notes;
    const bool same = std::all_of(best.D.all().begin(), best.D.all().end(),
                                  [](double v) { return v == 0; });
    if (same) {
      notes.push_back("the rows do not tell the agents apart: all have the same model");
    } else if (best.singular) {
      notes.push_back(
          "the random-effects covariance is singular: at least one effect does not vary between "
          "agents");
    }
    if (!best.converged)
      notes.push_back(fmt::format("the fit did not converge in {} rounds", best.rounds));
    if (best.D.rows() == 1)
      notes.push_back(fmt::format(
          "one random effect: integrated by adaptive Gauss-Hermite quadrature ({} points)", kPoints));
    return notes;
  }

 private:
  const Frame& frame_;
  Everything all_;
};

}  // namespace

Vector expected_mean(const Likelihood& likelihood, std::span<const double> psi,
                     std::span<const double> eta, std::span<const double> variances) {
  static const GaussHermite kRule(kPredictionPoints);
  Vector mean(likelihood.outputs()), at(mean.size());
  if (likelihood.predictors() > 1 || !(variances[0] > 0)) {
    likelihood.mean(psi, eta.data(), mean.data());
    return mean;
  }
  const double width = std::sqrt(2 * variances[0]);
  for (std::size_t k = 0; k < kRule.nodes.size(); ++k) {
    const double eta_k = eta[0] + width * kRule.nodes[k];
    likelihood.mean(psi, &eta_k, at.data());
    for (std::size_t j = 0; j < mean.size(); ++j)
      mean[j] += kRule.weights[k] / std::sqrt(std::numbers::pi) * at[j];
  }
  return mean;
}

std::unique_ptr<FoldFit> GlmmSolver::learn(const Frame& frame, int without, Team& team) {
  Everything all{rows_of(frame, without, team), likelihood_of(frame), {}, {}};
  GlmmOptions o;
  choose_forms(options_.covariance, o);
  for (std::size_t j = 0; j < frame.d; ++j)
    if (!frame.encoding.is_common(j)) o.laplace.random.push_back(j);
  o.laplace.quadrature = kPoints;
  if (without != kAllRows) o.start = &found_, o.tolerance = options_.fold_tolerance;
  all.learnt = fit_glmm(all.rows, all.likelihood, o, team);
  if (without == kAllRows) found_ = all.learnt.best;
  all.pooled = fit_pooled(all.rows, all.likelihood, all.psi(), team);
  return std::make_unique<GlmmFit>(frame, std::move(all));
}

}  // namespace affpcl
