#include "affpcl/table/folds.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <type_traits>

#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr double kMostCovariances = 1e6;  // numbers kept

// The personalised model, unless another one's leave-one-out errors are clearly smaller.
Kind choose(const AgentFit& agent) {
  Paired than_independent, than_pooled;  // how much larger the personalised model's errors are
  for (const ByKind<double>& e : agent.leave_one_out()) {
    than_independent.add(e[0] - e[1]);
    than_pooled.add(e[0] - e[2]);
  }
  return supported(than_independent, than_pooled);
}

// Calls each(list, size) for every list of numbers of an agent's model.
template <class Each>
void each_list(const Frame& frame, AgentModel& agent, Each each) {
  const std::size_t d = frame.d, cov = keeps_covariances(frame) ? d * d : 0;
  agent.channels.resize(frame.channels), agent.independent.resize(frame.channels);
  for (std::size_t c = 0; c < frame.channels; ++c) {
    LinearModel& channel = agent.channels[c];
    each(channel.x, d), each(channel.se, d), each(agent.independent[c], d), each(channel.cov, cov);
  }
  each(agent.level_cov, frame.encoding.within.empty() ? 0 : d);
}

// Gathers the models of all agents to rank 0.
void gather_agents(const Frame& frame, Team& team, Model& model) {
  if (team.processes().count() == 1) return;
  std::vector<double> numbers;
  const Leaves own = own_agents(frame.agents.size(), team);
  for (std::int64_t i = own.first; i < own.last; ++i) {
    AgentModel& a = model.agents[static_cast<std::size_t>(i)];
    numbers.insert(numbers.end(),
                   {static_cast<double>(a.rows), static_cast<double>(a.kind), a.widened});
    numbers.push_back(a.level);
    for (const LinearModel& c : a.channels) numbers.push_back(c.s2);
    each_list(frame, a, [&](const std::vector<double>& v, std::size_t) {
      numbers.insert(numbers.end(), v.begin(), v.end());
    });
  }
  std::size_t i = 0;
  gather(team.processes(), numbers, [&](std::span<const double> theirs) {
    const double* at = theirs.data();
    for (; at != theirs.data() + theirs.size(); ++i) {
      AgentModel& a = model.agents[i];
      a.rows = static_cast<std::size_t>(*at++);
      a.kind = static_cast<Kind>(*at++);
      a.widened = *at++;
      a.level = static_cast<int>(*at++);
      a.channels.resize(frame.channels);
      for (LinearModel& c : a.channels) c.s2 = *at++;
      each_list(frame, a, [&](std::vector<double>& v, std::size_t size) {
        v.assign(at, at + size);
        at += size;
      });
    }
  });
}

// Gathers the tallies of all agents to rank 0.
void gather_tallies(Team& team, std::vector<RowTally>& tallies) {
  constexpr std::size_t kNumbers = sizeof(RowTally) / sizeof(double);
  static_assert(std::is_trivially_copyable_v<RowTally> && sizeof(RowTally) % sizeof(double) == 0);
  const Leaves own = own_agents(tallies.size(), team);
  std::vector<double> numbers(static_cast<std::size_t>(own.count()) * kNumbers);
  if (own.count() > 0)
    std::memcpy(numbers.data(), tallies.data() + own.first, numbers.size() * sizeof(double));
  RowTally* to = tallies.data();
  gather(team.processes(), numbers, [&](std::span<const double> theirs) {
    if (!theirs.empty()) std::memcpy(static_cast<void*>(to), theirs.data(), theirs.size_bytes());
    to += theirs.size() / kNumbers;
  });
}

Model make_model(const Frame& frame, const FoldFit& fit, const FitRun& run) {
  Model model = begin_model(frame, run.seed);
  model.agents = begin_agents(frame);
  run.team.each(own_agents(frame.agents.size(), run.team), [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    const std::unique_ptr<AgentFit> fitted = fit.agent(i);
    AgentModel& agent = model.agents[i];
    agent.kind = choose(*fitted);
    fitted->describe(agent.kind, agent);
  });
  fit.describe(model, run.team);
  gather_agents(frame, run.team, model);
  return model;
}

std::vector<std::string> notes_of(const Frame& frame, const FoldFit& fit, const Model& model) {
  const std::size_t n = frame.agents.size();
  if (n == 1) return {"there is one agent, so nothing to share"};
  std::vector<std::string> notes = fit.notes();
  std::size_t few = 0, single = 0;
  for (const AgentModel& a : model.agents) few += a.rows < frame.d, single += a.rows == 1;
  if (few > 0)
    notes.push_back(fmt::format(
        "{} of {} agents have fewer rows than coefficients ({}): they lean on the others", few, n,
        frame.d));
  if (single > 0) notes.push_back(fmt::format("{} of {} agents have a single row", single, n));
  if (frame.all_rows < frame.d)
    notes.push_back(fmt::format("there are fewer rows ({}) than coefficients ({}), even together",
                                frame.all_rows, frame.d));
  return notes;
}

// Rows in each fold, over all processes.
std::vector<double> fold_sizes(const Frame& frame, Processes& processes) {
  std::vector<double> sizes(kFolds);
  for (std::size_t i = 0; i < frame.agents.size(); ++i)
    for (int f = 0; f < kFolds; ++f)
      sizes[static_cast<std::size_t>(f)] +=
          static_cast<double>(frame.begin(i, f + 1) - frame.begin(i, f));
  sum(processes, sizes);
  return sizes;
}

void score_fold(const Frame& frame, const FoldFit& fit, int fold, Team& team,
                std::vector<RowTally>& tallies) {
  team.each(own_agents(frame.agents.size(), team), [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    const std::size_t from = frame.begin(i, fold), to = frame.begin(i, fold + 1);
    if (from == to) return;
    const std::unique_ptr<AgentFit> agent = fit.agent(i);
    const Kind chosen = choose(*agent);
    const std::vector<ByKind<RowLoss>> losses = agent->losses(from, to);
    for (std::size_t r = from; r < to; ++r)
      tallies[i].add(losses[r - from], chosen, frame.wanted(i, r));
  });
}

void cross_validate(const Frame& frame, FoldedSolver& solver, const FitRun& run, Fitted& fitted) {
  const std::vector<double> sizes = fold_sizes(frame, run.team.processes());
  fitted.scored = run.score && frame.all_rows > 1;
  for (int f = 0; f < kFolds && fitted.scored; ++f) {
    if (run.stopped()) {
      fitted.scored = fitted.complete = false;
      break;
    }
    const auto held_out = static_cast<std::size_t>(sizes[static_cast<std::size_t>(f)]);
    if (held_out == 0 || held_out == frame.all_rows) continue;
    score_fold(frame, *solver.learn(frame, f, run.team), f, run.team, fitted.tallies);
    run.report((f + 2) / (kFolds + 1.0));
  }
  gather_tallies(run.team, fitted.tallies);
}

}  // namespace

bool keeps_covariances(const Frame& frame) {
  return static_cast<double>(frame.agents.size() * frame.channels * frame.d * frame.d) <=
         kMostCovariances;
}

Fitted FoldedSolver::solve(const Frame& frame, const FitRun& run) {
  Fitted fitted;
  {
    const std::unique_ptr<FoldFit> all = learn(frame, kAllRows, run.team);
    fitted.model = make_model(frame, *all, run);
    fitted.notes = notes_of(frame, *all, fitted.model);
  }
  run.report(1 / (kFolds + 1.0));
  fitted.tallies.resize(frame.agents.size());
  cross_validate(frame, *this, run, fitted);
  return fitted;
}

}  // namespace affpcl
