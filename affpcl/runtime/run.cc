#include "affpcl/runtime/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

constexpr Field kOneRow{0, 1};
constexpr std::int64_t kLook = 16;  // steps after which a divergence is seen at the latest

double distance2(In a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t r = 0; r < b.size(); ++r) sum += (a.p[r] - b[r]) * (a.p[r] - b[r]);
  return sum;
}

// Of a central part: NaN where there is none, infinite where it diverged as a method does.
double central_error(In part, const std::vector<double>& truth, double diverged_above,
                     double scale) {
  if (part.p == nullptr || truth.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double square = distance2(part, truth),
               own = std::inner_product(truth.begin(), truth.end(), truth.begin(), 0.0);
  return square <= diverged_above * std::max(scale, own) ? square
                                                         : std::numeric_limits<double>::infinity();
}

// Lanes outside `present` get back what they had.
void restore(LaneSet present, Lanes lanes, const double* before, Out now) {
  each_lane(all_lanes(lanes.count) & ~present, [&](int l) {
    for (int r = 0; r < now.rows; ++r) now.row(r)[l] = before[r * kLanes + l];
  });
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

template <class F>
void Run::blocks(std::int64_t leaf, F f) const {
  const std::int64_t first = leaf * (kLeaf / kLanes),
                     last = std::min(first + kLeaf / kLanes, last_block_);
  for (std::int64_t b = std::max(first, first_block_); b < last; ++b) f(b);
}

Store Run::store(int rows) const { return Store(rows, shape_.agents, first_block_, last_block_); }

Run::Run(const Problem& problem, std::vector<RunMethod> methods, RunOptions options, Team& team)
    : problem_(problem),
      facets_(problem.facets()),
      options_(std::move(options)),
      team_(team),
      shape_(problem.shape()),
      leaves_(leaves_of(shape_.agents)),
      every_(options_.curve_every()),
      more_(facets_.scores != nullptr ? static_cast<int>(facets_.scores->more_errors().size())
                                      : 0) {
  settle_own();
  const int workers = team_.workers();
  refuse_schedule();
  const Key key{options_.seed, options_.replicate, 0};

  for (RunMethod& plan : methods) {
    const std::int64_t samples = options_.steps * plan.batch;
    if (samples > std::int64_t{1} << 32)
      throw BadInput(fmt::format(
          "{} samples per agent are asked for, but an agent's random stream has 2^32", samples));
    if (samples > most_samples(problem_))
      throw BadInput(fmt::format("{} samples per agent are asked for, but the problem has {}",
                                 samples, most_samples(problem_)));
    if (count_recorded(samples - 1) < shape_.agents) {
      if (plan.period * plan.batch > 1)
        throw BadInput(
            "the agents' rows end at different times: period and batch of every method must be 1");
      if (partial())
        throw BadInput(
            "the agents' rows end at different times: run.participation must be 1, or run.steps at "
            "most the rows of the agent with the fewest");
    }
    if (plan.last == 0) plan.last = plan.batch;
    Member m;
    m.plan = std::move(plan);
    if (team_.processes().apart()) m.plan.sum = Sums::kFixed;
    const Method& method = *m.plan.method;
    m.plan.method->declare(
        {problem_, m.plan.step, m.plan.period, m.plan.batch, m.plan.last, options_.steps,
         options_.iterate != RunOptions::Iterate::kLast, partial()},
        m.agent, m.centre, m.sum);
    const std::vector<std::string_view> uncompressed = method.uncompressed();
    m.compressor = Compressor(m.plan.compress, m.sum, uncompressed);
    if (m.plan.compress.remembers() && m.sum.size() > 0)
      m.unsent = m.agent.add("unsent", m.sum.size());
    m.agents = store(m.agent.rows());
    m.shared = Buffer(static_cast<std::size_t>(m.centre.rows()));
    m.mean = Buffer(static_cast<std::size_t>(m.sum.size()));
    m.error = store(1);
    m.tail = store(1);
    m.more = store(more_);
    if (options_.iterate != RunOptions::Iterate::kLast) m.averaged = store(shape_.d);
    const std::size_t errors = 1 + options_.curve_agents.size();
    m.total = RoundSum(fmt::format("rounds of {}", m.plan.name),
                       static_cast<std::size_t>(m.sum.size()), errors, workers, m.plan.sum);
    m.error_total =
        RoundSum(fmt::format("errors of {}", m.plan.name), 0, errors, workers, m.plan.sum);
    m.record.sent = m.sum.size();
    m.record.up = m.compressor.up();
    m.record.down = m.compressor.down();
    if (!m.compressor.on()) m.record.published = method.published_traffic();
    m.record.agents.resize(options_.curve_agents.size());
    const auto points = static_cast<std::size_t>(
        std::min(options_.curve_points, options_.steps / m.plan.period) + 2);
    m.record.steps.reserve(points);  // so that recording never allocates
    m.record.curve.reserve(points);
    for (std::vector<double>& curve : m.record.agents) curve.reserve(points);
    method.start(problem_, key, centre_of(m));
    team_.each(own_leaves_, [&](std::int64_t leaf, int) {
      blocks(leaf, [&](std::int64_t b) {
        method.start(problem_, m.agents.block(b));
        if (!m.averaged.all().empty())
          copy(method.solution(m.agents.block(b), centre_of(m)),
               m.averaged.block(b)[{0, shape_.d}]);
      });
    });
    members_.push_back(std::move(m));
  }

  for (std::size_t i = 0; i < members_.size(); ++i) {
    const RunMethod& method = members_[i].plan;
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return !shape_.acts && g.period == method.period && g.batch == method.batch &&
             g.last == method.last;
    });
    if (group == groups_.end()) {
      Group g{method.period, method.batch, method.last, {}, {}, {}, {}, {}};
      problem_.declare(g.world, g.sample);
      g.worlds = store(g.world.rows());
      group = groups_.insert(groups_.end(), std::move(g));
    }
    group->members.push_back(i);
  }
  for (Group& g : groups_)
    g.samples = store((g.two() ? 2 : 1) * g.samples_of_a_round() * (g.sample.rows() + shape_.d));
  set_scale();
}

