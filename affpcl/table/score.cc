#include "affpcl/table/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "affpcl/math/statistics.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/gains.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kProbability = 0.01;  // the smallest of a class
constexpr double kClearly = 0.01;      // level of the test that chooses a baseline
constexpr double kFewestRows = 10;     // for such a choice
constexpr double kMostly = 0.8;        // a smaller weight of the personalised model is worth a word
constexpr double kSmall = 0.01;        // a smaller share of the error is no gain and no loss

Losses scaled(const Losses& l, double by) {
  return {l.chosen * by, l.personalised * by, l.independent * by, l.pooled * by};
}
void add(Losses& to, const Losses& l) {
  to.chosen += l.chosen, to.personalised += l.personalised, to.independent += l.independent,
      to.pooled += l.pooled;
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
                 std::span<const double> channels) {
  const std::size_t classes = frame.encoding.classes.size();
  if (classes == 0) {
    double e = frame.wanted(agent, row);
    for (std::size_t c = 0; c < channels.size(); ++c)
      e -= channels[c] * (channels.size() == 1 ? 1 : frame.theta[agent * frame.channels + c]);
    return {e * e, 0};
  }
  const std::vector<double> q = class_probabilities({channels.begin(), channels.end()}, classes);
  const auto top = std::max_element(q.begin(), q.end()) - q.begin();
  return {-std::log(q[static_cast<std::size_t>(frame.classes[row])]),
          top == frame.classes[row] ? 1.0 : 0.0};
}

ModelGap parabola(const RowLoss& chosen, const RowLoss& independent, const RowLoss& middle) {
  const double gap = 2 * (chosen.loss + independent.loss - 2 * middle.loss);
  return {gap, gap};
}

void RowTally::add(const RowScore& row, double y) {
  const auto each = [&](Losses& to, double RowLoss::*of) {
    affpcl::add(to, {row.chosen.*of, row.kinds[0].*of, row.kinds[1].*of, row.kinds[2].*of});
  };
  each(loss, &RowLoss::loss), each(right, &RowLoss::right);
  const double row_slope = (row.apart.gap - (row.kinds[1].loss - row.chosen.loss)) / 2;
  gap += row.apart.gap, norm += row.apart.norm;
  slope += row_slope, slope2 += row_slope * row_slope;
  rows += 1, y1 += y, y2 += y * y;
}

void RowTally::add_brier(const Losses& row, double row_weight) {
  affpcl::add(brier, scaled(row, row_weight));
  weight += row_weight;
}

