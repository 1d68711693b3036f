#include "affpcl/mixed/serial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/math/dense.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr double kFound = 2.326;  // normal quantile of .99
constexpr double kMostCorrelated = 0.98;
constexpr int kSteps = 12;             // of the search for it
constexpr double kTolerance = 1e-3;    // of the evidence, in the search
constexpr double kLeastGain = 1.353;   // of the evidence: half of .9's quantile of chi^2 with df 1
constexpr double kNoResidual = 1e-20;  // mean square, over the target's

// The rows of an agent in their order.
std::vector<std::size_t> in_order(const Frame& frame, std::size_t agent) {
  const std::size_t first = frame.begin(agent, 0);
  std::vector<std::size_t> rows(frame.agent_rows(agent));
  for (std::size_t r = 0; r < rows.size(); ++r) rows[frame.places[first + r]] = first + r;
  return rows;
}

}  // namespace

bool SerialTest::found() const { return z > kFound; }

// Of n centred numbers in random order T = sum z_t z_(t+1) has mean -S2 / n and
// E T^2 = (S2^2 - S4) / n + (S2^2 - 2 S4) / (n (n - 1)), S2 and S4 sums of powers.
SerialTest test_serial(const Frame& frame, std::size_t channel,
                       FunctionRef<std::vector<double>(std::size_t)> coefficients, Team& team) {
  AgentSum sum("serial correlation", 3, frame.agents.size(), team);
  const double* const total = sum([&](std::size_t i, double* out) {
    const std::vector<std::size_t> rows = in_order(frame, i);
    if (rows.size() < 3) return;
    const std::vector<double> x = coefficients(i);
    const auto n = static_cast<double>(rows.size());
    Vector e;
    for (std::size_t row : rows) {
      double fitted = 0;
      for (std::size_t j = 0; j < frame.d; ++j) fitted += frame.X[j * frame.rows + row] * x[j];
      e.push_back(frame.Y[channel * frame.rows + row] - fitted);
    }
    const double mean = affpcl::sum(e) / n;
    double s2 = 0, s4 = 0, together = 0;
    for (double& v : e) v -= mean, s2 += v * v, s4 += v * v * v * v;
    if (!(s2 > n * kNoResidual)) return;
    for (std::size_t t = 0; t + 1 < e.size(); ++t) together += e[t] * e[t + 1];
    const double square = (s2 * s2 - s4) / n + (s2 * s2 - 2 * s4) / (n * (n - 1));
    const double unit = s2 / n;  // agents differ in noise
    out[0] += (together + unit) / unit;
    out[1] += (square - unit * unit) / (unit * unit);
    out[2] += n - 1;
  });
  if (!(total[1] > 0)) return {};
  return {.correlation = total[0] / total[2], .z = total[0] / std::sqrt(total[1])};
}

// The first row of an agent stays, each other is (row_t - r row_(t-1)) / (1 - r^2)^1/2.
Moments moments_in_time(const Frame& frame, std::size_t channel, int without, double correlation,
                        Team& team) {
  const std::size_t d = frame.d;
  const double scale = 1 / std::sqrt(1 - correlation * correlation);
  const Leaves own = own_agents(frame.agents.size(), team);
  Moments m(frame.agents.size(), d, own);
  team.each(own, [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    std::vector<std::size_t> rows;
    for (const Frame::Run run : frame.training(i, without))
      for (std::size_t r = run.from; r < run.to; ++r) rows.push_back(r);
    std::sort(rows.begin(), rows.end(),
              [&](std::size_t a, std::size_t b) { return frame.places[a] < frame.places[b]; });
    Matrix x(d, rows.size());
    Vector y(rows.size());
    const auto whiten = [&](const double* column, auto&& put) {
      for (std::size_t t = 0; t < rows.size(); ++t)
        put(t, t == 0 ? column[rows[0]]
                      : scale * (column[rows[t]] - correlation * column[rows[t - 1]]));
    };
    for (std::size_t j = 0; j < d; ++j)
      whiten(frame.X.data() + j * frame.rows, [&](std::size_t t, double v) { x(j, t) = v; });
    whiten(frame.Y.data() + channel * frame.rows, [&](std::size_t t, double v) { y[t] = v; });
    const std::size_t at = m.at(i);
    add_gram(1, x, {m.A.data() + at * d * d, d, d});
    multiply(x, y, {m.b.data() + at * d, d});
    m.yy[at] = squared_norm(y);
    m.rows[at] = static_cast<double>(rows.size());
  });
  return m;
}

double log_whitening(const Moments& m, double correlation, Team& team) {
  AgentSum sum("number of rows", 1, m.n, team);
  const double pairs =
      *sum([&](std::size_t i, double* out) { *out += std::max(0.0, m.rows[m.at(i)] - 1); });
  return -pairs / 2 * std::log(1 - correlation * correlation);
}

double most_evident_correlation(const Frame& frame, std::size_t channel,
                                const DecompositionOptions& options, Team& team) {
  DecompositionOptions o = options;
  o.evidence_tolerance = kTolerance;
  Variances start;
  const auto evidence = [&](double r) {
    const Moments m = moments_in_time(frame, channel, kAllRows, r, team);
    const Decomposition best = decompose(m, o, team).best;
    start = best.variances;
    o.start = &start;
    return best.log_evidence + log_whitening(m, r, team);
  };
  // Golden sections.
  const double share = (std::sqrt(5.0) - 1) / 2;
  double low = 0, high = kMostCorrelated, a = high - share * (high - low),
         b = low + share * (high - low), at_a = evidence(a), at_b = evidence(b);
  for (int step = 0; step < kSteps; ++step) {
    if (at_a >= at_b) {
      high = b, b = a, at_b = at_a;
      a = high - share * (high - low), at_a = evidence(a);
    } else {
      low = a, a = b, at_a = at_b;
      b = low + share * (high - low), at_b = evidence(b);
    }
  }
  const double best = (low + high) / 2;
  return evidence(best) - evidence(0) > kLeastGain ? best : 0;
}

}  // namespace affpcl
