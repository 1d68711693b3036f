#include "affpcl/fit/frame.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/data/weights.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

// Agents in the order of their names, those without a row left out.
void settle_agents(RowAgents& agents, const std::vector<char>& keep, Frame& frame) {
  std::vector<std::size_t> count(agents.names.size());
  for (std::size_t r = 0; r < keep.size(); ++r)
    if (keep[r] != 0) ++count[static_cast<std::size_t>(agents.of_row[r])];
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < count.size(); ++a)
    if (count[a] > 0) order.push_back(a);
  if (order.empty())
    throw BadInput(
        fmt::format("{}: no row is left once those with blanks are left out", frame.files[0]));
  if (const std::size_t gone = count.size() - order.size(); gone > 0)
    frame.notes.push_back(
        fmt::format("{} {} no row left", gone, gone == 1 ? "agent has" : "agents have"));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return by_number(agents.names[a], agents.names[b]);
  });
  std::vector<std::int32_t> place(count.size(), -1);
  for (std::size_t a : order) {
    place[a] = static_cast<std::int32_t>(frame.agents.size());
    frame.agents.push_back(agents.names[a]);
  }
  for (std::int32_t& a : agents.of_row) a = place[static_cast<std::size_t>(a)];
}

// The kept rows, agent after agent, each agent's as they came, or by time.
std::vector<std::size_t> by_agent(const std::vector<char>& keep, const RowAgents& agents,
                                  const std::vector<double>& time) {
  std::vector<std::size_t> rows;
  for (std::size_t r = 0; r < keep.size(); ++r)
    if (keep[r] != 0) rows.push_back(r);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    if (agents.of_row[a] != agents.of_row[b]) return agents.of_row[a] < agents.of_row[b];
    return !time.empty() && time[a] < time[b];
  });
  return rows;
}

// When each row was: a number, or a text such as 2026-11-16 whose letters are in order.
std::vector<double> row_times(const Tables& tables, const std::string& column) {
  if (column.empty()) return {};
  const Column& c = *tables.find(column);
  std::vector<double> time = c.numbers;
  if (c.type == Column::Type::kText) {
    std::vector<std::size_t> order(c.levels.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return by_number(c.levels[a], c.levels[b]); });
    std::vector<double> rank(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<double>(k);
    for (std::int32_t code : c.codes)
      time.push_back(code < 0 ? std::nan("") : rank[static_cast<std::size_t>(code)]);
  }
  for (std::size_t r = 0; r < time.size(); ++r)
    if (std::isnan(time[r])) tables.refuse(r, column, "", "is no time, by which rows are ordered");
  return time;
}

// The fold of each of one agent's rows: at random, but every class in every fold if it can be.
std::vector<std::size_t> deal_folds(const std::size_t* rows, std::size_t count, std::size_t agent,
                                    const Target& target, std::uint64_t seed) {
  std::vector<double> draw(count);
  for (std::size_t k = 0; k < count; ++k)
    draw[k] = uniform({.seed = seed, .replicate = 0, .step = 0}, static_cast<std::int64_t>(agent),
                      Purpose::kSample, static_cast<std::uint32_t>(k & 0x1FFFFFF));
  const auto label = [&](std::size_t k) {
    return target.classes.empty() ? 0 : target.classes[rows[k]];
  };
  std::vector<std::size_t> order(count), fold(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::int32_t ca = label(a), cb = label(b);
    return ca != cb ? ca < cb : draw[a] != draw[b] ? draw[a] < draw[b] : a < b;
  });
  // Folds of all agents together stay even: each agent begins with another one.
  for (std::size_t k = 0; k < count; ++k) fold[order[k]] = (k + agent) % kFolds;
  return fold;
}

// Rows that come agent after agent are put fold after fold too; the frame learns where each begins.
void arrange(std::vector<std::size_t>& rows, const RowAgents& agents, const Target& target,
             const FrameOptions& o, Frame& frame) {
  frame.rows = rows.size();
  for (std::size_t first = 0, i = 0; i < frame.agents.size(); ++i) {
    std::size_t last = first;
    while (last < rows.size() && static_cast<std::size_t>(agents.of_row[rows[last]]) == i) ++last;
    const std::vector<std::size_t> fold =
        o.keep_order ? std::vector<std::size_t>(last - first)
                     : deal_folds(rows.data() + first, last - first, i, target, o.seed);
    std::vector<std::size_t> dealt;
    for (std::size_t f = 0; f < kFolds; ++f) {
      frame.starts.push_back(first + dealt.size());
      for (std::size_t k = first; k < last; ++k)
        if (fold[k - first] == f) dealt.push_back(rows[k]);
    }
    std::copy(dealt.begin(), dealt.end(), rows.begin() + static_cast<std::ptrdiff_t>(first));
    first = last;
  }
  frame.starts.push_back(rows.size());
}

