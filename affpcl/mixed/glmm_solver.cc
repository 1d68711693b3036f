#include "affpcl/mixed/glmm_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/mixed/divergence.h"
#include "affpcl/mixed/joined.h"
#include "affpcl/mixed/penalised.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr int kPoints = 25;  // of quadrature, where there is one random effect
// The search for the bound of a large model ends early: its last digits say nothing of the evidence.
constexpr std::size_t kLarge = 60;  // coefficients
constexpr double kTolerance = 1e-2, kEnough = 1e-3;
constexpr double kBoundGain = 1e-4, kBoundShare = 0.05;
// Of Laplace's value above and below the bound, as shares of it.
constexpr double kMostAbove = 0.03, kMostBelow = 0.002;

Likelihood likelihood_of(const Frame& frame) {
  return {frame.encoding.family, frame.encoding.classes.size()};
}

// What one fold learnt, for all agents.
struct Everything {
  GlmmRows rows;
  Likelihood likelihood;
  GlmmLearnt learnt;
  Penalised pooled;
  double laplace_error = 0;  // where it is far off
  bool bound = false;        // random effects by the variational bound
  std::span<const double> psi() const { return learnt.best.point.psi; }
};

// A prediction has the channels of a row, then their variances.
class GlmmScorer final : public RowScorer {
 public:
  GlmmScorer(const Frame& frame, const Likelihood& likelihood, std::span<const double> psi)
      : frame_(frame), likelihood_(likelihood), psi_(psi.begin(), psi.end()) {}
  std::size_t width() const override { return 2 * channels(); }

  void losses(std::size_t, std::size_t row, const double* predictions,
              std::span<const ByKind<double>> weights, RowLoss* out) const override {
    for (const ByKind<double>& w : weights) *out++ = loss(row, mean(predictions, w));
  }

  ModelGap apart(std::size_t, std::size_t, const double* predictions, const ByKind<double>& weights,
                 const RowLoss&, const RowLoss&) const override {
    const Divergence d = divergence(likelihood_, psi_, mean(predictions, weights),
                                    mean(predictions, vertex(Kind::kIndependent)));
    return {unit() * d.gap, unit() * d.norm};
  }

  // Of new rows with these predictions, `count` of them, and of the columns Z [d][count].
  void compare(const double* predictions, const Matrix& Z, const ByKind<double>& weights,
               ModelGap& gap, Vector& error) const {
    const std::size_t m = likelihood_.predictors(), d = Z.rows(), n = Z.cols();
    gap = {};
    error.assign(m * d, 0.0);
    for (std::size_t r = 0; r < n; ++r) {
      const double* const row = predictions + r * 3 * width();
      const Channels chosen = combined(row, weights);
      const Vector from = expected_mean(likelihood_, psi_, chosen.eta, chosen.variances);
      const Divergence apart =
          divergence(likelihood_, psi_, from, mean(row, vertex(Kind::kIndependent)));
      gap.gap += unit() * apart.gap / static_cast<double>(n);
      gap.norm += unit() * apart.norm / static_cast<double>(n);
      for (std::size_t a = 0; a < m; ++a) {
        const Vector up = moved(chosen, a, kNudge), down = moved(chosen, a, -kNudge);
        double pull = 0;
        for (std::size_t k = 0; k < up.size(); ++k)
          pull -= apart.slope[k] * (up[k] - down[k]) / (4 * kNudge);
        for (std::size_t j = 0; j < d; ++j)
          error[a * d + j] += unit() * pull * Z(j, r) / static_cast<double>(n);
      }
    }
  }

  std::vector<double> probabilities(const double* predictions,
                                    const ByKind<double>& weights) const override {
    return mean(predictions, weights);
  }

  double predicted(std::size_t, std::size_t row, const double* predictions,
                   const ByKind<double>& weights) const override {
    const double response = mean(predictions, weights)[0];
    if (!frame_.encoding.numeric()) return response;
    const double offset = frame_.subtracted.empty() ? 0 : frame_.subtracted[row];
    return frame_.y_mean[0] + frame_.y_sd[0] * response + offset;
  }