// A rank has whole leaves of the sum; a site has the agents of its own rows.
void Run::settle_own() {
  some_ = some_agents(problem_);
  constexpr std::int64_t kBlocks = kLeaf / kLanes;  // of a leaf
  if (some_ != nullptr) {
    const Leaves agents = some_->own();
    own_leaves_ = {agents.first / kLeaf, leaves_of(agents.last)};
    first_block_ = agents.first / kLanes;
    last_block_ = blocks_of(agents.last);
    return;
  }
  own_leaves_ = team_.own(leaves_);
  const std::int64_t all_blocks = blocks_of(shape_.agents);
  first_block_ = std::min(own_leaves_.first * kBlocks, all_blocks);
  last_block_ = std::min(own_leaves_.last * kBlocks, all_blocks);
}

// The scale against which divergence is judged: the mean of |x*|^2, or 1 if all are 0.
void Run::set_scale() {
  const Truth* truth = problem_.truth();
  if (truth == nullptr) return;
  const std::vector<double> zero(static_cast<std::size_t>(shape_.d));
  const auto add_leaf = [&](std::int64_t leaf, int worker, double* number) {
    blocks(leaf, [&](std::int64_t b) {
      team_.scratch(worker).clear();
      const Out e = team_.scratch(worker).rows(1);
      squared_distance({zero.data(), shape_.d, 1}, truth->x.block(b)[{0, shape_.d}], e);
      *number += kernels::lane_sum(e.p, lanes_of(b, shape_.agents).count);
    });
  };
  double sum = 0;
  if (some_ != nullptr) {
    for (std::int64_t leaf = 0; leaf < leaves_; ++leaf) add_leaf(leaf, 0, &sum);
    affpcl::sum(team_.processes(), std::span(&sum, 1));
  } else {
    sum = *TeamSum(1, team_.workers())(team_, leaves_, add_leaf);
  }
  scale_ = sum > 0 ? sum / static_cast<double>(shape_.agents) : 1;
}

In Run::scored(const Member& member, std::int64_t block) const {
  if (options_.iterate != RunOptions::Iterate::kLast)
    return member.averaged.block(block)[{0, shape_.d}];
  return member.plan.method->solution(member.agents.block(block), centre_of(member));
}

Batch Run::batch_of(const Group& group, std::int64_t block, std::int64_t at, int steps) const {
  const std::int64_t rows =
      std::int64_t{group.samples_of_a_round()} * (group.sample.rows() + shape_.d);
  return {.p = group.samples.block(block).p + (group.two() ? at % 2 * rows * kLanes : 0),
          .state_rows = group.sample.rows(),
          .d = shape_.d,
          .steps = steps,
          .size = group.batch,
          .period = group.period,
          .last = group.last};
}

Round Run::context(const Group& group, const Member& m, std::int64_t at, int steps, int worker,
                   int agents) {
  Scratch& scratch = team_.scratch(worker);
  scratch.clear(agents);
  const Key key{options_.seed, options_.replicate, 0};
  return {problem_, m.plan.step, at, steps, scratch, key, present(group, at)};
}