// The targets of the rows, in their order, centred and scaled.
void set_outcomes(const Target& target, const std::vector<std::size_t>& rows, Frame& frame) {
  const bool classify = !target.classes.empty();
  frame.channels = classify ? frame.encoding.channels() : target.numbers.size();
  if (classify)
    for (std::size_t r : rows) frame.classes.push_back(target.classes[r]);
  frame.Y.resize(frame.channels * rows.size());
  for (std::size_t c = 0; c < frame.channels; ++c) {
    double* const y = frame.Y.data() + c * rows.size();
    const auto positive = static_cast<std::int32_t>(frame.channels == 1 ? 1 : c);
    for (std::size_t k = 0; k < rows.size(); ++k)
      y[k] = classify ? frame.classes[k] == positive : (*target.numbers[c])[rows[k]];
    const Scale scale = standardise(y, rows.size());
    if (!scale.varies())
      throw BadInput(
          fmt::format("{}: the target '{}' {}", frame.files[0], target.names[classify ? 0 : c],
                      std::isfinite(scale.sd)
                          ? fmt::format("is {} in every row; there is nothing to learn", scale.mean)
                          : "holds numbers whose squares are too large for a double"));
    frame.y_mean.push_back(scale.mean);
    frame.y_sd.push_back(scale.sd);
  }
}

}  // namespace

Frame build_frame(const FrameOptions& o) {
  const std::vector<std::string> files = data_files(o.paths),
                                 header = tables_header(files, o.beside);
  Encoding encoding = begin_encoding(files, header, o);
  Tables tables = read_tables(files, o.beside, columns_needed(header, o, encoding));
  return build_frame(std::move(tables), std::move(encoding), o);
}

Frame build_frame(Tables tables, Encoding begun, const FrameOptions& o) {
  Frame frame;
  for (const auto& part : tables.parts) frame.files.push_back(part.path);
  Encoding& encoding = frame.encoding = std::move(begun);
  RowAgents agents = row_agents(tables, encoding.agent_column);
  std::vector<char> keep(tables.rows, 1);
  const Target target = encode_target(tables, o, encoding, keep, frame.notes);
  const std::vector<Column*> features = feature_columns(tables, o, encoding);
  strike_blanks(tables, features, o.missing, keep, frame.notes);

  settle_agents(agents, keep, frame);
  std::vector<std::size_t> rows = by_agent(keep, agents, row_times(tables, o.time));
  arrange(rows, agents, target, o, frame);
  frame.X = encode_features(tables, features, rows, encoding, frame.notes);
  frame.d = encoding.dim();
  set_outcomes(target, rows, frame);
  if (!o.weights.empty())
    frame.theta =
        read_weights(o.weights, encoding.agent_column.empty() ? "agent" : encoding.agent_column,
                     o.channels, frame.agents, frame.files[0]);
  return frame;
}

double Frame::wanted(std::size_t agent, std::size_t row) const {
  if (theta.empty()) return y(0, row);
  double sum = 0;
  for (std::size_t c = 0; c < channels; ++c) sum += theta[agent * channels + c] * y(c, row);
  return sum;
}

Moments Frame::moments(std::size_t channel, int without, Team& team) const {
  using Matrix = Eigen::MatrixXd;
  Moments m(agents.size(), d);
  const auto D = static_cast<Eigen::Index>(d);
  const auto all = static_cast<Eigen::Index>(rows);
  const Eigen::Map<const Matrix> x(X.data(), all, D);
  const Eigen::Map<const Eigen::VectorXd> y(Y.data() + channel * rows, all);
  team.each(static_cast<std::int64_t>(agents.size()), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    Eigen::Map<Matrix> A(m.A.data() + i * d * d, D, D);
    Eigen::Map<Eigen::VectorXd> b(m.b.data() + i * d, D);
    const auto add = [&](std::size_t from, std::size_t to) {
      constexpr std::size_t kRows = 512;  // at a time: they stay in cache
      for (; from < to; from += kRows) {
        const auto at = static_cast<Eigen::Index>(from);
        const auto count = static_cast<Eigen::Index>(std::min(kRows, to - from));
        const Matrix block = x.middleRows(at, count);
        A.selfadjointView<Eigen::Lower>().rankUpdate(block.transpose());
        b.noalias() += block.transpose() * y.segment(at, count);
        m.yy[i] += y.segment(at, count).squaredNorm();
        m.rows[i] += static_cast<double>(count);
      }
    };
    if (without < 0) {
      add(begin(i, 0), begin(i + 1, 0));
    } else {
      add(begin(i, 0), begin(i, without));
      add(begin(i, without + 1), begin(i + 1, 0));
    }
    A.triangularView<Eigen::StrictlyUpper>() = A.transpose();
  });
  return m;
}

}  // namespace affpcl
