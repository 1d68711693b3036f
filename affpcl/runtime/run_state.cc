// Saving and loading a run: its state as named lists of numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw BadInput(fmt::format("this saved state belongs to another run: {}", why));
}

void check_size(const RunState::Field& field, std::size_t size) {
  if (field.numbers.size() != size)
    refuse(fmt::format("'{}' has {} numbers, not {}", field.name, field.numbers.size(), size));
}

bool whole_between(double x, double least, double most) {
  return x >= least && x <= most && x == std::floor(x);
}

// The layout's indices, in `lanes` numbers a row.
void check_indices(const RunState::Field& field, const Layout& layout, std::size_t lanes) {
  const std::size_t size = static_cast<std::size_t>(layout.rows()) * lanes;
  for (const Layout::Named& named : layout.fields()) {
    if (named.below == 0) continue;
    const auto first = static_cast<std::size_t>(named.field.at) * lanes,
               last = first + static_cast<std::size_t>(named.field.rows) * lanes;
    for (std::size_t block = 0; block < field.numbers.size(); block += size)
      for (std::size_t i = block + first; i < block + last; ++i)
        if (!whole_between(field.numbers[i], 0, named.below - 1))
          refuse(fmt::format("'{}' holds {} as '{}', which goes from 0 to {}", field.name,
                             field.numbers[i], named.name, named.below - 1));
  }
}

Layout rows_of(int rows) {
  Layout layout;
  layout.add("", rows);
  return layout;
}

}  // namespace

void fields(Archive& archive, RunState& state) {
  archive("step", state.step, 0);
  archive("state", state.fields, [](Archive& a, RunState::Field& field) {
    a("name", field.name);
    a("numbers", field.numbers);
  });
}

std::vector<double> curve_steps(const RunOptions& options, int period, std::int64_t until) {
  const std::int64_t every = options.curve_every();
  std::vector<double> steps;
  for (std::int64_t at = 0, end = 0; at < until; at = end) {
    end = std::min(at + period, options.steps);
    if (end / every != at / every || end == options.steps)
      steps.push_back(static_cast<double>(end));
  }
  return steps;
}

// Every number a run goes on from, in a fixed order, by name. Blocks are divided among ranks; all
// ranks have the rest.
template <class Visitor>
void Run::visit(Visitor& v) {
  for (Member& m : members_) {
    const std::string of = m.plan.name + ".";
    v.blocks(of + "agents", m.agents, m.agent);
    const bool averages = options_.iterate != RunOptions::Iterate::kLast;
    v.blocks(of + "averaged", m.averaged, rows_of(averages ? shape_.d : 0));
    v.blocks(of + "error", m.error, rows_of(1));
    v.blocks(of + "tail", m.tail, rows_of(1));
    v.blocks(of + "more", m.more, rows_of(more_));
    v.centre(of + "centre", m.shared.span(), m.centre);
    v.progress(of + "progress", m);
    v.list(of + "steps", m.record.steps);
    v.list(of + "curve", m.record.curve);
    for (std::size_t i = 0; i < m.record.agents.size(); ++i)
      v.list(fmt::format("{}curve{}", of, options_.curve_agents[i]), m.record.agents[i]);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g)
    v.blocks(fmt::format("world{}", g), groups_[g].worlds, groups_[g].world);
}

RunState Run::save() {
  struct Saver {
    Processes& processes;
    RunState state;
    std::vector<double>& add(std::string name) {
      return state.fields.emplace_back(RunState::Field{std::move(name), {}}).numbers;
    }
    void blocks(std::string name, const Store& store, const Layout&) {
      std::vector<double>& all = add(std::move(name));
      gather(processes, store.all(), [&](std::span<const double> numbers) {
        all.insert(all.end(), numbers.begin(), numbers.end());
      });
    }
    void centre(std::string name, std::span<const double> numbers, const Layout&) {
      add(std::move(name)).assign(numbers.begin(), numbers.end());
    }
    void progress(std::string name, const Member& m) {
      add(std::move(name)).assign(m.progress.begin(), m.progress.end());
    }
    void list(std::string name, const std::vector<double>& numbers) {
      add(std::move(name)) = numbers;
    }
  } saver{team_.processes(), {step_, {}}};
  visit(saver);
  return std::move(saver.state);
}

