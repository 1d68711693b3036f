#include "affpcl/stream/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/problem/rows.h"
#include "affpcl/stream/stream_score.h"
#include "affpcl/table/class_scores.h"

namespace affpcl {
namespace {

constexpr double kDependent = 1e-9;  // a direction with less of the largest variance is left out

// Columns W with W'W' = the inverse of the mean of all rows' phi phi': phi W has covariance I.
Matrix whitening(const Frame& frame) {
  const MatrixView X(frame.X.data(), frame.d, frame.rows);
  Matrix S = multiply(X, transposed(X));
  for (double& v : S.all()) v /= static_cast<double>(frame.rows);
  const SymmetricEigen eigen = symmetric_eigen(S);
  std::size_t first = 0;
  while (eigen.values[first] <= kDependent * eigen.values.back()) ++first;
  Matrix W(frame.d, frame.d - first);
  for (std::size_t k = 0; k < W.cols(); ++k)
    for (std::size_t j = 0; j < frame.d; ++j)
      W(j, k) = eigen.vectors(first + k, j) * (1 / std::sqrt(eigen.values[first + k]));
  return W;
}

// All rows in those coordinates, agent after agent.
std::shared_ptr<const std::vector<double>> whitened(const Frame& frame, const Matrix& W) {
  auto phi = std::make_shared<std::vector<double>>(frame.rows * W.cols());
  multiply(transposed({frame.X.data(), frame.d, frame.rows}), W,
           {phi->data(), frame.rows, W.cols()});
  return phi;
}

// E|phi|^4 / E|phi|^2 of an agent's rows: the mean over directions of the R^2 in
//   E[|phi|^2 phi phi'] <= R^2 E[phi phi'].
// Constant steps below 1 / R^2 are stable.
double scale_of(const Rows& rows, std::int64_t agent) {
  const auto d = static_cast<std::size_t>(rows.shape().d);
  double square = 0, fourth = 0;
  for (std::int64_t t = 0; t < rows.rows(agent); ++t) {
    const double s = squared_norm({rows.phi(agent, t), d});
    square += s, fourth += s * s;
  }
  return square > 0 ? fourth / square : 0;
}

// alpha_t = 2 / (t + t0), at most half of what is stable: for an agent by its own rows, for the
// centre, which takes the mean over the n_t agents that have a row, by 1 + R^2 / n_t at every t.
StepSizes automatic_steps(const Rows& rows) {
  const std::int64_t n = rows.shape().agents;
  std::vector<double> own;
  double common = 0, all = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    own.push_back(scale_of(rows, i));
    common += own.back() * static_cast<double>(rows.rows(i));
    all += static_cast<double>(rows.rows(i));
  }
  common /= all;
  StepSizes step;
  for (StepSizes::Module* m : {&step.agent, &step.central, &step.objective, &step.ratio})
    *m = {.schedule = {.kind = Schedule::Kind::kDiminishing, .t0 = 4 * common}, .factor = 0.5};
  for (double scale : own) step.agent_factors.push_back(0.5 * std::min(1.0, common / scale));
  double& t0 = step.central.schedule.t0 = 0;
  for (std::int64_t i = 0; i <= n; ++i) {  // the number present falls where an agent's rows end
    const std::int64_t t = i < n ? rows.rows(i) : 0;
    if (const std::int64_t present = rows.count_present(t); present > 0)
      t0 = std::max(t0, 4 * (1 + common / static_cast<double>(present)) - static_cast<double>(t));
  }
  step.objective = step.central;
  return step;
}

// What a stream learns: a problem for each channel, or one for the weighted sum of all outcomes.
struct Line {
  std::unique_ptr<Rows> rows;
  std::unique_ptr<Run> run;
  std::vector<double> offset;  // by agent: a prediction is offset + scale * phi'x
  double scale = 1;
};

Line channel_line(const Frame& frame, std::size_t c, Rows::Data data) {
  data.y.assign(frame.Y.begin() + static_cast<std::ptrdiff_t>(c * frame.rows),
                frame.Y.begin() + static_cast<std::ptrdiff_t>((c + 1) * frame.rows));
  Line line;
  line.rows = std::make_unique<Rows>(std::move(data), Rows::Order::kOnce, Rows::Form::kFeatures);
  line.offset.assign(frame.agents.size(), frame.y_mean[c]);
  line.scale = frame.y_sd[c];
  return line;
}

Line weighed_line(const Frame& frame, Rows::Data data) {
  const std::size_t k = frame.channels;
  Line line;
  data.k = static_cast<int>(k);
  data.c.resize(frame.rows * k);
  data.y.resize(frame.rows);
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    double offset = 0;
    for (std::size_t c = 0; c < k; ++c) {
      offset += frame.theta[i * k + c] * frame.y_mean[c];
      data.theta.push_back(frame.theta[i * k + c] * frame.y_sd[c]);
    }
    line.offset.push_back(offset);
    for (std::size_t r = frame.begin(i, 0); r < frame.begin(i + 1, 0); ++r)
      for (std::size_t c = 0; c < k; ++c) {
        data.c[r * k + c] = frame.Y[c * frame.rows + r];
        data.y[r] += data.theta[i * k + c] * data.c[r * k + c];
      }
  }
  line.rows = std::make_unique<Rows>(std::move(data), Rows::Order::kOnce, Rows::Form::kChannels);
  return line;
}

