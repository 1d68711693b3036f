#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "affpcl/base/error.h"
#include "affpcl/fit/noise.h"
#include "affpcl/fit/ridge.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kProbability = 0.01;  // the least a class is given
constexpr double kClearly = 0.01;   // level at which another model than the personalised is given
constexpr double kFewestRows = 10;  // for such a choice
constexpr double kFalse = 0.05;     // share of false verdicts
constexpr double kSmall = 0.01;     // a smaller share of the error is no gain and no loss
constexpr double kMostCovariances = 1e6;  // numbers kept
// Folds share their training rows. Nadeau and Bengio (2003): the variance of a mean over K folds is
// 1 + K / (K - 1) times that of as many independent rows.
constexpr double kSharedRows = 1 + kFolds / (kFolds - 1.0);

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

// Everything learnt from the rows outside one fold (or from all, -1).
struct Part {
  int without = -1;
  std::vector<Moments> moments;  // by channel
  std::vector<Learnt> learnt;
  std::vector<Ridge> pooled;
  // Variance of the noise of agent i.
  double s2(std::size_t c, std::size_t i) const {
    return learnt[c].chosen.best.variances.s2 * learnt[c].noise[i];
  }
};

Part learn(const Frame& frame, int without, const std::vector<Variances>& start, Team& team) {
  Part part;
  part.without = without;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    part.moments.push_back(frame.moments(c, without, team));
    DecompositionOptions o;
    if (!start.empty()) o.start = &start[c], o.evidence_tolerance = 1e-3;
    part.learnt.push_back(decompose_with_noise(part.moments[c], o, team));
    part.pooled.push_back(fit_ridge(pooled(part.moments[c]), 0));
  }
  return part;
}

struct AgentFit {
  Kind kind = Kind::kPersonalised;
  std::vector<Posterior> own;  // by channel
  std::vector<Ridge> alone;
};

// A linear smoother's errors on its own rows as if each had been left out: residual / (1 -
// leverage).
Vector left_out(const Matrix& X, const Eigen::Ref<const Vector>& y, const std::vector<double>& x,
                const std::vector<double>& influence, double scale) {
  const Eigen::Map<const Matrix> Q(influence.data(), X.cols(), X.cols());
  const Vector leverage = (X * Q).cwiseProduct(X).rowwise().sum() * scale;
  const Vector r = y - X * Eigen::Map<const Vector>(x.data(), X.cols());
  return r.array() / (1 - leverage.array().min(1 - 1e-6));
}

struct Paired {  // sums of powers of paired differences
  double n = 0, s1 = 0, s2 = 0, s3 = 0;
  void add(double v) { ++n, s1 += v, s2 += v * v, s3 += v * v * v; }
  double mean() const { return s1 / n; }
  double se() const {
    return n > 1 ? std::sqrt(std::max(0.0, s2 / n - mean() * mean()) / (n - 1)) : kNaN;
  }
};

// Which model the agent's own training rows speak for. The personalised one, unless another is
// clearly better on rows left out one by one.
AgentFit fit_agent(const Frame& frame, const Part& part, std::size_t i) {
  AgentFit agent;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    agent.own.push_back(agent_posterior(part.learnt[c].moments, part.learnt[c].chosen.best, i));
    agent.alone.push_back(fit_ridge(part.moments[c], i));
  }
  if (part.moments[0].rows[i] < kFewestRows) return agent;
  Paired than_alone, than_pooled;
  const Eigen::Map<const Matrix> X(frame.X.data(), index(frame.rows), index(frame.d));
  for (int f = 0; f < kFolds; ++f) {
    const std::size_t from = frame.begin(i, f), to = frame.begin(i, f + 1);
    if (f == part.without || from == to) continue;
    constexpr std::size_t kRows = 512;
    for (std::size_t at = from; at < to; at += kRows) {
      const std::size_t count = std::min(kRows, to - at);
      const Matrix block = X.middleRows(index(at), index(count));
      Vector alone = Vector::Zero(index(count)), all = alone;
      for (std::size_t c = 0; c < frame.channels; ++c) {
        const Eigen::Map<const Vector> y(frame.Y.data() + c * frame.rows + at, index(count));
        const double unit = frame.y_sd[c] * frame.y_sd[c];
        const Vector own =
            unit * left_out(block, y, agent.own[c].x, agent.own[c].smoother, 1 / part.s2(c, i))
                       .array()
                       .square();
        alone += own;
        alone.array() -=
            unit * left_out(block, y, agent.alone[c].x, agent.alone[c].inverse, 1).array().square();
        all += own;
        all.array() -=
            unit * left_out(block, y, part.pooled[c].x, part.pooled[c].inverse, 1).array().square();
      }
      for (double v : alone) than_alone.add(v);
      for (double v : all) than_pooled.add(v);
    }
  }
  const auto clear = [](const Paired& p) {
    return p.se() > 0 && p.mean() > student_quantile(1 - kClearly, p.n - 1) * p.se();
  };
  const bool alone = clear(than_alone), all = clear(than_pooled);
  if (alone && (!all || than_alone.s1 >= than_pooled.s1)) {
    agent.kind = Kind::kAlone;
  } else if (all) {
    agent.kind = Kind::kPooled;
  }
  return agent;
}

