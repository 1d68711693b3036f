#include "affpcl/stream/td.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/stream/stream_score.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// alpha_t = 2 / (lambda (t + t0)) with the first step half of what the largest row allows.
StepSizes automatic_steps(const TdLog& log) {
  const Monotonicity lambda = monotonicity(log);
  const auto module = [](double least, double largest) {
    if (!(least > 0))
      throw BadInput(
          "the transitions leave some values open: a state without rows of its own, or features "
          "that depend on each other");
    return StepSizes::Module{
        .schedule = {.kind = Schedule::Kind::kDiminishing, .t0 = 4 * largest * largest / least},
        .factor = 0.5 / least};
  };
  StepSizes step;
  step.agent = step.central = step.ratio = module(lambda.central, log.G_A());
  step.objective = log.shape().k > 0 ? module(lambda.objective, log.G_Phi()) : step.central;
  return step;
}

// V(state) as coefficients of the model's columns: the first state is the intercept, the others are
// differences to it. Features have no intercept.
std::vector<double> in_columns(const TdLog& log, In x, int lane) {
  std::vector<double> v;
  const bool named = log.named_states();
  if (!named) v.push_back(0);
  for (int r = 0; r < x.rows; ++r) v.push_back(x.at(r, lane) - (named && r > 0 ? v[0] : 0));
  return v;
}

Encoding encoding_of(const TdLog& log) {
  const TdLog::Config& config = log.config();
  Encoding e;
  e.agent_column = config.agent;
  e.target = "value";
  e.values = true;
  const auto add = [&](const std::string& name, std::vector<std::string> levels) {
    Source s{.name = name, .levels = std::move(levels), .mean = {}, .sd = {}};
    s.mean.assign(s.width(), 0.0);
    s.sd.assign(s.width(), 1.0);
    e.sources.push_back(std::move(s));
  };
  if (!log.named_states()) {
    for (const std::string& name : log.names().unknowns) add(name, {});
  } else {
    add(config.state, log.state_names());
  }
  return e;
}

// What judges and models need to know of the log's rows.
Frame frame_of(const TdLog& log) {
  Frame frame;
  frame.encoding = encoding_of(log);
  frame.files = {log.config().file};
  frame.agents = log.names().agents;
  frame.d = static_cast<std::size_t>(log.shape().d);
  frame.starts = {0};
  for (std::int64_t i = 0; i < log.shape().agents; ++i) {
    frame.rows += at(log.rows(i));
    for (int fold = 0; fold < kFolds; ++fold) frame.starts.push_back(frame.rows);
  }
  frame.all_rows = frame.rows;
  return frame;
}

class Learner {
 public:
  Learner(const TdLog& log, const std::string& method, const FitOptions& options, Team& team)
      : log_(log), run_(make_run(log, method, options, team)), followers_(at(log.shape().agents)) {}

  const std::vector<StreamScore>& followers() const { return followers_; }

  // The errors of every agent's row t, which is then learnt from.
  void step(std::int64_t t) {
    for (std::int64_t i = 0; i < log_.shape().agents; ++i) {
      if (!log_.present(i, t)) continue;
      std::array<RowLoss, 3> losses;
      for (std::size_t m = 0; m < losses.size(); ++m) {
        const double e =
            log_.error(i, t, run_.solution(m, i / kLanes), static_cast<int>(i % kLanes));
        losses[m].loss = e * e;
      }
      followers_[at(i)].add(losses, 0);
    }
    run_.advance(t + 1);
  }

  std::vector<double> values(Kind kind, std::int64_t agent) const {
    return in_columns(log_, run_.solution(static_cast<std::size_t>(kind), agent / kLanes),
                      static_cast<int>(agent % kLanes));
  }
  std::vector<double> pooled() const { return in_columns(log_, run_.central_x(2), 0); }
  std::vector<double> centre() const {
    const In xc = run_.central_x(0);
    return xc.p == nullptr ? pooled() : in_columns(log_, xc, 0);
  }

 private:
  static Run make_run(const TdLog& log, const std::string& method, const FitOptions& options,
                      Team& team) {
    std::map<std::string, Value> given = options.method_values;
    if (method == "affpcl") {
      given.emplace("guard", "full");
      given.emplace("ratio", log.named_states() ? "counts" : "linear");
    }
    RunOptions run;
    run.seed = options.frame.seed;
    run.steps = log.most_samples();
    return Run(log, with_baselines(method, given, automatic_steps(log)), run, team);
  }

  const TdLog& log_;
  Run run_;
  std::vector<StreamScore> followers_;
};

Model make_model(const Frame& frame, const Learner& learner, const FitOptions& options,
                 const std::string& method) {
  Model model = begin_model(frame, options, method);
  ChannelModel channel;
  channel.pooled = learner.pooled();
  channel.centre.x = learner.centre();
  channel.centre.s2 = std::nan("");
  model.channels.push_back(std::move(channel));
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    AgentModel agent;
    agent.name = frame.agents[i];
    agent.rows = frame.agent_rows(i);
    agent.kind = learner.followers()[i].kind;
    agent.channels.push_back(
        {.x = learner.values(agent.kind, number), .se = {}, .cov = {}, .s2 = std::nan("")});
    agent.alone.push_back(learner.values(Kind::kAlone, number));
    model.agents.push_back(std::move(agent));
  }
  return model;
}

}  // namespace

FitResult fit_td(const FitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TdLog::Config config = *options.td;
  config.order = TdLog::Order::kOnce;
  const TdLog log(config);
  if (log.named_states() && log.shape().d < 2)
    throw BadInput(fmt::format("{} holds a single state; there is nothing to learn", config.file));
  const std::string method = options.method.empty() ? "affpcl" : options.method;
  const std::unique_ptr<Team> team = serial_team();
  Learner learner(log, method, options, *team);
  const std::int64_t steps = log.most_samples();
  std::int64_t t = 0;
  for (; t < steps && !(options.stop != nullptr && *options.stop); ++t) {
    learner.step(t);
    if (options.progress) options.progress(static_cast<double>(t + 1) / static_cast<double>(steps));
  }

  const Frame frame = frame_of(log);
  FitResult result;
  result.model = make_model(frame, learner, options, method);
  result.complete = t == steps;
  if (!result.complete)
    result.notes.push_back(
        fmt::format("stopped after {} of at most {} rows of an agent", t, steps));
  result.scored = t > 0;
  if (result.scored) judge_agents(frame, tallies(learner.followers()), result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
