#include "affpcl/runtime/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

constexpr Field kOneRow{0, 1};

double distance2(In a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t r = 0; r < b.size(); ++r) sum += (a.p[r] - b[r]) * (a.p[r] - b[r]);
  return sum;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

template <class F>
void Run::blocks(std::int64_t leaf, F f) const {
  const std::int64_t first = leaf * (kLeaf / kLanes),
                     last = std::min(first + kLeaf / kLanes, blocks_of(shape_.agents));
  for (std::int64_t b = first; b < last; ++b) f(b);
}

Run::Run(const Problem& problem, std::vector<Method> methods, RunOptions options, Team& team)
    : problem_(problem),
      options_(std::move(options)),
      team_(team),
      shape_(problem.shape()),
      leaves_(leaves_of(shape_.agents)),
      more_(static_cast<int>(problem.more_errors().size())) {
  const int workers = team_.workers();
  scratch_.resize(static_cast<std::size_t>(workers));
  const Key key{options_.seed, options_.replicate, 0};

  for (Method& method : methods) {
    const std::int64_t samples = options_.steps * method.batch;
    if (samples > std::int64_t{1} << 32)
      throw BadInput(fmt::format(
          "{} samples per agent are asked for, but an agent's random stream has 2^32", samples));
    if (samples > problem_.most_samples())
      throw BadInput(fmt::format("{} samples per agent are asked for, but the problem has {}",
                                 samples, problem_.most_samples()));
    if (method.period * method.batch > 1 && problem_.count_present(samples - 1) < shape_.agents)
      throw BadInput(
          "the agents' rows end at different times: period and batch of every method must be 1");
    if (method.last == 0) method.last = method.batch;
    Member m;
    m.method = std::move(method);
    const Algorithm& algorithm = *m.method.algorithm;
    m.method.algorithm->declare(
        {problem_, m.method.step, m.method.period, m.method.batch, m.method.last, options_.steps},
        m.agent, m.centre, m.sum);
    m.agents = Store(m.agent.rows(), shape_.agents);
    m.shared = Buffer(static_cast<std::size_t>(m.centre.rows()));
    m.mean = Buffer(static_cast<std::size_t>(m.sum.size()));
    m.error = Store(1, shape_.agents);
    m.tail = Store(1, shape_.agents);
    m.more = Store(more_, shape_.agents);
    if (options_.iterate != RunOptions::Iterate::kLast) m.averaged = Store(shape_.d, shape_.agents);
    m.total = TeamSum(static_cast<std::size_t>(m.sum.size()), workers);
    m.error_total = TeamSum(1, workers);
    m.record.sent = m.sum.size();
    m.record.published = algorithm.published_traffic();
    m.record.agents.resize(options_.curve_agents.size());
    const auto points = static_cast<std::size_t>(
        std::min(options_.curve_points, options_.steps / m.method.period) + 2);
    m.record.steps.reserve(points);  // so that recording never allocates
    m.record.curve.reserve(points);
    for (std::vector<double>& curve : m.record.agents) curve.reserve(points);
    algorithm.start(problem_, key, centre_of(m));
    team_.each(leaves_, [&](std::int64_t leaf, int) {
      blocks(leaf, [&](std::int64_t b) {
        algorithm.start(problem_, m.agents.block(b));
        if (!m.averaged.all().empty())
          copy(algorithm.solution(m.agents.block(b), centre_of(m)),
               m.averaged.block(b)[{0, shape_.d}]);
      });
    });
    members_.push_back(std::move(m));
  }

  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Method& method = members_[i].method;
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return !shape_.acts && g.period == method.period && g.batch == method.batch &&
             g.last == method.last;
    });
    if (group == groups_.end()) {
      Group g{method.period, method.batch, method.last, {}, {}, {}, {}, {}};
      problem_.declare(g.world, g.sample);
      g.worlds = Store(g.world.rows(), shape_.agents);
      g.samples = Store(g.period * g.batch * (g.sample.rows() + shape_.d), shape_.agents);
      group = groups_.insert(groups_.end(), std::move(g));
    }
    group->members.push_back(i);
  }

  // The scale against which divergence is judged: the mean of |x*|^2, or 1 if all are 0.
  if (const Truth* truth = problem_.truth()) {
    double sum = 0;
    const std::vector<double> zero(static_cast<std::size_t>(shape_.d));
    for (std::int64_t b = 0; b < blocks_of(shape_.agents); ++b) {
      const Out e = scratch_[0].rows(1);
      squared_distance({zero.data(), shape_.d, 1}, truth->x.block(b)[{0, shape_.d}], e);
      sum += kernels::lane_sum(e.p, lanes_of(b, shape_.agents).count);
      scratch_[0].clear();
    }
    scale_ = sum > 0 ? sum / static_cast<double>(shape_.agents) : 1;
  }
}

