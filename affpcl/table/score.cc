#include "affpcl/table/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "affpcl/math/statistics.h"
#include "affpcl/table/frame.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kProbability = 0.01;  // the smallest of a class
constexpr double kClearly = 0.01;      // level of the test that chooses a baseline
constexpr double kFewestRows = 10;     // for such a choice
constexpr double kFalse = 0.05;        // false discovery rate of the verdicts
// Folds share their training rows. Nadeau and Bengio (2003): the variance of a mean over K folds is
// 1 + K / (K - 1) times that of as many independent rows.
constexpr double kSharedRows = 1 + kFolds / (kFolds - 1.0);
constexpr double kSmall = 0.01;  // a smaller share of the error is no gain and no loss

Losses scaled(const Losses& l, double by) {
  return {l.chosen * by, l.personalised * by, l.independent * by, l.pooled * by};
}
void add(Losses& to, const Losses& l) {
  to.chosen += l.chosen, to.personalised += l.personalised, to.independent += l.independent,
      to.pooled += l.pooled;
}

// The larger p-value of Student's t-test and of its correction for skewed numbers.
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

// Benjamini and Hochberg (1995): the largest p-value that is a discovery.
double discovery_limit(std::vector<double> p) {
  std::sort(p.begin(), p.end());
  double limit = -1;
  for (std::size_t k = 0; k < p.size(); ++k)
    if (p[k] <= kFalse * static_cast<double>(k + 1) / static_cast<double>(p.size())) limit = p[k];
  return limit;
}

}  // namespace

double Paired::se() const {
  return n > 1 ? std::sqrt(std::max(0.0, s2 / n - mean() * mean()) / (n - 1)) : kNaN;
}

std::vector<double> class_probabilities(const std::vector<double>& channels, std::size_t classes) {
  std::vector<double> p = channels;
  if (classes == 2) p = {1 - channels[0], channels[0]};
  double sum = 0;
  for (double& v : p) sum += v = std::clamp(v, kProbability, 1 - kProbability);
  for (double& v : p) v /= sum;
  return p;
}

RowLoss row_loss(const Frame& frame, std::size_t agent, std::size_t row,
                 const std::vector<double>& channels) {
  const std::size_t classes = frame.encoding.classes.size();
  if (classes == 0) {
    double e = frame.wanted(agent, row);
    for (std::size_t c = 0; c < channels.size(); ++c)
      e -= channels[c] * (channels.size() == 1 ? 1 : frame.theta[agent * frame.channels + c]);
    return {e * e, 0};
  }
  const std::vector<double> q = class_probabilities(channels, classes);
  const auto top = std::max_element(q.begin(), q.end()) - q.begin();
  return {-std::log(q[static_cast<std::size_t>(frame.classes[row])]),
          top == frame.classes[row] ? 1.0 : 0.0};
}

void RowTally::add(const ByKind<RowLoss>& l, Kind kind, double y) {
  const RowLoss &chosen = l[static_cast<std::size_t>(kind)], &independent = l[1];
  affpcl::add(loss, {chosen.loss, l[0].loss, independent.loss, l[2].loss});
  affpcl::add(right, {chosen.right, l[0].right, independent.right, l[2].right});
  gain.add(independent.loss - chosen.loss);
  rows += 1, y1 += y, y2 += y * y;
}

Kind supported(const Paired& than_independent, const Paired& than_pooled) {
  if (than_independent.n < kFewestRows) return Kind::kPersonalised;
  const auto clear = [](const Paired& p) {
    return p.se() > 0 && p.mean() > student_quantile(1 - kClearly, p.n - 1) * p.se();
  };
  const bool independent = clear(than_independent), pooled = clear(than_pooled);
  if (independent && (!pooled || than_independent.s1 >= than_pooled.s1)) return Kind::kIndependent;
  return pooled ? Kind::kPooled : Kind::kPersonalised;
}