struct Tally {  // of one agent's rows that were left out
  Losses loss, right;
  Paired gain;
  double rows = 0, y1 = 0, y2 = 0;
};

void score_rows(const Frame& frame, const Part& part, const AgentFit& agent, std::size_t from,
                std::size_t to, Tally& tally) {
  const Eigen::Map<const Matrix> X(frame.X.data(), index(frame.rows), index(frame.d));
  const bool classify = !frame.encoding.classes.empty();
  std::vector<double> own(frame.channels), alone(frame.channels), all(frame.channels);
  for (std::size_t r = from; r < to; ++r) {
    for (std::size_t c = 0; c < frame.channels; ++c) {
      const auto predict = [&](const std::vector<double>& x) {
        return frame.y_mean[c] + frame.y_sd[c] * X.row(index(r)).dot(Eigen::Map<const Vector>(
                                                     x.data(), index(frame.d)));
      };
      own[c] = predict(agent.own[c].x);
      alone[c] = predict(agent.alone[c].x);
      all[c] = predict(part.pooled[c].x);
    }
    const double y = frame.y_mean[0] + frame.y_sd[0] * frame.Y[r];
    const auto loss = [&](const std::vector<double>& p, double& right) {
      if (!classify) return (y - p[0]) * (y - p[0]);
      const std::vector<double> q = class_probabilities(p, frame.encoding.classes.size());
      const auto top = std::max_element(q.begin(), q.end()) - q.begin();
      right += top == frame.classes[r];
      return -std::log(q[static_cast<std::size_t>(frame.classes[r])]);
    };
    double hit[3] = {0, 0, 0};
    const double l[3] = {loss(own, hit[0]), loss(alone, hit[1]), loss(all, hit[2])};
    const int given = static_cast<int>(agent.kind);
    tally.loss.personalised += l[0], tally.loss.alone += l[1], tally.loss.pooled += l[2];
    tally.right.personalised += hit[0], tally.right.alone += hit[1], tally.right.pooled += hit[2];
    tally.loss.given += l[given], tally.right.given += hit[given];
    tally.gain.add(l[1] - l[given]);
    tally.rows += 1, tally.y1 += y, tally.y2 += y * y;
  }
}

Losses scaled(const Losses& l, double by) {
  return {l.given * by, l.personalised * by, l.alone * by, l.pooled * by};
}
void add(Losses& to, const Losses& l) {
  to.given += l.given, to.personalised += l.personalised, to.alone += l.alone,
      to.pooled += l.pooled;
}

// Student's t and its correction for skewed numbers, whichever doubts more.
double one_sided(const Paired& p, double sign) {
  if (!(p.se() > 0)) return 1;
  const double t = sign * p.mean() / p.se();
  const double plain = boost::math::cdf(
      boost::math::complement(boost::math::students_t_distribution<double>(p.n - 1), t));
  const double z = sign * skewed_t(p.n, p.s1, p.s2, p.s3);
  const double skewed =
      boost::math::cdf(boost::math::complement(boost::math::normal_distribution<double>(), z));
  return std::max(plain, skewed);
}

// Benjamini and Hochberg (1995): the largest p that is still found.
double found_below(std::vector<double> p) {
  std::sort(p.begin(), p.end());
  double limit = -1;
  for (std::size_t k = 0; k < p.size(); ++k)
    if (p[k] <= kFalse * static_cast<double>(k + 1) / static_cast<double>(p.size())) limit = p[k];
  return limit;
}

