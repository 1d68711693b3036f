#include "affpcl/stream/td.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

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
std::vector<double> in_columns(const TdLog& log, const std::vector<double>& x) {
  std::vector<double> v;
  const bool named = log.named_states();
  if (!named) v.push_back(0);
  for (std::size_t r = 0; r < x.size(); ++r) v.push_back(x[r] - (named && r > 0 ? v[0] : 0));
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

// The log's agents and rows, without features.
Frame frame_of(const TdLog& log) {
  Frame frame;
  frame.encoding = encoding_of(log);
  frame.files = {log.config().file};
  frame.agents = log.names().agents;
  frame.d = static_cast<std::size_t>(log.shape().d);
  frame.starts = {0};
  for (std::int64_t i = 0; i < log.shape().agents; ++i) {
    frame.rows += at(log.rows(i));
    for (int fold = 0; fold < frame.folds(); ++fold) frame.starts.push_back(frame.rows);
  }
  frame.all_rows = frame.rows;
  return frame;
}

class Learner {
 public:
  Learner(const TdLog& log, const std::string& method, const StreamOptions& options,
          const FitRun& run)
      : log_(log), run_(make_run(log, method, options, run)), scores_(at(log.shape().agents)) {}

  const std::vector<StreamScore>& scores() const { return scores_; }

  // The errors of every agent's row t, which is then learnt from.
  void step(std::int64_t t) {
    const Leaves own = own_agents(run_, scores_.size());
    for (std::int64_t i = own.first; i < own.last; ++i) {
      if (!log_.present(i, t)) continue;
      ByKind<RowLoss> losses;
      ByKind<double> errors;
      for (std::size_t m = 0; m < losses.size(); ++m) {
        errors[m] = log_.error(i, t, run_.solution(m, i / kLanes), static_cast<int>(i % kLanes));
        losses[m].loss = errors[m] * errors[m];
      }
      const double middle = (errors[static_cast<std::size_t>(scores_[at(i)].kind)] + errors[1]) / 2;
      scores_[at(i)].add(losses, {middle * middle, 0}, 0);
    }
    run_.advance(t + 1);
  }

  // What rank 0 makes the model of, once all rows are learnt.
  void gather(Processes& processes) {
    gather_scores(own_agents(run_, scores_.size()), processes, scores_);
    solutions_.emplace(run_, scores_.size(), processes);
  }
  std::vector<double> values(Kind kind, std::size_t agent) const {
    return in_columns(log_, (*solutions_)(kind, agent));
  }
  std::vector<double> pooled() const { return values(Kind::kPooled, 0); }
  std::vector<double> centre() const {
    const In xc = run_.central_x(0);
    return xc.p == nullptr ? pooled() : in_columns(log_, {xc.p, xc.p + xc.rows});
  }

 private:
  static Run make_run(const TdLog& log, const std::string& method, const StreamOptions& options,
                      const FitRun& run) {
    std::map<std::string, Value> values = options.method_values;
    if (method == "affpcl") {
      values.emplace("guard", "full");
      values.emplace("ratio", log.named_states() ? "counts" : "linear");
    }
    RunOptions o;
    o.seed = run.seed;
    o.steps = log.most_samples();
    return Run(log, with_baselines(method, values, automatic_steps(log)), o, run.team);
  }

  const TdLog& log_;
  Run run_;
  std::vector<StreamScore> scores_;     // of the own agents, in the end of all on rank 0
  std::optional<Solutions> solutions_;  // on rank 0
};

Model make_model(const Frame& frame, const Learner& learner, std::uint64_t seed,
                 const std::string& method) {
  Model model = begin_model(frame, seed, method);
  ChannelModel channel;
  channel.pooled = learner.pooled();
  channel.centre.x = learner.centre();
  channel.centre.s2 = std::nan("");
  model.channels.push_back(std::move(channel));
  model.agents = begin_agents(frame);
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    AgentModel& agent = model.agents[i];
    agent.kind = learner.scores()[i].kind;
    agent.stacked = vertex(agent.kind);
    agent.channels.push_back(
        {.x = learner.values(agent.kind, i), .se = {}, .cov = {}, .s2 = std::nan("")});
    agent.independent.push_back(learner.values(Kind::kIndependent, i));
  }
  return model;
}

}  // namespace

Frame TdSolver::read(const FrameOptions&, Team&) {
  config_.order = TdLog::Order::kOnce;
  log_ = std::make_unique<TdLog>(config_);
  if (log_->named_states() && log_->shape().d < 2)
    throw BadInput(fmt::format("{} holds a single state; there is nothing to learn", config_.file));
  return frame_of(*log_);
}

Fitted TdSolver::solve(Frame& frame, const FitRun& run) {
  const std::string method = options_.method.empty() ? "affpcl" : options_.method;
  Learner learner(*log_, method, options_, run);
  Fitted fitted;
  one_pass(
      log_->most_samples(), run, [&](std::int64_t t) { learner.step(t); }, fitted);
  learner.gather(run.team.processes());
  if (!run.team.processes().first()) return fitted;
  fitted.model = make_model(frame, learner, run.seed, method);
  fitted.tallies = tallies(learner.scores());
  return fitted;
}

}  // namespace affpcl