class Stream {
 public:
  Stream(const Frame& frame, const std::string& method, const StreamOptions& options,
         std::uint64_t seed, Team& team)
      : frame_(frame),
        W_(whitening(frame)),
        scores_(frame.agents.size()),
        classes_(frame, 1, team) {
    Rows::Data data;
    data.d = static_cast<int>(W_.cols());
    for (std::size_t i = 0; i <= frame.agents.size(); ++i)
      data.first.push_back(static_cast<std::int64_t>(frame.begin(i, 0)));
    data.phi = whitened(frame, W_);
    if (!frame.theta.empty()) {
      lines_.push_back(weighed_line(frame, std::move(data)));
    } else {
      for (std::size_t c = 0; c < frame.channels; ++c)
        lines_.push_back(channel_line(frame, c, data));
    }
    std::map<std::string, Value> values = options.method_values;
    if (method == "affpcl") {
      values.emplace("guard", "full");
      values.emplace("ratio", "none");
      if (!frame.theta.empty()) values.emplace("objective", "known");
    }
    RunOptions run;
    run.seed = seed;
    run.steps = lines_[0].rows->most_samples();
    const StepSizes step = automatic_steps(*lines_[0].rows);
    for (Line& line : lines_)
      line.run = std::make_unique<Run>(*line.rows, with_baselines(method, values, step), run, team);
  }

  std::int64_t steps() const { return lines_[0].rows->most_samples(); }
  std::size_t lines() const { return lines_.size(); }
  const std::vector<StreamScore>& scores() const { return scores_; }
  ClassScores class_scores(Team& team) { return classes_.scores(0, team); }

  // Predicts every agent's row t, and learns from it.
  void step(std::int64_t t, Team& team) {
    const auto n = static_cast<std::int64_t>(scores_.size());
    const Leaves own{lines_[0].run->first_block(), lines_[0].run->last_block()};
    team.each(own, [&](std::int64_t b, int worker) {
      const Lanes lanes = lanes_of(b, n);
      for (int l = 0; l < lanes.count; ++l)
        if (lines_[0].rows->present(lanes.first + l, t)) predict(lanes.first + l, t, worker);
    });
    for (const Line& line : lines_) line.run->advance(t + 1);
  }

