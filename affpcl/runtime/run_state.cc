// What a run is saved as, and goes on from.
#include <fmt/format.h>

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/run.h"

namespace affpcl {

// Every number a run goes on from, in a fixed order: save copies them out, load copies them in.
// Blocks are split among processes, the rest is the same in all.
template <class Split, class Same, class List>
void Run::visit(Split split, Same same, List list) {
  for (Member& m : members_) {
    for (const Store* store : {&m.agents, &m.averaged, &m.error, &m.tail, &m.more})
      split(store->all());
    same(m.shared.span());
    same(std::span(m.progress));
    list(m.record.steps);
    list(m.record.curve);
    for (std::vector<double>& curve : m.record.agents) list(curve);
  }
  for (Group& g : groups_) split(g.worlds.all());
}

RunState Run::save() {
  RunState state{step_, {}};
  const auto keep = [&](const auto& numbers) {
    state.numbers.emplace_back(numbers.begin(), numbers.end());
  };
  const auto gather_blocks = [&](std::span<double> mine) {
    state.numbers.emplace_back();
    std::vector<double>& all = state.numbers.back();
    gather(team_.processes(), mine, [&](std::span<const double> numbers) {
      all.insert(all.end(), numbers.begin(), numbers.end());
    });
  };
  visit(gather_blocks, keep, keep);
  return state;
}

void Run::load(const RunState& state) {
  Processes& processes = team_.processes();
  const auto refuse_unless = [](bool fits, const char* why) {
    if (!fits) throw BadInput(fmt::format("this saved state belongs to another run: {}", why));
  };
  static const std::vector<double> kNothing;
  std::size_t next = 0;
  const auto take = [&]() -> const std::vector<double>& {
    if (!processes.first()) return kNothing;
    refuse_unless(next < state.numbers.size(), "it holds too little");
    return state.numbers[next++];
  };
  constexpr char kSize[] = "a part of it has another size";
  const auto hand_out = [&](std::span<double> mine) {
    std::span<const double> rest = take();
    scatter(processes, mine, [&](std::span<double> numbers) {
      refuse_unless(numbers.size() <= rest.size(), kSize);
      std::copy_n(rest.begin(), numbers.size(), numbers.begin());
      rest = rest.subspan(numbers.size());
    });
    refuse_unless(rest.empty(), kSize);
  };
  const auto same = [&](std::span<double> numbers) {
    const std::vector<double>& from = take();
    if (processes.first()) {
      refuse_unless(from.size() == numbers.size(), kSize);
      std::copy(from.begin(), from.end(), numbers.begin());
    }
    broadcast(processes, numbers);
  };
  const auto same_list = [&](std::vector<double>& list) {
    if (processes.first()) list = take();
    broadcast(processes, list);
  };
  visit(hand_out, same, same_list);
  refuse_unless(!processes.first() || next == state.numbers.size(), "it holds too much");
  step_ = broadcast(processes, state.step);
}

}  // namespace affpcl