  double distance(std::size_t, const double* predictions,
                  const ByKind<double>& weights) const override {
    double squares = 0;
    for (std::size_t a = 0; a < channels(); ++a)
      squares += std::pow(combination(predictions, weights, a) - predictions[width() + a], 2);
    return squares * frame_.y_sd[0] * frame_.y_sd[0];
  }

 private:
  static constexpr double kNudge = 1e-3;  // of a linear predictor, for slopes

  std::size_t channels() const { return likelihood_.basis().rows(); }
  // Losses of numbers are in squares of their unit.
  double unit() const { return frame_.encoding.numeric() ? frame_.y_sd[0] * frame_.y_sd[0] : 1; }
  double combination(const double* predictions, const ByKind<double>& w, std::size_t a) const {
    return w[0] * predictions[a] + w[1] * predictions[width() + a] +
           w[2] * predictions[2 * width() + a];
  }

  struct Channels {
    Vector eta, variances;
  };
  Channels combined(const double* predictions, const ByKind<double>& w) const {
    const std::size_t n = channels();
    Channels of{Vector(n), Vector(n)};
    for (std::size_t c = 0; c < n; ++c) {  // as folds.h combines covariances
      of.eta[c] = combination(predictions, w, c);
      of.variances[c] = combination(predictions, w, n + c);
      for (std::size_t k = 0; k < w.size(); ++k)
        of.variances[c] += w[k] * std::pow(predictions[k * width() + c] - of.eta[c], 2);
    }
    return of;
  }
  // The mean where predictor `a` is larger by so much.
  Vector moved(const Channels& from, std::size_t a, double by) const {
    Vector eta = from.eta;
    for (std::size_t c = 0; c < eta.size(); ++c) eta[c] += by * likelihood_.basis()(c, a);
    return expected_mean(likelihood_, psi_, eta, from.variances);
  }
  Vector mean(const double* predictions, const ByKind<double>& w) const {
    const Channels of = combined(predictions, w);
    return expected_mean(likelihood_, psi_, of.eta, of.variances);
  }

  RowLoss loss(std::size_t row, const Vector& mean) const {
    const double y = frame_.Y[row], trials = frame_.trials.empty() ? 1 : frame_.trials[row];
    RowLoss l{unit() * likelihood_.loss(psi_, y, trials, mean.data()), 0};
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
    Matrix Z(frame_.d, to - from);
    for (std::size_t j = 0; j < frame_.d; ++j)
      std::copy_n(frame_.X.data() + j * frame_.rows + from, to - from, Z.row(j).begin());
    predict(Z, from, to, out);
  }

  void compare(const ByKind<double>& weights, const Matrix& Z, std::size_t from, std::size_t to,
               RowTally& tally) const override {
    const GlmmScorer scorer(frame_, all_.likelihood, all_.psi());
    std::vector<double> predictions(Z.cols() * 3 * scorer.width());
    predict(Z, from, to, predictions.data());
    Vector along;
    scorer.compare(predictions.data(), Z, weights, tally.new_rows, along);
    if (!(tally.new_rows.norm > 0)) return;
    double off = 0;  // of the combination from the personalised model
    for (std::size_t j = 0; j < along.size(); ++j)
      off += along[j] * ((1 - weights[0]) * own_.x[j] - weights[1] * independent_.x[j] -
                         weights[2] * all_.pooled.x[j]);
    const std::size_t p = own_.x.size();
    const Vector spread = multiply(MatrixView(own_.cov.data(), p, p), along);
    const double wider = glmm_wider(all_.learnt, held_, along);
    tally.unsure = (off * off + dot(along, spread) + wider) / tally.new_rows.norm;
  }

  void describe(const ByKind<double>& weights, AgentModel& agent) const override {
    const std::size_t p = own_.x.size();
    const Matrix& basis = all_.likelihood.basis();
    for (std::size_t k = 0; k < basis.rows(); ++k) {
      agent.independent.push_back(in_units(frame_, basis.row(k), independent_.x).x);
      agent.channels.push_back(
          combined({in_units(frame_, basis.row(k), own_.x, {own_.cov.data(), p, p}),
                    in_units(frame_, basis.row(k), independent_.x, independent_.inverse),
                    in_units(frame_, basis.row(k), all_.pooled.x, all_.pooled.inverse)},
                   weights));
    }
  }