  // What rank 0 makes the model of, once all rows are learnt.
  void gather(Processes& processes) {
    gather_scores(own_agents(*lines_[0].run, scores_.size()), processes, scores_);
    for (const Line& line : lines_) solutions_.emplace_back(*line.run, scores_.size(), processes);
  }
  // Coefficients of the frame's columns, in units of the target.
  std::vector<double> coefficients(std::size_t line, Kind kind, std::size_t agent) const {
    return in_units(line, solutions_[line](kind, agent), lines_[line].offset[agent]);
  }
  std::vector<double> centre(std::size_t line) const {
    const Run& run = *lines_[line].run;
    const In xc = run.central_x(0).p != nullptr ? run.central_x(0) : run.central_x(2);
    return in_units(line, {xc.p, xc.p + xc.rows}, mean(lines_[line].offset));
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::vector<double> in_units(std::size_t line, const Vector& x, double offset) const {
    Vector back = multiply(W_, x);
    for (double& b : back) b *= lines_[line].scale;
    back[0] += offset;
    return back;
  }

  void predict(std::int64_t i, std::int64_t t, int worker) {
    const std::size_t row = frame_.begin(at(i), 0) + at(t);
    const double* phi = lines_[0].rows->phi(i, t);
    ByKind<RowLoss> losses;
    ByKind<double> brier;
    std::vector<double> predicted(lines_.size()), middle(lines_.size());
    const auto chosen = static_cast<std::size_t>(scores_[at(i)].kind);
    for (std::size_t m = 0; m < losses.size(); ++m) {
      for (std::size_t k = 0; k < lines_.size(); ++k) {
        const In x = lines_[k].run->solution(m, i / kLanes);
        double sum = 0;
        for (int r = 0; r < x.rows; ++r) sum += phi[r] * x.at(r, static_cast<int>(i % kLanes));
        predicted[k] = lines_[k].offset[at(i)] + lines_[k].scale * sum;
      }
      losses[m] = row_loss(frame_, at(i), row, predicted);
      if (classes_.counts()) {
        const std::vector<double> p =
            class_probabilities(predicted, frame_.encoding.classes.size());
        brier[m] = brier_score(p, static_cast<std::size_t>(frame_.classes[row]));
        classes_.add(worker, m + 1, p, row);
        if (m == chosen) classes_.add(worker, 0, p, row);
      }
      const double share = ((m == chosen) + (m == 1)) / 2.0;
      for (std::size_t k = 0; k < lines_.size(); ++k) middle[k] += share * predicted[k];
    }
    if (classes_.counts())
      scores_[at(i)].tally.add_brier({brier[chosen], brier[0], brier[1], brier[2]},
                                     frame_.weight(row));
    scores_[at(i)].add(losses, row_loss(frame_, at(i), row, middle), frame_.wanted(at(i), row));
  }

  const Frame& frame_;
  Matrix W_;
  std::vector<Line> lines_;
  std::vector<Solutions> solutions_;  // by line, on rank 0
  std::vector<StreamScore> scores_;   // of the own agents, in the end of all on rank 0
  ClassTally classes_;
};

Model make_model(const Frame& frame, const Stream& stream, std::uint64_t seed,
                 const std::string& method) {
  const bool classify = !frame.encoding.classes.empty();
  const auto error = [&](const Paired& losses) { return classify ? std::nan("") : losses.mean(); };
  Model model = begin_model(frame, seed, method);
  Paired pooled;
  for (const StreamScore& s : stream.scores()) {
    const Paired p = s.losses[2].all();
    pooled.n += p.n, pooled.s1 += p.s1;
  }
  for (std::size_t k = 0; k < stream.lines(); ++k) {
    ChannelModel channel;
    channel.centre.x = stream.centre(k);
    channel.centre.s2 = error(pooled);
    channel.pooled = stream.coefficients(k, Kind::kPooled, 0);
    model.channels.push_back(std::move(channel));
  }
  model.agents = begin_agents(frame);
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    const StreamScore& score = stream.scores()[i];
    AgentModel& agent = model.agents[i];
    agent.kind = score.kind;
    agent.stacked = vertex(score.kind);
    for (std::size_t k = 0; k < stream.lines(); ++k) {
      LinearModel m;
      m.x = stream.coefficients(k, score.kind, i);
      m.s2 = error(score.losses[static_cast<std::size_t>(score.kind)].all());
      agent.channels.push_back(std::move(m));
      agent.independent.push_back(stream.coefficients(k, Kind::kIndependent, i));
    }
  }
  return model;
}

}  // namespace

const Params<StreamOptions>& StreamOptions::params() {
  static const Params<StreamOptions> kParams = {
      {"method", &StreamOptions::method,
       "stream solver: any method of `affpcl list`; by default guarded AffPCL where outcomes are "
       "weighted, else residual"},
  };
  return kParams;
}

Frame StreamSolver::read(const FrameOptions& options, Team& team) {
  return build_frame(options, *thread_team(team.workers()), row_order());
}

Fitted StreamSolver::solve(Frame& frame, const FitRun& run) {
  // One leaf of agents is too little work for threads.
  const bool many = leaves_of(static_cast<std::int64_t>(frame.agents.size())) > 1;
  const std::unique_ptr<Team> serial = many ? nullptr : serial_team(run.team.processes());
  Team& team = many ? run.team : *serial;
  const bool weighs = !frame.theta.empty();
  const std::string method = !options_.method.empty() ? options_.method
                             : weighs                 ? "affpcl"
                                                      : "residual";
  Fitted fitted;
  if (method == "affpcl" && !weighs)
    fitted.notes.emplace_back(
        "without outcome channels (`channels`, `weights`) AffPCL is learning alone: noise of an "
        "agent's own labels cannot be pooled by an unbiased correction");
  Stream stream(frame, method, options_, run.seed, team);
  one_pass(
      stream.steps(), run, [&](std::int64_t t) { stream.step(t, team); }, fitted);
  fitted.classes = stream.class_scores(team);
  stream.gather(team.processes());
  if (!team.processes().first()) return fitted;
  fitted.model = make_model(frame, stream, run.seed, method);
  fitted.tallies = tallies(stream.scores());
  return fitted;
}

}  // namespace affpcl