In Run::scored(const Member& member, std::int64_t block) const {
  if (options_.iterate != RunOptions::Iterate::kLast)
    return member.averaged.block(block)[{0, shape_.d}];
  return member.method.algorithm->solution(member.agents.block(block), centre_of(member));
}

Batch Run::batch_of(const Group& group, std::int64_t block, int steps) const {
  return {.p = group.samples.block(block).p,
          .state_rows = group.sample.rows(),
          .d = shape_.d,
          .steps = steps,
          .size = group.batch,
          .period = group.period,
          .last = group.last};
}

void Run::draw(Group& group, int steps) {
  const Member& acting = members_[group.members.front()];
  team_.each(leaves_, [&](std::int64_t leaf, int) {
    blocks(leaf, [&](std::int64_t b) {
      const Agents world = group.worlds.block(b);
      const Batch batch = batch_of(group, b, steps);
      Draw draw{{options_.seed, options_.replicate, 0}, {}};
      if (shape_.acts)
        draw.acting = acting.method.algorithm->solution(acting.agents.block(b), centre_of(acting));
      for (int k = 0; k < steps; ++k)
        for (int m = 0; m < batch.samples(k); ++m) {
          draw.key.step = static_cast<std::uint32_t>((step_ + k) * group.batch + m);
          const In s = batch.s(k, m), own = batch.b(k, m);
          problem_.draw(draw, {world.lanes, world.p}, {const_cast<double*>(s.p), s.rows});
          problem_.objective(world.lanes, s, {const_cast<double*>(own.p), own.rows});
        }
    });
  });
}

void Run::round(Group& group, Member& m, int steps) {
  const double start = now();
  const Algorithm& algorithm = *m.method.algorithm;
  const Centre centre = centre_of(m);
  const Mean mean{m.mean.data()};
  const std::int64_t present = problem_.count_present((step_ + steps) * group.batch - 1);
  const auto context = [&](int worker, int agents = kLanes) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    scratch.clear(agents);
    return Round{problem_, m.method.step, step_,
                 steps,    scratch,       {options_.seed, options_.replicate, 0}};
  };

  if (m.sum.size() > 0) {
    const double* total =
        m.total(team_, leaves_, [&](std::int64_t leaf, int worker, double* numbers) {
          blocks(leaf, [&](std::int64_t b) {
            const Agents agents = m.agents.block(b);
            algorithm.contribute(context(worker, agents.lanes.count), batch_of(group, b, steps),
                                 agents, centre, Message(numbers, agents.lanes));
          });
        });
    kernels::multiply(total, 1 / static_cast<double>(present), m.mean.size(), m.mean.data());
    algorithm.centre(context(0), mean, centre);
  }

  // lem:step weighs iterate tau by tau + t0; polyak starts anew at the half.
  const std::int64_t at = step_ + steps;
  double share = 1;
  if (options_.iterate == RunOptions::Iterate::kWeighted) {
    const Schedule& schedule = m.method.step.agent.schedule;
    const double t0 = schedule.kind == Schedule::Kind::kDiminishing ? schedule.t0 : 1;
    if (m.progress[kWeight] == 0) m.progress[kWeight] = t0;  // the start, tau = 0
    m.progress[kWeight] += static_cast<double>(at) + t0;
    share = (static_cast<double>(at) + t0) / m.progress[kWeight];
  } else if (options_.iterate == RunOptions::Iterate::kPolyak && at > options_.steps / 2) {
    share = 1 / ++m.progress[kWeight];
  }

  const bool scored_problem = problem_.truth() != nullptr;
  const bool in_tail = at > options_.steps - options_.tail;
  const double* sum =
      m.error_total(team_, leaves_, [&](std::int64_t leaf, int worker, double* numbers) {
        blocks(leaf, [&](std::int64_t b) {
          const Agents agents = m.agents.block(b);
          const Round round = context(worker, agents.lanes.count);
          const Out all = agents[{0, m.agent.rows()}];
          const bool rests = present < shape_.agents && algorithm.rests();
          const Out before = round.scratch.rows(rests ? all.rows : 0);
          if (rests) copy(all, before);
          algorithm.update(round, batch_of(group, b, steps), agents, centre, mean);
          if (rests) restore_absent(agents.lanes, before, all);
          if (options_.iterate != RunOptions::Iterate::kLast) {
            const In x = algorithm.solution(agents, centre);
            const Out average = m.averaged.block(b)[{0, shape_.d}];
            for (int r = 0; r < shape_.d; ++r)
              for (int l = 0; l < kLanes; ++l)
                average.row(r)[l] += share * (x.at(r, l) - average.row(r)[l]);
          }
          if (!scored_problem) return;
          const Out error = m.error.block(b)[kOneRow];
          problem_.error(agents.lanes, scored(m, b), error);
          if (in_tail) {
            add_scaled(m.tail.block(b)[kOneRow], 1, error);
            if (more_ > 0) {
              const Out more = scratch_[static_cast<std::size_t>(worker)].rows(more_);
              problem_.more_errors(agents.lanes, scored(m, b), more);
              add_scaled(m.more.block(b)[{0, more_}], 1, more);
            }
          }
          numbers[0] += kernels::lane_sum(error.p, agents.lanes.count);
        });
      });
  record(m, at, sum[0]);
  m.progress[kSeconds] += now() - start;
}