  // Coefficients of one channel, a combination of the linear predictors, on their scale.
  static LinearModel in_units(const Frame& frame, std::span<const double> channel, const Vector& x,
                              MatrixView cov = {nullptr, 0, 0}) {
    LinearModel model = coefficients(frame.d, channel, x, cov);
    const double sd = frame.y_sd[0];
    for (double& v : model.x) v *= sd;
    model.x[0] += frame.y_mean[0];
    for (double& v : model.cov) v *= sd * sd;
    for (std::size_t j = 0; j < frame.d && !model.cov.empty(); ++j)
      model.se.push_back(std::sqrt(std::max(0.0, model.cov[j * frame.d + j])));
    return model;
  }
  // The same as they were fitted, without standard errors.
  static LinearModel coefficients(std::size_t d, std::span<const double> channel, const Vector& x,
                                  MatrixView cov) {
    LinearModel model;
    model.x.assign(d, 0.0);
    for (std::size_t a = 0; a < channel.size(); ++a)
      for (std::size_t j = 0; j < d; ++j) model.x[j] += channel[a] * x[a * d + j];
    if (cov.rows() > 0) model.cov = of_channel(channel, cov);
    return model;
  }
  // [d][d] of a covariance of all coefficients; one triangle of it is read.
  static Vector of_channel(std::span<const double> channel, MatrixView cov) {
    const std::size_t m = channel.size(), d = cov.rows() / m;
    Vector out(d * d);
    for (std::size_t a = 0; a < m; ++a)
      for (std::size_t b = 0; b < m; ++b)
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t k = 0; k < d; ++k) {
            const std::size_t r = a * d + j, s = b * d + k;
            out[j * d + k] += channel[a] * channel[b] * cov(std::max(r, s), std::min(r, s));
          }
    return out;
  }

 private:
  // Of the rows Z [d][count] by the three models, with the offsets of the rows [from, to) in turn.
  void predict(const Matrix& Z, std::size_t from, std::size_t to, double* out) const {
    const std::size_t p = own_.x.size();
    predict(Z, from, to, own_.x, {own_.cov.data(), p, p}, 0, out);
    predict(Z, from, to, independent_.x, independent_.inverse, 1, out);
    predict(Z, from, to, all_.pooled.x, all_.pooled.inverse, 2, out);
  }
  void predict(const Matrix& Z, std::size_t from, std::size_t to, const Vector& x, MatrixView cov,
               std::size_t kind, double* out) const {
    const Matrix& basis = all_.likelihood.basis();
    const std::size_t d = frame_.d, n = basis.rows(), count = Z.cols();
    Vector eta(basis.cols());
    for (std::size_t c = 0; c < n; ++c) {
      const LinearModel model = coefficients(d, basis.row(c), x, cov);
      const Matrix CZ = multiply(MatrixView(model.cov.data(), d, d), Z);
      Vector variances(count);
      column_dots(CZ, Z, variances);
      const Vector means = multiply(transposed(Z), model.x);
      for (std::size_t r = 0; r < count; ++r) {
        double* const put = out + (r * 3 + kind) * 2 * n;
        for (std::size_t a = 0; a < eta.size() && !frame_.offset.empty(); ++a)
          eta[a] = frame_.offset[a * frame_.rows + from + r % (to - from)];
        put[c] = means[r] + dot(basis.row(c), eta);
        put[n + c] = variances[r];
      }
    }
  }

  const Frame& frame_;
  const Everything& all_;
  std::size_t held_;
  Posterior own_;
  Penalised independent_;
};