void RowTally::scale(double by) {
  loss = scaled(loss, by), right = scaled(right, by), brier = scaled(brier, by);
  for (double* v : {&rows, &weight, &y1, &y2, &gap, &norm, &slope, &slope2, &distance}) *v *= by;
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

AgentScore score_of(const RowTally& t, bool classify) {
  AgentScore a;
  a.loss = scaled(t.loss, 1 / t.rows);
  if (classify) a.accuracy = scaled(t.right, 1 / t.rows);
  if (classify) a.brier = scaled(t.brier, 1 / t.weight);
  a.scored_rows = static_cast<std::size_t>(std::round(t.rows));
  a.variance = std::max(0.0, t.y2 / t.rows - (t.y1 / t.rows) * (t.y1 / t.rows));
  return a;
}

// The sum of all agents' tallies.
RowTally total_of(const std::vector<RowTally>& own, std::size_t agents, Team& team) {
  static_assert(std::is_trivially_copyable_v<RowTally> && sizeof(RowTally) % sizeof(double) == 0);
  constexpr std::size_t kNumbers = sizeof(RowTally) / sizeof(double);
  const auto first = static_cast<std::size_t>(own_agents(agents, team).first);
  AgentSum sum("losses on held-out rows", kNumbers, agents, team);
  const double* const numbers = sum([&](std::size_t i, double* out) {
    RowTally t = own[i - first];
    t.in_hand = t.vague = t.unsure = 0, t.new_rows = {};  // of one agent
    std::array<double, kNumbers> mine;
    std::memcpy(mine.data(), &t, sizeof t);
    for (std::size_t k = 0; k < kNumbers; ++k) out[k] += mine[k];
  });
  RowTally total;
  std::memcpy(static_cast<void*>(&total), numbers, sizeof total);
  return total;
}

// Losses, accuracy, R^2 and gain over all rows; agents are clusters.
void score_all(const std::vector<RowTally>& own, const RowTally& all, std::size_t n, bool classify,
               Team& team, FitResult& result) {
  const Losses &total = all.loss, &right = all.right, &brier = all.brier;
  const double rows = all.rows, weight = all.weight, y1 = all.y1, y2 = all.y2;
  result.loss = scaled(total, 1 / rows);
  if (classify) result.accuracy = scaled(right, 1 / rows);
  if (classify) result.brier = scaled(brier, 1 / weight);
  const double variance = y2 / rows - (y1 / rows) * (y1 / rows);
  const auto r2 = [&](double loss) { return 1 - loss / variance; };
  if (result.model.encoding.numeric())
    result.r2 = {r2(result.loss.chosen), r2(result.loss.personalised), r2(result.loss.independent),
                 r2(result.loss.pooled)};
  const double gain = result.loss.independent - result.loss.chosen;
  const auto first = static_cast<std::size_t>(own_agents(n, team).first);
  AgentSum sum("interval of the gain", 2, n, team);
  const double* const found = sum([&](std::size_t i, double* out) {
    const RowTally& t = own[i - first];
    out[0] += std::pow(t.loss.independent - t.loss.chosen - t.rows * gain, 2), out[1] += t.rows > 0;
  });
  const double squares = found[0], agents = found[1];
  const double half = agents > 1 ? student_quantile((1 + result.level) / 2, agents - 1) *
                                       std::sqrt(squares * agents / (agents - 1)) / rows
                                 : kNaN;
  result.gain = {gain, gain - half, gain + half, gain};
}

// Slopes of a log-likelihood have the variance of its curvature; a log loss is once, a deviance
// twice that likelihood. Squared errors and gamma deviances have a noise variance of their own.
double stated_noise(const RowTally& t, const Encoding& e) {
  if (!e.classes.empty() || e.family == Family::kBinomial) return e.generalised() ? 0.5 : 0;
  const bool counts = e.family == Family::kPoisson || e.family == Family::kNegativeBinomial;
  return counts ? 1 : t.loss.chosen / t.rows;
}

// Where the solver does not say how far models are apart on new rows, a loss per unit of squared
// distance makes distances of linear predictors a gap of losses. Without
// models in hand the gap of the held-out rows stands in. An agent without held-out rows has what the
// others' say of a row.
GainEvidence evidence_of(const RowTally& own, const RowTally& all, const Encoding& encoding) {
  RowTally t = own;
  if (own.rows == 0) {
    t = all;
    t.scale(1 / all.rows);
    t.in_hand = own.in_hand, t.vague = own.vague, t.unsure = own.unsure, t.new_rows = own.new_rows;
  }
  GainEvidence e{.rows = t.rows,
                 .gap = t.gap / t.rows,
                 .norm = t.norm / t.rows,
                 .slope = t.slope / t.rows,
                 .slope2 = t.slope2 / t.rows,
                 .in_hand = {t.gap / t.rows, t.norm / t.rows},
                 .vague = 0,
                 .unsure = kNaN,
                 .stated = stated_noise(t, encoding)};
  const double bend = (t.gap > 0 ? t.gap : all.gap) / (t.gap > 0 ? t.distance : all.distance);
  if (t.new_rows.norm > 0) {
    e.in_hand = t.new_rows, e.vague = t.vague, e.unsure = t.unsure;
  } else if (std::isfinite(t.in_hand) && bend > 0) {
    e.in_hand = {bend * t.in_hand, bend * t.in_hand};
    e.vague = t.vague, e.unsure = bend * t.unsure;
  }
  if (t.in_hand == 0) e.in_hand = {};
  return e;
}

// Gains of all agents, and verdicts by the sign that the interval leaves: of a 90 % interval at most
// 5 % of the posterior lie on the other side.
void set_verdicts(const std::vector<RowTally>& tallies, const RowTally& all, const Frame& frame,
                  Team& team, FitResult& result) {
  std::vector<GainEvidence> evidence;
  for (const RowTally& t : tallies) evidence.push_back(evidence_of(t, all, result.model.encoding));
  const std::vector<ShrunkGain> gains =
      shrink_gains(evidence, static_cast<double>(frame.d), frame.agents.size(), team, result.level,
                   !frame.joined);
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    AgentScore& a = result.agents[i];
    a.gain = gains[i].gain;
    a.probability = gains[i].probability;
    result.expect_gain += a.probability;
    const double least = kSmall * a.loss.independent;
    if (a.gain.lo > 0 && a.gain.mean > least) a.verdict = Outcome::kGained;
    if (a.gain.hi < 0 && a.gain.mean < -least) a.verdict = Outcome::kLost;
    (a.verdict == Outcome::kGained ? result.gained
     : a.verdict == Outcome::kLost ? result.lost
                                   : result.even)++;
  }
}

std::string reason(const AgentModel& agent, std::size_t held_out, SolverKind solver, std::size_t d,
                   bool joined) {
  if (agent.rows == 1) return "one row, so nothing is held out: the gain is that of similar agents";
  if (held_out == 0) return "no held-out row: the gain is that of similar agents";
  if (agent.kind != Kind::kPersonalised && solver == SolverKind::kStream)
    return fmt::format("given the {} model: clearly better on its recent rows",
                       to_text(agent.kind));
  if (const ByKind<double>& w = agent.stacked; w[0] < kMostly)
    return fmt::format("{:.0f} % personalised, {:.0f} % independent, {:.0f} % {}", 100 * w[0],
                       100 * w[1], 100 * w[2], joined ? "centre" : "pooled");
  if (agent.widened > 1)
    return fmt::format("unlike the others: taken from a spread {:.3g} times as wide",
                       std::sqrt(agent.widened));
  if (agent.rows < d) return fmt::format("{} rows for {} coefficients", agent.rows, d);
  return "";
}

}  // namespace

void judge_agents(const Frame& frame, const std::vector<RowTally>& tallies, Team& team,
                  FitResult& result) {
  const bool classify = !frame.encoding.classes.empty();
  for (const RowTally& t : tallies) result.agents.push_back(score_of(t, classify));
  const RowTally all = total_of(tallies, frame.agents.size(), team);
  score_all(tallies, all, frame.agents.size(), classify, team, result);
  set_verdicts(tallies, all, frame, team, result);
  for (std::size_t i = 0; i < tallies.size(); ++i)
    result.agents[i].why = reason(result.model.agents[i], result.agents[i].scored_rows,
                                  result.model.solver, frame.d, result.model.joined);
}

}  // namespace affpcl