// Agents that are absent draw with the others of their block, but nothing is made of it and their
// worlds stay as they are.
void Run::draw(const Group& group, std::int64_t at, int steps, std::int64_t block) const {
  const Agents world = group.worlds.block(block);
  const LaneSet here = present(group, at, block);
  if (here == 0) return;
  std::vector<double> before;
  if (here != all_lanes(world.lanes.count))
    before.assign(world.p, world.p + group.world.rows() * kLanes);
  const Batch batch = batch_of(group, block, at, steps);
  Draw draw{{options_.seed, options_.replicate, 0}, {}};
  if (shape_.acts) {
    const Member& acting = members_[group.members.front()];
    draw.acting = acting.plan.method->solution(acting.agents.block(block), centre_of(acting));
  }
  for (int k = 0; k < steps; ++k)
    for (int m = 0; m < batch.samples(k); ++m) {
      draw.key.step = static_cast<std::uint32_t>((at + k) * group.batch + m);
      const In s = batch.s(k, m), own = batch.b(k, m);
      const int lanes = lanes_to_write(world.lanes.count);
      problem_.draw(draw, {world.lanes, world.p}, {const_cast<double*>(s.p), s.rows, lanes});
      problem_.objective(world.lanes, s, {const_cast<double*>(own.p), own.rows, lanes});
    }
  if (!before.empty()) restore(here, world.lanes, before.data(), {world.p, group.world.rows()});
}

void Run::draw_all(const Group& group, std::int64_t at, int steps) {
  team_.each(own_leaves_, [&](std::int64_t leaf, int) {
    blocks(leaf, [&](std::int64_t b) { draw(group, at, steps, b); });
  });
}

void Run::contribute(const Group& group, const Member& m, std::int64_t at, int steps,
                     std::int64_t block, int worker, const RoundSum::Part& to) {
  if (!group.shared()) draw(group, at, steps, block);
  const Agents agents = m.agents.block(block);
  const LaneSet here = present(group, at, block);
  if (here == 0) return;
  const Round round = context(group, m, at, steps, worker, agents.lanes.count);
  const Out all = agents[{0, m.agent.rows()}];
  const bool some = here != all_lanes(agents.lanes.count);
  const Out before = round.scratch.rows(some ? all.rows : 0);
  if (some) copy(all, before);
  const Block of{round, batch_of(group, block, at, steps), agents, centre_of(m)};
  if (m.compressor.on() || to.fixed())
    contribute_apart(group, m, of, here, to);
  else
    m.plan.method->contribute(of, Message(to.messages(), agents.lanes, here));
  if (some) restore(here, agents.lanes, before.p, all);
}

// Each agent's message apart, compressed or brought to fixed point, and only then added.
void Run::contribute_apart(const Group& group, const Member& m, const Block& block, LaneSet here,
                           const RoundSum::Part& to) const {
  const auto size = static_cast<std::size_t>(m.sum.size());
  double* const messages = block.scratch().numbers(size * kLanes);
  std::fill_n(messages, size * kLanes, 0.0);
  m.plan.method->contribute(
      block, Message(messages, block.lanes(), here, static_cast<std::ptrdiff_t>(size)));
  Key key = block.round.key;
  key.step = static_cast<std::uint32_t>(block.round.first / group.period);
  each_lane(here, [&](int l) {
    const std::span<double> message{messages + static_cast<std::size_t>(l) * size, size};
    double* const unsent = m.unsent.rows > 0 ? block.agents[m.unsent].row(0) + l : nullptr;
    if (m.compressor.on())
      m.compressor(key, block.lanes().first + l, message, unsent, block.scratch());
    to.add_message(message);
  });
}

void Run::update(const Group& group, const Member& m, int steps, std::int64_t block, int worker) {
  const Method& method = *m.plan.method;
  const Agents agents = m.agents.block(block);
  const LaneSet here = present(group, step_, block);
  const bool some = here != all_lanes(agents.lanes.count), rests = some && method.rests();
  if (rests && here == 0) return;
  const Round round = context(group, m, step_, steps, worker, agents.lanes.count);
  const Out all = agents[{0, m.agent.rows()}];
  const Out before = round.scratch.rows(rests ? all.rows : 0);
  if (rests) copy(all, before);
  method.update({round, batch_of(group, block, step_, steps), agents, centre_of(m)},
                {m.mean.data()});
  if (rests) restore(here, agents.lanes, before.p, all);
}