namespace {

// `folds` is 1 where every row is predicted by a model that saw only rows before it.
AgentScore score_of(const RowTally& t, bool classify, double folds) {
  AgentScore a;
  a.loss = scaled(t.loss, 1 / t.rows);
  if (classify) a.accuracy = scaled(t.right, 1 / t.rows);
  a.variance = std::max(0.0, t.y2 / t.rows - (t.y1 / t.rows) * (t.y1 / t.rows));
  const double half = t.rows > 1 ? student_quantile((1 + kConfidence) / 2, t.rows - 1) *
                                       t.gain.se() * std::sqrt(folds)
                                 : kNaN;
  a.gain = {t.gain.mean(), t.gain.mean() - half, t.gain.mean() + half, t.gain.mean()};
  a.p = one_sided(t.gain, 1);
  return a;
}

// Losses, accuracy, R^2 and gain over all rows; agents are clusters.
void score_all(const std::vector<RowTally>& tallies, bool classify, FitResult& result) {
  Losses total, right;
  double rows = 0, y1 = 0, y2 = 0;
  for (const RowTally& t : tallies) {
    add(total, t.loss);
    add(right, t.right);
    rows += t.rows, y1 += t.y1, y2 += t.y2;
  }
  result.loss = scaled(total, 1 / rows);
  if (classify) result.accuracy = scaled(right, 1 / rows);
  const double variance = y2 / rows - (y1 / rows) * (y1 / rows);
  const auto r2 = [&](double loss) { return 1 - loss / variance; };
  if (result.model.encoding.numeric())
    result.r2 = {r2(result.loss.chosen), r2(result.loss.personalised), r2(result.loss.independent),
                 r2(result.loss.pooled)};
  const double gain = result.loss.independent - result.loss.chosen;
  const auto agents = static_cast<double>(tallies.size());
  double squares = 0;
  for (const RowTally& t : tallies) squares += std::pow(t.gain.s1 - t.rows * gain, 2);
  const double half = tallies.size() > 1
                          ? student_quantile((1 + kConfidence) / 2, agents - 1) *
                                std::sqrt(squares * agents / (agents - 1)) / rows
                          : kNaN;
  result.gain = {gain, gain - half, gain + half, gain};
}

// One-sided tests in both directions, at one false discovery rate over all agents.
void set_verdicts(const std::vector<RowTally>& tallies, FitResult& result) {
  std::vector<double> up, down;
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    up.push_back(result.agents[i].p);
    down.push_back(one_sided(tallies[i].gain, -1));
  }
  const double up_limit = discovery_limit(up), down_limit = discovery_limit(down);
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    AgentScore& a = result.agents[i];
    const double least = kSmall * a.loss.independent;
    // The verdict must not contradict the interval beside it.
    if (up[i] <= up_limit && a.gain.mean > least && a.gain.lo > 0) a.verdict = Outcome::kGained;
    if (down[i] <= down_limit && a.gain.mean < -least && a.gain.hi < 0) a.verdict = Outcome::kLost;
    (a.verdict == Outcome::kGained ? result.gained
     : a.verdict == Outcome::kLost ? result.lost
                                   : result.even)++;
  }
}

std::string reason(const AgentModel& agent, SolverKind solver, std::size_t d) {
  if (agent.rows == 1) return "one row: the centre's model, moved by that row; no interval";
  if (agent.kind != Kind::kPersonalised)
    return fmt::format("given the {} model: clearly better on its {}", to_text(agent.kind),
                       solver == SolverKind::kStream ? "recent rows" : "rows held out one by one");
  if (agent.widened > 1)
    return fmt::format("unlike the others: taken from a spread {:.3g} times as wide",
                       std::sqrt(agent.widened));
  if (agent.rows < d) return fmt::format("{} rows for {} coefficients", agent.rows, d);
  return "";
}

}  // namespace

void judge_agents(const Frame& frame, const std::vector<RowTally>& tallies, FitResult& result) {
  const bool classify = !frame.encoding.classes.empty();
  const double folds = result.model.solver == SolverKind::kExact ? kSharedRows : 1;
  for (const RowTally& t : tallies) result.agents.push_back(score_of(t, classify, folds));
  score_all(tallies, classify, result);
  set_verdicts(tallies, result);
  for (std::size_t i = 0; i < tallies.size(); ++i)
    result.agents[i].why = reason(result.model.agents[i], result.model.solver, frame.d);
}

}  // namespace affpcl