class GlmmFit final : public FoldFit {
 public:
  GlmmFit(const Frame& frame, Everything all, const Model* centre)
      : frame_(frame), all_(std::move(all)), centre_(centre) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<GlmmAgent>(frame_, all_, agent);
  }
  std::unique_ptr<RowScorer> scorer() const override {
    return std::make_unique<GlmmScorer>(frame_, all_.likelihood, all_.psi());
  }
  bool samples() const override { return true; }

  void describe(Model& model, Team& team) const override {
    if (centre_ != nullptr) return take_centre(*centre_, model);
    const Glmm& best = all_.learnt.best;
    const std::size_t d = frame_.d, p = best.point.centre.size();
    const std::vector<std::size_t>& random = all_.learnt.random;
    const std::size_t c = random.size();
    const Posterior unseen = glmm_unseen(all_.learnt);
    const double sd = frame_.y_sd[0];
    const Matrix& basis = all_.likelihood.basis();
    for (std::size_t k = 0; k < basis.rows(); ++k) {
      const std::span<const double> of = basis.row(k);
      ChannelModel channel;
      channel.pooled = GlmmAgent::in_units(frame_, of, all_.pooled.x).x;
      channel.covariance = best.covariance;
      channel.converged = best.converged;
      channel.singular = best.singular;
      for (const Glmm& t : all_.learnt.tried)
        channel.tried.push_back({to_text(t.covariance), t.log_likelihood, t.bic});
      channel.centre = GlmmAgent::in_units(frame_, of, unseen.x, {unseen.cov.data(), p, p});
      channel.centre.se = GlmmAgent::in_units(frame_, of, unseen.x, best.centre_cov).se;
      channel.D.assign(d * d, 0.0);
      const Vector D = GlmmAgent::of_channel(of, best.D);
      for (std::size_t j = 0; j < c; ++j)
        for (std::size_t l = 0; l < c; ++l)
          channel.D[random[j] * d + random[l]] = sd * sd * D[j * c + l];
      model.channels.push_back(std::move(channel));
    }
    model.psi = best.point.psi;
    model.forms = {joint_form()};
    model.variational = all_.bound;
    // Numbers were standardised: N log sd less, and the noise in units of the target.
    model.log_likelihood = best.log_likelihood;
    if (frame_.encoding.numeric()) {
      AgentSum weights("weight of the rows", 1, frame_.agents.size(), team);
      model.log_likelihood -=
          std::log(sd) * *weights([&](std::size_t i, double* out) {
            for (std::size_t r = frame_.begin(i, 0); r < frame_.begin(i + 1, 0); ++r)
              *out += frame_.row_weight.empty() ? 1 : frame_.row_weight[r];
          });
      model.psi[0] += 2 * std::log(sd);
      for (ChannelModel& channel : model.channels) channel.centre.s2 = std::exp(model.psi[0]);
    }
    model.parameters = p + best.numbers + best.point.psi.size();
  }

  std::vector<std::string> notes() const override {
    if (centre_ != nullptr) return {};
    const Glmm& best = all_.learnt.best;
    std::vector<std::string> notes;
    const bool same =
        std::all_of(best.D.all().begin(), best.D.all().end(), [](double v) { return v == 0; });
    if (same) {
      notes.push_back("the rows do not tell the agents apart: all have the same model");
    } else if (best.singular) {
      notes.push_back(
          "the random-effects covariance is singular: at least one effect does not vary between "
          "agents");
    }
    if (all_.laplace_error != 0)
      notes.push_back(
          fmt::format("Laplace's approximation of the log-likelihood is {:.3g} {} a lower bound of "
                      "it, which random "
                      "effects are therefore fitted by (`approximation laplace` keeps the former)",
                      std::abs(all_.laplace_error), all_.laplace_error > 0 ? "above" : "below"));
    if (!best.converged)
      notes.push_back(fmt::format("the fit did not converge in {} rounds", best.rounds));
    if (best.D.rows() == 1)
      notes.push_back(fmt::format(
          "one random effect: integrated by adaptive Gauss-Hermite quadrature ({} points)",
          kPoints));
    return notes;
  }

 private:
  // All linear predictors at once, with covariances of all their coefficients, in units of the target.
  CentreForm joint_form() const {
    const Glmm& best = all_.learnt.best;
    const std::size_t d = frame_.d, m = all_.learnt.predictors, p = m * d;
    const std::vector<std::size_t>& random = all_.learnt.random;
    const std::size_t c = random.size(), q = m * c;
    const double sd = frame_.y_sd[0], unit = sd * sd;
    CentreForm form;
    form.covariance = best.covariance;
    form.x = best.point.centre;
    form.cov = best.centre_cov.all();
    for (double& v : form.x) v *= sd;
    form.x[0] += frame_.y_mean[0];
    for (double& v : form.cov) v *= unit;
    form.D.assign(p * p, 0.0), form.D_cov.assign(p * p, 0.0);
    const auto at = [&](std::size_t j) { return j / c * d + random[j % c]; };
    for (std::size_t j = 0; j < q; ++j)
      for (std::size_t k = 0; k < q; ++k) {
        form.D[at(j) * p + at(k)] = unit * best.D(j, k);
        form.D_cov[at(j) * p + at(k)] = unit * unit * best.spread_cov(j, k);
      }
    return form;
  }

  const Frame& frame_;
  Everything all_;
  const Model* centre_;
};

}  // namespace

