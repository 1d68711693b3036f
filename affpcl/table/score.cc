#include "affpcl/table/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "affpcl/math/statistics.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kProbability = 0.01;  // the least a class is given
constexpr double kClearly = 0.01;   // level at which another model than the personalised is given
constexpr double kFewestRows = 10;  // for such a choice
constexpr double kFalse = 0.05;     // share of false verdicts
// Folds share their training rows. Nadeau and Bengio (2003): the variance of a mean over K folds is
// 1 + K / (K - 1) times that of as many independent rows.
constexpr double kSharedRows = 1 + kFolds / (kFolds - 1.0);
constexpr double kSmall = 0.01;  // a smaller share of the error is no gain and no loss

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

void RowTally::add(const std::array<RowLoss, 3>& l, Kind kind, double y) {
  const RowLoss &given = l[static_cast<std::size_t>(kind)], &alone = l[1];
  affpcl::add(loss, {given.loss, l[0].loss, alone.loss, l[2].loss});
  affpcl::add(right, {given.right, l[0].right, alone.right, l[2].right});
  gain.add(alone.loss - given.loss);
  rows += 1, y1 += y, y2 += y * y;
}

Kind supported(const Paired& than_alone, const Paired& than_pooled) {
  if (than_alone.n < kFewestRows) return Kind::kPersonalised;
  const auto clear = [](const Paired& p) {
    return p.se() > 0 && p.mean() > student_quantile(1 - kClearly, p.n - 1) * p.se();
  };
  const bool alone = clear(than_alone), all = clear(than_pooled);
  if (alone && (!all || than_alone.s1 >= than_pooled.s1)) return Kind::kAlone;
  return all ? Kind::kPooled : Kind::kPersonalised;
}

void judge_agents(const Frame& frame, const std::vector<RowTally>& tallies, FitResult& result) {
  const std::size_t n = tallies.size();
  const bool classify = !frame.encoding.classes.empty();
  const double shared = result.model.solver == Solver::kExact ? kSharedRows : 1;
  result.agents.resize(n);
  std::vector<double> up(n), down(n);
  Losses total, right;
  double rows = 0, y1 = 0, y2 = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const RowTally& t = tallies[i];
    AgentScore& a = result.agents[i];
    a.loss = scaled(t.loss, 1 / t.rows);
    if (classify) a.accuracy = scaled(t.right, 1 / t.rows);
    a.variance = std::max(0.0, t.y2 / t.rows - (t.y1 / t.rows) * (t.y1 / t.rows));
    const double half = t.rows > 1 ? student_quantile((1 + kConfidence) / 2, t.rows - 1) *
                                         t.gain.se() * std::sqrt(shared)
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
  for (const RowTally& t : tallies) squares += std::pow(t.gain.s1 - t.rows * gain, 2);
  const double half = n > 1 ? student_quantile((1 + kConfidence) / 2, agents - 1) *
                                  std::sqrt(squares * agents / (agents - 1)) / rows
                            : kNaN;
  result.gain = {gain, gain - half, gain + half, gain};
  const double up_limit = found_below(up), down_limit = found_below(down);
  for (std::size_t i = 0; i < n; ++i) {
    AgentScore& a = result.agents[i];
    const double least = kSmall * a.loss.alone;
    // The interval has to say the same: a verdict must not contradict what stands beside it.
    if (up[i] <= up_limit && a.gain.mean > least && a.gain.lo > 0) a.verdict = Outcome::kGained;
    if (down[i] <= down_limit && a.gain.mean < -least && a.gain.hi < 0) a.verdict = Outcome::kLost;
    (a.verdict == Outcome::kGained ? result.gained
     : a.verdict == Outcome::kLost ? result.lost
                                   : result.even)++;
    const std::size_t own = result.model.agents[i].rows;
    if (own == 1) {
      a.why = "one row: the centre's model, moved by that row; no interval";
    } else if (result.model.agents[i].kind != Kind::kPersonalised) {
      a.why = fmt::format(
          "given the {} model: clearly better on its {}", to_text(result.model.agents[i].kind),
          result.model.solver == Solver::kStream ? "recent rows" : "rows left out one by one");
    } else if (result.model.agents[i].widened > 1) {
      a.why = fmt::format("unlike the others: taken from a spread {:.3g} times as wide",
                          std::sqrt(result.model.agents[i].widened));
    } else if (own < frame.d) {
      a.why = fmt::format("{} rows for {} coefficients", own, frame.d);
    }
  }
}

}  // namespace affpcl
