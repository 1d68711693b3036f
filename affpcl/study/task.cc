#include "affpcl/study/task.h"

#include <stdexcept>
#include <utility>

namespace affpcl {
namespace {

using Lists = std::vector<std::vector<double>>;

double number(std::int64_t i) { return static_cast<double>(i); }
std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

[[noreturn]] void damaged() { throw std::runtime_error("it ends too soon"); }

// Takes back what `pack` wrote, in its order.
class Reader {
 public:
  explicit Reader(const Lists& lists) : lists_(lists) {}
  const std::vector<double>& list() {
    if (next_ == lists_.size()) damaged();
    return lists_[next_++];
  }
  Lists lists(std::size_t count) {
    Lists all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(list());
    return all;
  }

 private:
  const Lists& lists_;
  std::size_t next_ = 0;
};

}  // namespace

TaskState pack(std::size_t task, const Replicate& replicate) {
  TaskState t{task, true, {replicate.steps, {}}};
  Lists& out = t.state.numbers;
  out.push_back({number(replicate.number), number(std::ssize(replicate.records))});
  out.push_back(replicate.distance);
  for (const Record& r : replicate.records) {
    out.push_back({r.mse, r.central_x, r.central_theta, number(r.diverged_at), number(r.sent),
                   number(r.published.up), number(r.published.down), r.seconds,
                   number(std::ssize(r.agents)), number(std::ssize(r.tallies))});
    for (const std::vector<double>* list : {&r.steps, &r.curve, &r.agent_mse, &r.more, &r.solution})
      out.push_back(*list);
    out.insert(out.end(), r.agents.begin(), r.agents.end());
    out.insert(out.end(), r.tallies.begin(), r.tallies.end());
  }
  return t;
}

Replicate unpack(const TaskState& finished) {
  Reader in(finished.state.numbers);
  const std::vector<double>& head = in.list();
  if (head.size() != 2) damaged();
  Replicate replicate;
  replicate.steps = finished.state.step;
  replicate.number = whole(head[0]);
  replicate.distance = in.list();
  for (std::int64_t m = 0; m < whole(head[1]); ++m) {
    const std::vector<double>& one = in.list();
    if (one.size() != 10) damaged();
    Record r;
    r.mse = one[0];
    r.central_x = one[1];
    r.central_theta = one[2];
    r.diverged_at = whole(one[3]);
    r.sent = whole(one[4]);
    r.published = {whole(one[5]), whole(one[6])};
    r.seconds = one[7];
    for (std::vector<double>* list : {&r.steps, &r.curve, &r.agent_mse, &r.more, &r.solution})
      *list = in.list();
    r.agents = in.lists(static_cast<std::size_t>(one[8]));
    r.tallies = in.lists(static_cast<std::size_t>(one[9]));
    replicate.records.push_back(std::move(r));
  }
  return replicate;
}

void append(const TaskState& task, std::vector<double>& numbers) {
  numbers.insert(numbers.end(),
                 {number(static_cast<std::int64_t>(task.task)), task.finished ? 1.0 : 0.0,
                  number(task.state.step), number(std::ssize(task.state.numbers))});
  for (const std::vector<double>& list : task.state.numbers) {
    numbers.push_back(number(std::ssize(list)));
    numbers.insert(numbers.end(), list.begin(), list.end());
  }
}

TaskState take(std::span<const double>& numbers) {
  const auto next = [&](std::size_t count) {
    if (count > numbers.size()) damaged();
    const std::span<const double> taken = numbers.first(count);
    numbers = numbers.subspan(count);
    return taken;
  };
  const std::span<const double> head = next(4);
  TaskState t{static_cast<std::size_t>(head[0]), head[1] != 0, {whole(head[2]), {}}};
  for (std::int64_t i = 0; i < whole(head[3]); ++i) {
    const std::span<const double> list = next(static_cast<std::size_t>(next(1)[0]));
    t.state.numbers.emplace_back(list.begin(), list.end());
  }
  return t;
}

}  // namespace affpcl
