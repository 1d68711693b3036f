#include "affpcl/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "affpcl/base/error.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/limits.h"
#include "affpcl/study/trace.h"

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Nominal, for all agents of a method together. The limit lies in a tail where the statistic of few
// skewed numbers is up to three times as likely as a normal one, so the true rate is below 1 %.
constexpr double kFalseAlarms = 0.001;
constexpr Estimate kNoEstimate{kNone, kNone, kNone, kNone};

struct Replicate {
  std::vector<Record> records;  // by method; empty: not run
  std::int64_t steps = 0;
  std::int64_t number = 0;
  std::vector<double> distance;  // by agent
};

// |x^i_* - x^c_*| by agent; empty where the truth is not known.
std::vector<double> distances(const Problem& problem) {
  std::vector<double> out;
  const Truth* truth = problem.truth();
  if (truth == nullptr || truth->xc.empty()) return out;
  const Shape shape = problem.shape();
  for (std::int64_t i = 0; i < shape.agents; ++i) {
    const In x = truth->x.block(i / kLanes)[{0, shape.d}];
    double square = 0;
    for (int r = 0; r < shape.d; ++r) {
      const double off =
          x.at(r, static_cast<int>(i % kLanes)) - truth->xc[static_cast<std::size_t>(r)];
      square += off * off;
    }
    out.push_back(std::sqrt(square));
  }
  return out;
}

// Collects what the replicates of one setting did.
struct Collected {
  std::vector<Replicate> replicates;
  std::int64_t left = 0;
};

class Runner {
 public:
  Runner(const Study& study, const StudyOptions& options) : study_(study), options_(options) {
    for (const Setting& s : study.settings) {
      Collected c;
      c.replicates.resize(static_cast<std::size_t>(s.spec.replicates));
      c.left = s.spec.replicates;
      collected_.push_back(std::move(c));
      for (std::int64_t r = 0; r < s.spec.replicates; ++r)
        tasks_.emplace_back(collected_.size() - 1, static_cast<std::uint32_t>(r));
      work_ += cost(s.spec) * static_cast<double>(s.spec.replicates);
    }
    result_.settings.resize(study.settings.size());
  }