// lem:step weighs iterate tau by tau + t0; polyak starts anew at the half.
double Run::newest_share(Member& m, std::int64_t at) const {
  if (options_.iterate == RunOptions::Iterate::kWeighted) {
    const Schedule& schedule = m.plan.step.agent.schedule;
    const double t0 = schedule.kind == Schedule::Kind::kDiminishing ? schedule.t0 : 1;
    if (m.progress[kWeight] == 0) m.progress[kWeight] = t0;  // the start, tau = 0
    m.progress[kWeight] += static_cast<double>(at) + t0;
    return (static_cast<double>(at) + t0) / m.progress[kWeight];
  }
  if (options_.iterate == RunOptions::Iterate::kPolyak && at > options_.steps / 2)
    return 1 / ++m.progress[kWeight];
  return 1;
}

void Run::average(const Member& m, double share, std::int64_t block) const {
  const In x = m.plan.method->solution(m.agents.block(block), centre_of(m));
  const Out average = m.averaged.block(block)[{0, shape_.d}];
  for (int r = 0; r < shape_.d; ++r)
    for (int l = 0; l < kLanes; ++l) average.row(r)[l] += share * (x.at(r, l) - average.row(r)[l]);
}

void Run::score(const Member& m, std::int64_t at, std::int64_t block, int worker,
                const RoundSum::Part& to) {
  const Lanes lanes = lanes_of(block, shape_.agents);
  const In x = scored(m, block);
  const Out error = m.error.block(block)[kOneRow];
  Scratch& scratch = team_.scratch(worker);
  problem_.error(lanes, x, scratch, error);
  if (at > options_.steps - options_.tail) {
    add_scaled(m.tail.block(block)[kOneRow], 1, error);
    if (more_ > 0) {
      const Out more = scratch.rows(more_);
      facets_.scores->more_errors(lanes, x, more);
      add_scaled(m.more.block(block)[{0, more_}], 1, more);
    }
  }
  if (to.fixed())
    each_lane(own(lanes), [&](int l) { to.add_error(0, error.p[l]); });
  else
    to.add_error(0, kernels::lane_sum(error.p, lanes.count));
  for (std::size_t i = 0; i < options_.curve_agents.size(); ++i)
    if (const std::int64_t agent = options_.curve_agents[i]; agent / kLanes == block)
      to.add_error(1 + i, error.p[agent % kLanes]);
}

// Whether the errors after a round of `steps` steps that ends at `at` are needed: for the curve,
// for the tail, or to see a divergence. A function of the step alone, so that runs in pieces see
// what a whole run does.
bool Run::looks_at(std::int64_t at, int steps) const {
  const auto passes = [&](std::int64_t every) { return at / every != (at - steps) / every; };
  return passes(every_) || passes(kLook) ||
         at > options_.steps - std::max<std::int64_t>(options_.tail, 1);
}

// One sweep over the agents is enough where the round after this one is known to come: a block that
// has been updated contributes to the next sum while it is at hand, and both sums are one.
void Run::round(Group& group, Member& m, int steps, bool goes_on) {
  const std::int64_t at = step_ + steps;
  const bool sums = m.sum.size() > 0, ahead = goes_on && sums;
  if (sums) {
    if (!std::exchange(m.ahead, false))
      m.total(team_, own_leaves_, leaves_, true,
              [&](std::int64_t leaf, int worker, const RoundSum::Part& to) {
                blocks(leaf,
                       [&](std::int64_t b) { contribute(group, m, step_, steps, b, worker, to); });
              });
    if (m.total.lost()) return give_up(m);
    const Round round = context(group, m, step_, steps, 0, kLanes);
    kernels::multiply(m.total.message(), 1 / static_cast<double>(round.count_present()),
                      m.mean.size(), m.mean.data());
    m.plan.method->centre(round, {m.mean.data()}, centre_of(m));
  }

  const double share = newest_share(m, at);
  const bool known = problem_.truth() != nullptr, looks = known && looks_at(at, steps),
             scores = looks || (known && !goes_on);  // where a run may be left, agents have errors
  RoundSum& total = ahead ? m.total : m.error_total;
  total(team_, own_leaves_, leaves_, ahead || looks,
        [&](std::int64_t leaf, int worker, const RoundSum::Part& to) {
          blocks(leaf, [&](std::int64_t b) {
            if (!sums && !group.shared()) draw(group, step_, steps, b);
            update(group, m, steps, b, worker);
            if (options_.iterate != RunOptions::Iterate::kLast) average(m, share, b);
            if (scores) score(m, at, b, worker, to);
            if (ahead) contribute(group, m, at, steps, b, worker, to);
          });
        });
  if (looks) record(m, at, total.errors());
  m.ahead = ahead && m.progress[kDivergedAt] == 0;
}