// Who has no sample takes no step.
void Run::restore_absent(Lanes lanes, In before, Out now) const {
  for (int l = 0; l < lanes.count; ++l) {
    if (problem_.present(lanes.first + l, step_)) continue;
    for (int r = 0; r < now.rows; ++r) now.row(r)[l] = before.row(r)[l];
  }
}

void Run::record(Member& m, std::int64_t at, double error_sum) {
  if (problem_.truth() == nullptr) return;
  const Truth& truth = *problem_.truth();
  const double mse = error_sum / static_cast<double>(shape_.agents);
  if (!(mse <= options_.diverged_above * scale_)) m.progress[kDivergedAt] = static_cast<double>(at);
  if (at > options_.steps - options_.tail) {
    const In xc = m.method.algorithm->central_x(centre_of(m)),
             thetac = m.method.algorithm->central_theta(centre_of(m));
    const double none = std::numeric_limits<double>::quiet_NaN();
    m.progress[kTailCount] += 1;
    m.progress[kTailSum] += mse;
    m.progress[kTailX] += xc.p != nullptr ? distance2(xc, truth.xc) : none;
    m.progress[kTailTheta] += thetac.p != nullptr ? distance2(thetac, truth.thetac) : none;
  }
  // Rounds that end at (or first after) a multiple of `every` are kept, and the last.
  const std::int64_t every = (options_.steps + options_.curve_points - 1) / options_.curve_points;
  const std::int64_t last =
      m.record.steps.empty() ? 0 : static_cast<std::int64_t>(m.record.steps.back());
  if (at / every == last / every && at < options_.steps) return;
  m.record.steps.push_back(static_cast<double>(at));
  m.record.curve.push_back(mse);
  for (std::size_t i = 0; i < options_.curve_agents.size(); ++i) {
    const std::int64_t agent = options_.curve_agents[i];
    m.record.agents[i].push_back(m.error.block(agent / kLanes)[kOneRow].p[agent % kLanes]);
  }
}

void Run::advance(std::int64_t until, const std::atomic<bool>* stop) {
  until = std::min(until, options_.steps);
  // All groups keep step: a group's round covers its period, and is due when the clock reaches it.
  while (step_ < until && !(stop != nullptr && stop->load(std::memory_order_relaxed))) {
    for (Group& group : groups_) {
      if (step_ % group.period != 0) continue;
      const int steps =
          static_cast<int>(std::min<std::int64_t>(group.period, options_.steps - step_));
      draw(group, steps);
      for (std::size_t i : group.members) {
        if (members_[i].progress[kDivergedAt] > 0) continue;
        round(group, members_[i], steps);
        if (watcher_) watcher_(i, step_ + steps);
      }
    }
    ++step_;
  }
}