  StudyResult go() {
    const auto start = std::chrono::steady_clock::now();
    for (const Setting& s : study_.settings) refuse_too_large(s.spec);
    const int threads = threads_or_all(options_.threads);
    result_.threads = threads;
    if (!options_.trace.empty()) trace_ = std::make_unique<Trace>(study_, options_.trace);

    // Many agents: the threads share each replicate's blocks. Few agents: each thread takes whole
    // replicates. The bits are the same either way.
    std::int64_t most = 0;
    for (const Setting& s : study_.settings) most = std::max(most, agents_hint(s.spec));
    const bool share = leaves_of(most) >= std::int64_t{8} * threads ||
                       tasks_.size() < static_cast<std::size_t>(threads);
    if (share || threads == 1) {
      const std::unique_ptr<Team> team = thread_team(leaves_of(most) > 1 ? threads : 1);
      work(*team);
    } else {
      std::vector<std::thread> pool;
      for (int t = 0; t < threads; ++t)
        pool.emplace_back([this] {
          const std::unique_ptr<Team> team = serial_team();
          work(*team);
        });
      for (std::thread& t : pool) t.join();
    }
    if (error_) std::rethrow_exception(error_);

    // Interrupted: what has been done is kept.
    for (std::size_t i = 0; i < collected_.size(); ++i)
      if (collected_[i].left > 0) summarise(i), result_.complete = false;
    std::erase_if(result_.settings, [](const SettingResult& s) { return s.methods.empty(); });
    if (trace_) trace_->write();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  static double cost(const Spec& spec) {
    return static_cast<double>(spec.run.steps) * static_cast<double>(spec.methods.size()) *
           static_cast<double>(agents_hint(spec) + 50);
  }
  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  void work(Team& team) {
    for (;;) {
      std::size_t task;
      {
        const std::lock_guard lock(mutex_);
        if (next_ == tasks_.size() || error_ || stopped()) return;
        task = next_++;
      }
      try {
        replicate(tasks_[task].first, tasks_[task].second, team);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }

  void replicate(std::size_t setting, std::uint32_t index, Team& team) {
    const Spec& spec = study_.settings[setting].spec;
    const auto number = static_cast<std::uint32_t>(spec.first + index);
    std::unique_ptr<Problem> problem;
    try {
      problem = problem_kind(spec.problem_kind)
                    .make(spec.problem, spec.run.seed, spec.redraw_system ? number : 0);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", study_.name, e.what()));
    }
    RunOptions run = spec.run;
    run.replicate = number;
    const std::int64_t n = problem->shape().agents;
    for (std::int64_t& a : run.curve_agents) {
      if (a >= n || a < -n)
        throw BadInput(fmt::format("{}: run.curve_agents holds {}, but there are {} agents",
                                   study_.name, a, n));
      if (a < 0) a += n;
    }
    std::sort(run.curve_agents.begin(), run.curve_agents.end());
    run.curve_agents.erase(std::unique(run.curve_agents.begin(), run.curve_agents.end()),
                           run.curve_agents.end());

    std::vector<Method> methods;
    for (const MethodSpec& m : spec.methods) {
      Method method{m.name, method_kind(m.kind).make(m.values), m.period, m.batch, {}, m.last};
      try {
        method.step = step_sizes(spec, m, *problem);
      } catch (const BadInput& e) {
        throw BadInput(fmt::format("{}: method '{}': {}", study_.name, m.name, e.what()));
      }
      methods.push_back(std::move(method));
    }
    std::unique_ptr<Run> running;
    try {
      running = std::make_unique<Run>(*problem, std::move(methods), run, team);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", study_.name, e.what()));
    }
    if (trace_) trace_->follow(*running, number, n);

    // In pieces, for progress.
    const std::int64_t piece = std::max<std::int64_t>(1, run.steps / 50);
    while (!running->done() && !stopped()) {
      const std::int64_t before = running->step();
      running->advance(before + piece, options_.stop);
      const std::lock_guard lock(mutex_);
      done_ += cost(spec) * static_cast<double>(running->step() - before) /
               static_cast<double>(run.steps);
      if (options_.progress) options_.progress(std::min(1.0, done_ / work_));
    }

    const std::lock_guard lock(mutex_);
    Collected& c = collected_[setting];
    c.replicates[index] = {running->finish(), running->step(), number, distances(*problem)};
    curve_agents_[setting] = run.curve_agents;
    error_names_[setting] = problem->more_errors();
    result_.settings[setting].agent_names = problem->agent_names();
    result_.settings[setting].unknown_names = problem->unknown_names();
    if (running->done() && --c.left == 0) summarise(setting);
  }

  // Means over the replicates in which no method diverged. Whole replicates count; where none was
  // finished, all those begun do, up to the step that all have reached.
  void summarise(std::size_t setting) {
    const Spec& spec = study_.settings[setting].spec;
    Collected& c = collected_[setting];
    SettingResult& out = result_.settings[setting];
    out.at = study_.settings[setting].at;
    std::vector<const Replicate*> chosen;
    for (const Replicate& r : c.replicates)
      if (!r.records.empty() && r.steps == spec.run.steps) chosen.push_back(&r);
    if (chosen.empty())
      for (const Replicate& r : c.replicates)
        if (!r.records.empty() && r.steps > 0) chosen.push_back(&r);
    if (chosen.empty()) return;
    out.steps = spec.run.steps;
    for (const Replicate* r : chosen) out.steps = std::min(out.steps, r->steps);
    out.replicates = static_cast<std::int64_t>(chosen.size());

    const std::size_t methods = spec.methods.size();
    std::vector<std::int64_t> diverged(methods, 0);
    std::vector<const Replicate*> used;
    for (const Replicate* r : chosen) {
      bool clean = true;
      for (std::size_t m = 0; m < methods; ++m)
        if (r->records[m].diverged_at >= 0) ++diverged[m], clean = false;
      if (clean) used.push_back(r);
    }
    out.used = static_cast<std::int64_t>(used.size());
    for (const Replicate* r : used) out.numbers.push_back(r->number);
    for (std::size_t i = 0; i < chosen.front()->distance.size(); ++i) {
      double sum = 0;
      for (const Replicate* r : chosen) sum += r->distance[i];
      out.distance.push_back(sum / static_cast<double>(chosen.size()));
    }
    std::size_t alone = methods;
    for (std::size_t m = 0; m < methods; ++m) {
      out.diverged.emplace_back(spec.methods[m].name, diverged[m]);
      if (alone == methods && spec.methods[m].kind == "independent") alone = m;
    }

    const auto over = [&](auto&& of) {
      std::vector<double> values;
      for (const Replicate* r : used) values.push_back(of(*r));
      return values;
    };
    const auto against = [&](auto&& of, std::size_t m) {
      return alone == methods
                 ? kNoEstimate
                 : ratio_of_means(over([&](const Replicate& r) { return of(r.records[m]); }),
                                  over([&](const Replicate& r) { return of(r.records[alone]); }));
    };

    for (std::size_t m = 0; m < methods; ++m) {
      MethodResult result;
      result.name = spec.methods[m].name;
      result.kind = spec.methods[m].kind;
      result.batch = spec.methods[m].batch;
      const auto tail = [](const Record& r) { return r.mse; };
      result.by_replicate = over([&](const Replicate& r) { return tail(r.records[m]); });
      result.mse = estimate(result.by_replicate);
      result.vs_independent = against(tail, m);
      result.central_x = mean(over([&](const Replicate& r) { return r.records[m].central_x; }));
      result.central_theta =
          mean(over([&](const Replicate& r) { return r.records[m].central_theta; }));
      const std::size_t n = chosen.front()->records[m].agent_mse.size();
      for (std::size_t i = 0; i < n; ++i) {
        const auto agent = [i](const Record& r) { return r.agent_mse[i]; };
        result.agents.push_back(
            {estimate(over([&](const Replicate& r) { return agent(r.records[m]); })),
             against(agent, m),
             {}});
      }
      for (std::size_t e = 0; e < chosen.front()->records[m].more.size(); ++e) {
        const auto error = [e](const Record& r) { return r.more[e]; };
        result.errors.push_back(
            {error_names_[setting][e],
             estimate(over([&](const Replicate& r) { return error(r.records[m]); })),
             against(error, m)});
      }
      conclude(spec.methods[m], m, chosen, result);
      result.solution.assign(chosen.front()->records[m].solution.size(), 0.0);
      for (std::size_t j = 0; j < result.solution.size(); ++j)
        result.solution[j] =
            mean(over([&](const Replicate& r) { return r.records[m].solution[j]; }));
      if (!used.empty()) {
        const std::vector<std::int64_t>& agents = curve_agents_[setting];
        for (std::size_t which = 0; which <= agents.size(); ++which) {
          Curve curve;
          curve.agent = which == 0 ? -1 : agents[which - 1];
          const auto points = [&](const Record& r) -> const std::vector<double>& {
            return which == 0 ? r.curve : r.agents[which - 1];
          };
          for (std::size_t t = 0; t < used.front()->records[m].steps.size(); ++t) {
            if (used.front()->records[m].steps[t] > static_cast<double>(out.steps)) break;
            curve.steps.push_back(used.front()->records[m].steps[t]);
            curve.mse.push_back(
                estimate(over([&](const Replicate& r) { return points(r.records[m])[t]; })));
          }
          result.curves.push_back(std::move(curve));
        }
      }
      result.sent = chosen.front()->records[m].sent;
      result.published = chosen.front()->records[m].published;
      for (const Replicate* r : chosen) result.seconds += r->records[m].seconds;
      out.methods.push_back(std::move(result));
    }
    c.replicates.clear();
    c.replicates.shrink_to_fit();
  }

  // What the method knows of its agents, over all replicates.
  static void conclude(const MethodSpec& method, std::size_t m,
                       const std::vector<const Replicate*>& replicates, MethodResult& result) {
    const std::unique_ptr<Algorithm> algorithm = method_kind(method.kind).make(method.values);
    const std::vector<Tally> kinds = algorithm->tallies();
    result.columns = algorithm->columns();
    std::vector<double> tallies(kinds.size());
    const double limit = normal_limit(kFalseAlarms / static_cast<double>(result.agents.size()));
    for (std::size_t i = 0; i < result.agents.size(); ++i) {
      for (std::size_t t = 0; t < kinds.size(); ++t) {
        tallies[t] = 0;
        for (const Replicate* r : replicates) {
          const double x = r->records[m].tallies[t][i];
          tallies[t] = kinds[t] == Tally::kSum ? tallies[t] + x : std::max(tallies[t], x);
        }
      }
      std::vector<double>& columns = result.agents[i].columns;
      columns.resize(result.columns.size());
      algorithm->conclude(tallies, columns);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (result.columns[c] != "drift_z" || !(columns[c] > limit)) continue;
        result.alarm.agents.push_back(static_cast<std::int64_t>(i));
        result.alarm.largest = std::max(result.alarm.largest, columns[c]);
      }
    }
  }

  const Study& study_;
  const StudyOptions& options_;
  StudyResult result_;
  std::vector<Collected> collected_;
  std::vector<std::pair<std::size_t, std::uint32_t>> tasks_;
  std::map<std::size_t, std::vector<std::int64_t>> curve_agents_;
  std::map<std::size_t, std::vector<std::string>> error_names_;
  std::unique_ptr<Trace> trace_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  double done_ = 0, work_ = 0;
  std::exception_ptr error_;
};

}  // namespace

StudyResult run_study(const Study& study, const StudyOptions& options) {
  return Runner(study, options).go();
}

}  // namespace affpcl