void judge_agents(const Frame& frame, const std::vector<Tally>& tallies, FitResult& result) {
  const std::size_t n = tallies.size();
  const bool classify = !frame.encoding.classes.empty();
  result.agents.resize(n);
  std::vector<double> up(n), down(n);
  Losses total, right;
  double rows = 0, y1 = 0, y2 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Tally& t = tallies[i];
    AgentScore& a = result.agents[i];
    a.loss = scaled(t.loss, 1 / t.rows);
    if (classify) a.accuracy = scaled(t.right, 1 / t.rows);
    a.variance = std::max(0.0, t.y2 / t.rows - (t.y1 / t.rows) * (t.y1 / t.rows));
    const double half = t.rows > 1 ? student_quantile((1 + kConfidence) / 2, t.rows - 1) *
                                         t.gain.se() * std::sqrt(kSharedRows)
                                   : kNaN;
    a.gain = {t.gain.mean(), t.gain.mean() - half, t.gain.mean() + half, t.gain.mean()};
    up[i] = a.p = one_sided(t.gain, 1);
    down[i] = one_sided(t.gain, -1);
    add(total, t.loss);
    add(right, t.right);
    rows += t.rows, y1 += t.y1, y2 += t.y2;
  }
  result.loss = scaled(total, 1 / rows);
  if (classify) result.accuracy = scaled(right, 1 / rows);
  const double variance = y2 / rows - (y1 / rows) * (y1 / rows);
  const auto r2 = [&](double loss) { return 1 - loss / variance; };
  if (!classify)
    result.r2 = {r2(result.loss.given), r2(result.loss.personalised), r2(result.loss.alone),
                 r2(result.loss.pooled)};
  double squares = 0;
  const double gain = result.loss.alone - result.loss.given, agents = static_cast<double>(n);
  for (const Tally& t : tallies) squares += std::pow(t.gain.s1 - t.rows * gain, 2);
  const double half = n > 1 ? student_quantile((1 + kConfidence) / 2, agents - 1) *
                                  std::sqrt(squares * agents / (agents - 1)) / rows
                            : kNaN;
  result.gain = {gain, gain - half, gain + half, gain};
  const double up_limit = found_below(up), down_limit = found_below(down);
  for (std::size_t i = 0; i < n; ++i) {
    AgentScore& a = result.agents[i];
    const double least = kSmall * a.loss.alone;
    if (up[i] <= up_limit && a.gain.mean > least) a.verdict = Outcome::kGained;
    if (down[i] <= down_limit && a.gain.mean < -least) a.verdict = Outcome::kLost;
    (a.verdict == Outcome::kGained ? result.gained
     : a.verdict == Outcome::kLost ? result.lost
                                   : result.even)++;
    const std::size_t own = frame.agent_rows(i);
    if (own == 1) {
      a.why = "one row: the centre's model, moved by that row; no interval";
    } else if (result.model.agents[i].kind != Kind::kPersonalised) {
      a.why = fmt::format("given the {} model: clearly better on its rows left out one by one",
                          to_text(result.model.agents[i].kind));
    } else if (result.model.agents[i].widened > 1) {
      a.why = fmt::format("unlike the others: taken from a spread {:.3g} times as wide",
                          std::sqrt(result.model.agents[i].widened));
    } else if (own < frame.d) {
      a.why = fmt::format("{} rows for {} coefficients", own, frame.d);
    }
  }
}

LinearModel in_units(const std::vector<double>& x, const std::vector<double>& cov, double times,
                     double s2, const Frame& frame, std::size_t c, bool keep_cov) {
  const double sd = frame.y_sd[c], unit = sd * sd;
  LinearModel m;
  m.x = x;
  for (double& v : m.x) v *= sd;
  m.x[0] += frame.y_mean[c];
  for (std::size_t j = 0; j < frame.d; ++j)
    m.se.push_back(std::sqrt(std::max(0.0, cov[j * frame.d + j] * times * unit)));
  if (keep_cov) {
    m.cov = cov;
    for (double& v : m.cov) v *= times * unit;
  }
  m.s2 = s2 * unit;
  return m;
}

Model make_model(const Frame& frame, const Part& part, Team& team) {
  Model model;
  model.encoding = frame.encoding;
  model.version = kVersion;
  model.files = frame.files;
  model.rows = frame.rows;
  const std::size_t n = frame.agents.size();
  const bool keep = static_cast<double>(n * frame.channels * frame.d * frame.d) <= kMostCovariances;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    const Decomposition& best = part.learnt[c].chosen.best;
    ChannelModel channel;
    channel.spread = best.spread;
    channel.converged = best.converged;
    for (const Decomposition& t : part.learnt[c].chosen.tried)
      channel.tried.push_back({to_text(t.spread), t.log_evidence, t.bic});
    const Posterior unseen = unseen_posterior(best);
    channel.centre = in_units(unseen.x, unseen.cov, 1, best.variances.s2, frame, c, true);
    for (std::size_t j = 0; j < frame.d; ++j)  // of the centre itself
      channel.centre.se[j] =
          frame.y_sd[c] * std::sqrt(std::max(0.0, best.centre_cov[j * frame.d + j]));
    channel.D = best.variances.D;
    for (double& v : channel.D) v *= frame.y_sd[c] * frame.y_sd[c];
    model.channels.push_back(std::move(channel));
  }
  model.agents.resize(n);
  team.each(static_cast<std::int64_t>(n), [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    const AgentFit fit = fit_agent(frame, part, i);
    AgentModel& agent = model.agents[i];
    agent.name = frame.agents[i];
    agent.rows = frame.agent_rows(i);
    agent.kind = fit.kind;
    for (const Posterior& p : fit.own) agent.widened = std::max(agent.widened, p.widened);
    for (std::size_t c = 0; c < frame.channels; ++c) {
      const Ridge& alone = fit.alone[c];
      const Ridge& all = part.pooled[c];
      const double s2 = part.s2(c, i);
      agent.channels.push_back(
          fit.kind == Kind::kPersonalised
              ? in_units(fit.own[c].x, fit.own[c].cov, 1, s2, frame, c, keep)
          : fit.kind == Kind::kAlone
              ? in_units(alone.x, alone.inverse, alone.s2, alone.s2, frame, c, keep)
              : in_units(all.x, all.inverse, all.s2, all.s2, frame, c, keep));
    }
  });
  return model;
}