// Refuses a state that this run cannot go on from. Rank 0 has it whole.
void Run::check(const RunState& state) {
  struct Checker {
    const Run& run;
    const RunState& state;
    const std::vector<double>* steps = nullptr;  // of this member's curve
    std::size_t next = 0;
    double diverged_at = 0;
    int period = 1;

    const RunState::Field& take(const std::string& name) {
      if (next == state.fields.size()) refuse(fmt::format("it lacks '{}'", name));
      const RunState::Field& field = state.fields[next++];
      if (field.name != name)
        refuse(fmt::format("it holds '{:.80}' in place of '{}'", field.name, name));
      return field;
    }
    void blocks(const std::string& name, const Store&, const Layout& layout) {
      const RunState::Field& field = take(name);
      check_size(field,
                 static_cast<std::size_t>(layout.rows() * blocks_of(run.shape_.agents)) * kLanes);
      check_indices(field, layout, kLanes);
    }
    void centre(const std::string& name, std::span<const double> numbers, const Layout& layout) {
      const RunState::Field& field = take(name);
      check_size(field, numbers.size());
      if (!numbers.empty()) check_indices(field, layout, 1);
    }
    void progress(const std::string& name, const Member& m) {
      const RunState::Field& field = take(name);
      check_size(field, kProgress);
      diverged_at = field.numbers[kDivergedAt];
      period = m.plan.period;
      steps = nullptr;
      if (!whole_between(diverged_at, 0, static_cast<double>(run.options_.steps)) ||
          !whole_between(field.numbers[kTailCount], 0, static_cast<double>(run.options_.tail)))
        refuse(fmt::format("'{}' holds steps that are none", name));
    }
    // The steps of a curve, then as many values of each.
    void list(const std::string& name, const std::vector<double>&) {
      const RunState::Field& field = take(name);
      if (steps != nullptr) return check_size(field, steps->size());
      steps = &field.numbers;
      std::vector<double> want;
      if (run.problem_.truth() != nullptr) want = curve_steps(run.options_, period, state.step);
      if (diverged_at > 0 && steps->size() < want.size()) want.resize(steps->size());
      if (*steps != want) refuse(fmt::format("'{}' are not those of step {}", name, state.step));
    }
  } checker{*this, state};
  if (state.step < 0 || state.step > options_.steps)
    refuse(fmt::format("it has done {} steps of {}", state.step, options_.steps));
  visit(checker);
  if (checker.next != state.fields.size())
    refuse(fmt::format("it also holds '{:.80}'", state.fields[checker.next].name));
}

void Run::load(const RunState& state) {
  struct Loader {
    Processes& processes;
    const RunState& state;  // checked; in rank 0
    std::size_t next = 0;
    std::span<const double> take() {
      if (!processes.first()) return {};
      return state.fields[next++].numbers;
    }
    void blocks(const std::string&, const Store& store, const Layout&) {
      std::span<const double> rest = take();
      scatter(processes, store.all(), [&](std::span<double> numbers) {
        std::copy_n(rest.begin(), numbers.size(), numbers.begin());
        rest = rest.subspan(numbers.size());
      });
    }
    void centre(const std::string&, std::span<double> numbers, const Layout&) {
      const std::span<const double> from = take();
      std::copy(from.begin(), from.end(), numbers.begin());
      broadcast(processes, numbers);
    }
    void progress(const std::string& name, Member& m) { centre(name, m.progress, {}); }
    void list(const std::string&, std::vector<double>& numbers) {
      const std::span<const double> from = take();
      numbers.assign(from.begin(), from.end());
      broadcast(processes, numbers);
    }
  } loader{team_.processes(), state};
  on_all_ranks(loader.processes, [&] {
    if (loader.processes.first()) check(state);
  });
  visit(loader);
  step_ = broadcast(loader.processes, state.step);
}

}  // namespace affpcl