// A message that is not finite, or too large for fixed point: an iterate that grows without bound,
// unless the method has not moved yet.
void Run::give_up(Member& m) {
  if (step_ == 0)
    throw BadInput(
        fmt::format("method '{}', `sum fixed`: a message is not finite, or beyond 4.5e15, where "
                    "numbers in fixed "
                    "point end; use smaller units",
                    m.plan.name));
  m.progress[kDivergedAt] = static_cast<double>(step_);
}

void Run::record(Member& m, std::int64_t at, const double* errors) {
  const Truth& truth = *problem_.truth();
  const double mse = errors[0] / static_cast<double>(shape_.agents);
  if (!(mse <= options_.diverged_above * scale_)) m.progress[kDivergedAt] = static_cast<double>(at);
  if (at > options_.steps - options_.tail) {
    const In xc = m.plan.method->central_x(centre_of(m)),
             thetac = m.plan.method->central_theta(centre_of(m));
    const double above = options_.diverged_above;
    m.progress[kTailCount] += 1;
    m.progress[kTailSum] += mse;
    m.progress[kTailX] += central_error(xc, truth.xc, above, scale_);
    m.progress[kTailTheta] += central_error(thetac, truth.thetac, above, scale_);
  }
  // Rounds that end at (or first after) a multiple of every_ are kept, and the last.
  const std::int64_t last =
      m.record.steps.empty() ? 0 : static_cast<std::int64_t>(m.record.steps.back());
  if (at / every_ == last / every_ && at < options_.steps) return;
  m.record.steps.push_back(static_cast<double>(at));
  m.record.curve.push_back(mse);
  for (std::size_t i = 0; i < options_.curve_agents.size(); ++i)
    m.record.agents[i].push_back(errors[1 + i]);
}

void Run::advance(std::int64_t until, const std::atomic<bool>* stop,
                  const std::function<void()>& after_step) {
  until = std::min(until, options_.steps);
  // All groups keep step: a group's round covers its period, and is due when the clock reaches it.
  // A run can be saved, or watched, only where no round has begun: rounds of one step look ahead.
  const auto stopped = [&] {
    const bool mine = stop != nullptr && stop->load(std::memory_order_relaxed);
    if (!team_.processes().apart()) return stop != nullptr && team_.processes().any(mine);
    if (mine) throw Interrupted();  // a site goes on from the totals that the centre has kept
    return false;
  };
  double clock = now();  // when the last thing ended
  const auto took = [&] {
    const double before = clock;
    return (clock = now()) - before;
  };
  const bool alone = members_.size() == 1 && !watcher_;  // all the time is its own
  bool begun = false;                                    // this step's rounds
  while (step_ < until && (begun || !stopped())) {
    const bool goes_on = step_ + 1 < until && !watcher_ && !stopped();
    for (Group& group : groups_) {
      if (step_ % group.period != 0) continue;
      const int steps =
          static_cast<int>(std::min<std::int64_t>(group.period, options_.steps - step_));
      const bool ahead = goes_on && group.period == 1;
      if (!begun || group.period > 1) attend(group, step_, steps);
      if (ahead) attend(group, step_ + 1, steps);
      if (group.shared()) {
        if (!begun || group.period > 1) draw_all(group, step_, steps);
        if (ahead) draw_all(group, step_ + 1, steps);
        took();
      }
      for (std::size_t i : group.members) {
        if (members_[i].progress[kDivergedAt] > 0) continue;
        round(group, members_[i], steps, ahead);
        if (!alone) members_[i].progress[kSeconds] += took();
        if (watcher_) watcher_(i, step_ + steps), took();
      }
    }
    begun = goes_on;
    ++step_;
    if (after_step) after_step();
  }
  if (alone) members_[0].progress[kSeconds] += took();
}

void Run::watch(std::function<void(std::size_t, std::int64_t)> watcher) {
  watcher_ = std::move(watcher);
  for (std::size_t i = 0; i < members_.size(); ++i) watcher_(i, step_);
}

In Run::solution(std::size_t method, std::int64_t block) const {
  const Member& m = members_[method];
  return m.plan.method->solution(m.agents.block(block), centre_of(m));
}
double Run::solution(std::size_t method, std::int64_t agent, int row) const {
  return solution(method, agent / kLanes).at(row, static_cast<int>(agent % kLanes));
}
In Run::central_x(std::size_t method) const {
  return members_[method].plan.method->central_x(centre_of(members_[method]));
}
In Run::central_theta(std::size_t method) const {
  return members_[method].plan.method->central_theta(centre_of(members_[method]));
}

}  // namespace affpcl