void add_notes(const Frame& frame, const Part& part, std::vector<std::string>& notes) {
  const std::size_t n = frame.agents.size();
  if (n == 1) {
    notes.push_back("there is one agent, so nobody to learn with");
    return;
  }
  bool alike = true, converged = true;
  for (const Learnt& c : part.learnt) {
    for (double v : c.chosen.best.variances.D) alike &= std::abs(v) < 1e-9;
    converged &= c.chosen.best.converged;
  }
  if (alike) notes.push_back("the rows do not tell the agents apart: all have the same model");
  if (!converged) notes.push_back("the variances were still moving when the search for them ended");
  std::size_t few = 0, single = 0;
  for (std::size_t i = 0; i < n; ++i)
    few += frame.agent_rows(i) < frame.d, single += frame.agent_rows(i) == 1;
  if (few > 0)
    notes.push_back(fmt::format(
        "{} of {} agents have fewer rows than coefficients ({}): they lean on the others", few, n,
        frame.d));
  if (single > 0) notes.push_back(fmt::format("{} of {} agents have a single row", single, n));
  if (frame.rows < frame.d)
    notes.push_back(fmt::format("there are fewer rows ({}) than coefficients ({}), even together",
                                frame.rows, frame.d));
}

}  // namespace

const char* to_text(Kind kind) {
  return kind == Kind::kPersonalised ? "personalised" : kind == Kind::kAlone ? "alone" : "pooled";
}

const char* to_text(Outcome outcome) {
  return outcome == Outcome::kGained ? "gained" : outcome == Outcome::kLost ? "lost" : "even";
}

std::vector<double> class_probabilities(const std::vector<double>& channels, std::size_t classes) {
  std::vector<double> p = channels;
  if (classes == 2) p = {1 - channels[0], channels[0]};
  double sum = 0;
  for (double& v : p) sum += v = std::clamp(v, kProbability, 1 - kProbability);
  for (double& v : p) v /= sum;
  return p;
}

FitResult fit(const FitOptions& options) { return fit_frame(build_frame(options.frame), options); }

FitResult fit_frame(const Frame& frame, const FitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FitResult result;
  result.threads = options.threads > 0
                       ? options.threads
                       : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::unique_ptr<Team> team =
      result.threads > 1 ? thread_team(result.threads) : serial_team();
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  const auto done = [&](int parts) {
    if (options.progress) options.progress(parts / (kFolds + 1.0));
  };
  result.notes = frame.notes;
  std::vector<Variances> near;
  {
    const Part all = learn(frame, -1, {}, *team);
    result.model = make_model(frame, all, *team);
    result.model.seed = options.frame.seed;
    add_notes(frame, all, result.notes);
    for (const Learnt& c : all.learnt) near.push_back(c.chosen.best.variances);
  }
  done(1);
  const std::size_t n = frame.agents.size();
  std::vector<Tally> tallies(n);
  result.scored = options.score && frame.rows > 1;
  for (int f = 0; f < kFolds && result.scored; ++f) {
    if (stopped()) {
      result.scored = false;
      break;
    }
    std::size_t held = 0;
    for (std::size_t i = 0; i < n; ++i) held += frame.begin(i, f + 1) - frame.begin(i, f);
    if (held == 0 || held == frame.rows) continue;
    const Part part = learn(frame, f, near, *team);
    team->each(static_cast<std::int64_t>(n), [&](std::int64_t at, int) {
      const auto i = static_cast<std::size_t>(at);
      const std::size_t from = frame.begin(i, f), to = frame.begin(i, f + 1);
      if (from < to) score_rows(frame, part, fit_agent(frame, part, i), from, to, tallies[i]);
    });
    done(f + 2);
  }
  if (result.scored) judge_agents(frame, tallies, result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