const std::vector<Record>& Run::finish() {
  records_.clear();
  for (const Member& m : members_) {
    Record r = m.record;
    const double count = m.progress[kTailCount];
    r.diverged_at =
        m.progress[kDivergedAt] > 0 ? static_cast<std::int64_t>(m.progress[kDivergedAt]) : -1;
    r.seconds = m.progress[kSeconds];
    // A run that was stopped before its tail shows where it stood.
    r.mse = count > 0         ? m.progress[kTailSum] / count
            : r.curve.empty() ? std::nan("")
                              : r.curve.back();
    r.central_x = m.progress[kTailX] / count;
    r.central_theta = m.progress[kTailTheta] / count;
    const Store& errors = count > 0 ? m.tail : m.error;
    for (std::int64_t i = 0; i < shape_.agents; ++i)
      r.agent_mse.push_back(problem_.truth() == nullptr
                                ? std::nan("")
                                : errors.block(i / kLanes)[kOneRow].p[i % kLanes] /
                                      std::max(count, 1.0));
    if (!problem_.agent_names().empty())
      for (std::int64_t i = 0; i < shape_.agents; ++i)
        for (int k = 0; k < shape_.d; ++k)
          r.solution.push_back(scored(m, i / kLanes).at(k, static_cast<int>(i % kLanes)));
    // Without a truth there is no error to watch: diverged is what is not finite at the end.
    if (problem_.truth() == nullptr && !std::all_of(r.solution.begin(), r.solution.end(),
                                                    [](double x) { return std::isfinite(x); }))
      r.diverged_at = step_;
    for (int e = 0; e < more_; ++e) {
      double sum = 0;
      for (std::int64_t i = 0; i < shape_.agents; ++i)
        sum += m.more.block(i / kLanes)[{e, 1}].p[i % kLanes];
      r.more.push_back(sum / (count * static_cast<double>(shape_.agents)));
    }
    const auto tallies = static_cast<int>(m.method.algorithm->tallies().size());
    r.tallies.assign(static_cast<std::size_t>(tallies), {});
    for (std::int64_t b = 0; b < blocks_of(shape_.agents) && tallies > 0; ++b) {
      scratch_[0].clear();
      const Out rows = scratch_[0].rows(tallies);
      m.method.algorithm->report(m.agents.block(b), rows);
      for (int t = 0; t < tallies; ++t)
        r.tallies[static_cast<std::size_t>(t)].insert(
            r.tallies[static_cast<std::size_t>(t)].end(), rows.row(t),
            rows.row(t) + lanes_of(b, shape_.agents).count);
    }
    records_.push_back(std::move(r));
  }
  return records_;
}

// Every number a run goes on from, in a fixed order: save copies them out, load copies them in.
template <class Span, class List>
void Run::visit(Span fixed, List list) {
  for (Member& m : members_) {
    fixed(m.agents.all());
    fixed(m.shared.span());
    fixed(m.averaged.all());
    fixed(m.error.all());
    fixed(m.tail.all());
    fixed(m.more.all());
    fixed(std::span(m.progress));
    list(m.record.steps);
    list(m.record.curve);
    for (std::vector<double>& curve : m.record.agents) list(curve);
  }
  for (Group& g : groups_) fixed(g.worlds.all());
}

RunState Run::save() {
  RunState state{step_, {}};
  const auto keep = [&](const auto& numbers) {
    state.numbers.emplace_back(numbers.begin(), numbers.end());
  };
  visit(keep, keep);
  return state;
}

void Run::load(const RunState& state) {
  std::size_t next = 0;
  const auto take = [&]() -> const std::vector<double>& {
    if (next == state.numbers.size())
      throw BadInput("this saved state belongs to another run: it holds too little");
    return state.numbers[next++];
  };
  visit(
      [&](std::span<double> numbers) {
        const std::vector<double>& from = take();
        if (from.size() != numbers.size())
          throw BadInput("this saved state belongs to another run: a part of it has another size");
        std::copy(from.begin(), from.end(), numbers.begin());
      },
      [&](std::vector<double>& list) { list = take(); });
  step_ = state.step;
}

void Run::watch(std::function<void(std::size_t, std::int64_t)> watcher) {
  watcher_ = std::move(watcher);
  for (std::size_t i = 0; i < members_.size(); ++i) watcher_(i, step_);
}

In Run::solution(std::size_t method, std::int64_t block) const {
  const Member& m = members_[method];
  return m.method.algorithm->solution(m.agents.block(block), centre_of(m));
}
double Run::solution(std::size_t method, std::int64_t agent, int row) const {
  return solution(method, agent / kLanes).at(row, static_cast<int>(agent % kLanes));
}
In Run::central_x(std::size_t method) const {
  return members_[method].method.algorithm->central_x(centre_of(members_[method]));
}
In Run::central_theta(std::size_t method) const {
  return members_[method].method.algorithm->central_theta(centre_of(members_[method]));
}

}  // namespace affpcl