GlmmRows glmm_rows(const Frame& frame, int without, Team& team) {
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

namespace {

// How far Laplace's value is above the bound, if that shows it to be far off; else 0. It is above where
// columns nearly separate the classes of agents: there it hardly falls as the random effects grow. It
// is below where agents have few rows.
double laplace_error(const Everything& all, GlmmEvidence::Options options, Team& team) {
  const Glmm& best = all.learnt.best;
  if (all.likelihood.family() != Family::kBinomial || best.D.rows() < 2) return 0;
  options.bound = true;
  options.bound_gain = 1e-3, options.bound_share = 0.1;  // a bound all the same
  const double bound =
      GlmmEvidence(all.rows, all.likelihood, options, team)(best.point, false).value;
  const double error = best.log_likelihood - bound;
  const double allowed = 1 + (error > 0 ? kMostAbove : kMostBelow) * std::abs(bound);
  return std::abs(error) > allowed ? error : 0;
}

}  // namespace

std::unique_ptr<FoldFit> GlmmSolver::learn(const Frame& frame, int without, Team& team) {
  Everything all{glmm_rows(frame, without, team), likelihood_of(frame), {}, {}, 0, false};
  if (options_.centre != nullptr) {
    all.learnt = joined_glmm(*options_.centre, frame.y_mean[0], frame.y_sd[0], all.rows,
                             all.likelihood, team);
    all.pooled.x = all.learnt.best.point.centre;
    all.pooled.inverse = all.learnt.best.D;
    return std::make_unique<GlmmFit>(frame, std::move(all), options_.centre);
  }
  GlmmOptions o;
  choose_forms(options_.covariance, o);
  for (std::size_t j = 0; j < frame.d; ++j)
    if (!frame.encoding.is_common(j)) o.evidence.random.push_back(j);
  o.evidence.quadrature = kPoints;
  if (without != kAllRows) o.start = &found_;
  const double tolerance = without == kAllRows ? o.tolerance : options_.fold_tolerance;
  const bool large = all.likelihood.predictors() * frame.d > kLarge;
  if (large) o.evidence.bound_gain = kBoundGain, o.evidence.bound_share = kBoundShare;
  const auto learn_by = [&](bool bound) {
    o.evidence.bound = bound;
    o.enough = bound && large ? kEnough : 0;
    o.tolerance = bound ? std::max(large ? kTolerance : 1e-6, tolerance) : tolerance;
    all.learnt = fit_glmm(all.rows, all.likelihood, o, team);
  };
  const Family family = frame.encoding.family;
  const Approximation choice = options_.approximation;
  const bool classes = family == Family::kBinomial || family == Family::kMultinomial;
  if (choice == Approximation::kVariational && !classes)
    throw BadInput(
        fmt::format("`approximation variational` belongs to binomial and multinomial targets, "
                    "and the family is {}",
                    to_text(family)));
  learn_by(bound_ || choice == Approximation::kVariational ||
           (choice == Approximation::kAuto && family == Family::kMultinomial));
  if (without == kAllRows) {
    if (choice == Approximation::kAuto && !o.evidence.bound)
      all.laplace_error = laplace_error(all, o.evidence, team);
    if (all.laplace_error != 0) learn_by(true);
    found_ = all.learnt.best;
    bound_ = o.evidence.bound;
  }
  all.bound = o.evidence.bound;
  all.pooled = fit_pooled(all.rows, all.likelihood, all.psi(), team);
  return std::make_unique<GlmmFit>(frame, std::move(all), nullptr);
}

}  // namespace affpcl
