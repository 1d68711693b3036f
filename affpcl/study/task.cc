#include "affpcl/study/task.h"

#include <fmt/format.h>

#include <cstring>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

constexpr std::int64_t kTaskVersion = 2;

void list_of_numbers(Archive& archive, std::vector<double>& numbers) {
  archive("numbers", numbers);
}

void record_fields(Archive& archive, Record& r) {
  archive("mse", r.mse);
  archive("central_x", r.central_x);
  archive("central_theta", r.central_theta);
  archive("diverged_at", r.diverged_at, -1);
  archive("sent", r.sent, 0);
  archive("up", r.up);
  archive("down", r.down);
  archive("present", r.present);
  archive("published_up", r.published.up, 0);
  archive("published_down", r.published.down, 0);
  archive("seconds", r.seconds);
  archive("steps", r.steps);
  archive("curve", r.curve);
  archive("agent_mse", r.agent_mse);
  archive("more", r.more);
  archive("solution", r.solution);
  archive("curves", r.agents, list_of_numbers);
  archive("tallies", r.tallies, list_of_numbers);
}

void fields(Archive& archive, TaskState& t) {
  archive("task", t.task, 0);
  archive("finished", t.finished);
  if (!t.finished) return affpcl::fields(archive, t.state);
  archive("steps", t.replicate.steps, 0);
  archive("number", t.replicate.number, 0);
  archive("distance", t.replicate.distance);
  archive("records", t.replicate.records, record_fields);
}

[[noreturn]] void refuse(const std::string& why) {
  throw BadInput("it holds a replicate of another study: " + why);
}

void check_size(std::string_view what, std::size_t found, std::size_t wanted) {
  if (found != wanted) refuse(fmt::format("{} has {} entries, not {}", what, found, wanted));
}

void check_record(const Record& r, const RunOptions& run, const MethodSpec& method,
                  const SettingShape& shape) {
  const auto agents = static_cast<std::size_t>(shape.agents);
  if (r.diverged_at == 0 || r.diverged_at > run.steps)
    refuse(fmt::format("it diverged at step {}", r.diverged_at));
  if (!(r.up >= 0) || !(r.down >= 0) || !(r.present >= 0 && r.present <= 1))
    refuse("its traffic is none");
  std::vector<double> steps;
  if (shape.truth) steps = curve_steps(run, method.period, run.steps);
  if (r.diverged_at > 0 && r.steps.size() < steps.size()) steps.resize(r.steps.size());
  if (r.steps != steps) refuse("a curve has other steps");
  check_size("a curve", r.curve.size(), steps.size());
  check_size("the list of curves", r.agents.size(), shape.curve_agents.size());
  for (const std::vector<double>& curve : r.agents)
    check_size("the curve of an agent", curve.size(), steps.size());
  check_size("the list of errors by agent", r.agent_mse.size(), agents);
  check_size("the list of other errors", r.more.size(), shape.errors.size());
  check_size("the solution", r.solution.size(),
             !shape.agent_names.empty() ? agents * static_cast<std::size_t>(shape.d) : 0);
  check_size("the list of tallies", r.tallies.size(),
             method_kind(method.kind).make(method.values)->tallies().size());
  for (const std::vector<double>& tally : r.tallies) check_size("a tally", tally.size(), agents);
}

}  // namespace

Bytes pack(const TaskState& task) {
  Archive archive("task", kTaskVersion);
  fields(archive, const_cast<TaskState&>(task));  // which an archive that writes only reads
  return archive.take();
}

TaskState unpack(std::span<const std::byte> bytes) {
  Archive archive("task", kTaskVersion, bytes);
  TaskState task;
  fields(archive, task);
  archive.finish();
  return task;
}

void append(const Bytes& task, Bytes& tasks) {
  const std::uint64_t size = task.size();
  const auto* first = reinterpret_cast<const std::byte*>(&size);
  tasks.insert(tasks.end(), first, first + sizeof size);
  tasks.insert(tasks.end(), task.begin(), task.end());
}

std::vector<TaskState> unpack_all(std::span<const std::byte> tasks) {
  std::vector<TaskState> all;
  while (!tasks.empty()) {
    std::uint64_t size = 0;
    if (tasks.size() < sizeof size) throw BadInput("it ends too soon");
    std::memcpy(&size, tasks.data(), sizeof size);
    tasks = tasks.subspan(sizeof size);
    if (size > tasks.size()) throw BadInput("it ends too soon");
    all.push_back(unpack(tasks.first(size)));
    tasks = tasks.subspan(size);
  }
  return all;
}

void check_replicate(const Replicate& replicate, const Spec& spec, std::int64_t number,
                     const SettingShape& shape) {
  if (replicate.number != number)
    refuse(fmt::format("its number is {}, not {}", replicate.number, number));
  if (replicate.steps != spec.run.steps)
    refuse(fmt::format("it has {} steps, not {}", replicate.steps, spec.run.steps));
  check_size("the list of methods", replicate.records.size(), spec.methods.size());
  check_size("the list of distances", replicate.distance.size(),
             shape.centre ? static_cast<std::size_t>(shape.agents) : 0);
  for (std::size_t m = 0; m < spec.methods.size(); ++m)
    check_record(replicate.records[m], spec.run, spec.methods[m], shape);
}

}  // namespace affpcl
