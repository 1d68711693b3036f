#include "affpcl/fit/td.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/fit/follower.h"
#include "affpcl/version.h"

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
    for (const std::string& name : log.unknown_names()) add(name, {});
  } else {
    add(config.state, log.state_names());
  }
  return e;
}

}  // namespace

FitResult fit_td(const FitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TdLog::Config config = *options.td;
  config.order = TdLog::Order::kOnce;
  const TdLog log(config);
  const std::int64_t n = log.shape().agents, steps = log.most_samples();
  if (log.named_states() && log.shape().d < 2)
    throw BadInput(fmt::format("{} holds a single state; there is nothing to learn", config.file));

  FitResult result;
  const std::unique_ptr<Team> team = serial_team();
  RunOptions run_options;
  run_options.seed = options.frame.seed;
  run_options.steps = steps;
  const std::string method = options.method.empty() ? "affpcl" : options.method;
  std::map<std::string, Value> given = options.method_values;
  if (method == "affpcl") {
    given.emplace("guard", "full");
    given.emplace("ratio", log.named_states() ? "counts" : "linear");
  }
  Run run(log, with_twins(method, given, automatic_steps(log)), run_options, *team);
  std::vector<Follower> followers(at(n));
  std::int64_t t = 0;
  for (; t < steps && !(options.stop != nullptr && *options.stop); ++t) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (!log.present(i, t)) continue;
      std::array<RowLoss, 3> losses;
      for (std::size_t m = 0; m < losses.size(); ++m) {
        const double e = log.error(i, t, run.solution(m, i / kLanes), static_cast<int>(i % kLanes));
        losses[m].loss = e * e;
      }
      followers[at(i)].add(losses, 0);
    }
    run.advance(t + 1);
    if (options.progress) options.progress(static_cast<double>(t + 1) / static_cast<double>(steps));
  }

  Model& model = result.model;
  model.solver = Solver::kStream;
  model.method = method;
  model.encoding = encoding_of(log);
  model.version = kVersion;
  model.files = {config.file};
  model.seed = options.frame.seed;
  const In xc = run.central_x(0);
  ChannelModel channel;
  channel.pooled = in_columns(log, run.central_x(2), 0);
  channel.centre.x = xc.p == nullptr ? channel.pooled : in_columns(log, xc, 0);
  channel.centre.s2 = std::nan("");
  model.channels.push_back(std::move(channel));
  Frame frame;  // what judges need of it
  frame.encoding = model.encoding;
  frame.agents = log.agent_names();
  frame.d = static_cast<std::size_t>(log.shape().d);
  frame.starts = {0};
  for (std::int64_t i = 0; i < n; ++i) {
    const Follower& f = followers[at(i)];
    AgentModel agent;
    agent.name = frame.agents[at(i)];
    agent.rows = at(log.rows(i));
    agent.kind = f.kind;
    const auto values = [&](Kind kind) {
      return in_columns(log, run.solution(at(static_cast<std::int64_t>(kind)), i / kLanes),
                        static_cast<int>(i % kLanes));
    };
    agent.channels.push_back({.x = values(f.kind), .se = {}, .cov = {}, .s2 = std::nan("")});
    agent.alone.push_back(values(Kind::kAlone));
    model.rows += agent.rows;
    for (int fold = 0; fold < kFolds; ++fold) frame.starts.push_back(model.rows);
    model.agents.push_back(std::move(agent));
  }
  frame.rows = model.rows;
  result.complete = t == steps;
  if (!result.complete)
    result.notes.push_back(
        fmt::format("stopped after {} of at most {} rows of an agent", t, steps));
  result.scored = t > 0;
  if (result.scored) judge_agents(frame, tallies(followers), result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
