#include "affpcl/study/site_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/problem/rows.h"
#include "affpcl/random/choose.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/side_by_side.h"
#include "affpcl/study/replica.h"
#include "affpcl/study/summarise.h"
#include "affpcl/study/task.h"

namespace affpcl {
namespace {

constexpr std::size_t kSideBySide = 32;  // replicates whose sums share messages

void refuse(const Spec& spec) {
  if (spec.problem_kind != "rows")
    throw BadInput(
        fmt::format("problem.kind = \"{}\" is not available in a federation; allowed: rows",
                    spec.problem_kind));
  if (spec.problem.integer("agents") > 0)
    throw BadInput(
        "problem.agents is not available in a federation: every site has all agents of its file");
  if (!spec.schedule.empty())
    throw BadInput("run.schedule is not available in a federation; run.participation is");
}

// What a site has of its file, in texts that all sites can read.
std::vector<std::string> described(const Rows::Found& found) {
  return {join(found.features, ", "), join(found.channels, ", "), std::to_string(found.folds),
          std::to_string(found.repeats)};
}

// BadInput where the file of another site differs from this one's.
void agree(const Rows::Found& found, Processes& site) {
  site.set_purpose("names of columns, numbers of folds and repeats");
  static constexpr const char* kWhat[] = {"features", "channels", "number of folds",
                                          "number of repeats"};
  const std::vector<std::string> own = described(found);
  const std::vector<std::vector<std::string>> all = all_gather(site, own);
  for (std::size_t s = 0; s < all.size(); ++s)
    for (std::size_t k = 0; k < own.size(); ++k)
      if (all[s].size() != own.size() || all[s][k] != own[k])
        throw BadInput(fmt::format("{}: '{}' here, and '{}' at another site", kWhat[k], own[k],
                                   all[s].size() == own.size() ? all[s][k] : ""));
}

// The number of agents of every site.
std::vector<std::int64_t> count_agents(const Rows::Found& found, Processes& site) {
  site.set_purpose("number of agents of every site");
  std::vector<double> counts(static_cast<std::size_t>(site.count()));
  counts[static_cast<std::size_t>(site.rank())] = static_cast<double>(found.agents);
  sum(site, counts);
  return {counts.begin(), counts.end()};
}

// A sum over fewer sites would be theirs: with three, no site can subtract its own part and is left with that of
// one other.
std::int64_t fewest_sites(const Processes& site) { return std::min(3, site.count()); }

// BadInput where the agents that are drawn for a round are those of too few sites.
void refuse_thin_rounds(const Spec& spec, const std::vector<std::int64_t>& agents,
                        const Processes& site) {
  if (spec.run.participation == 1) return;
  const std::int64_t n = std::accumulate(agents.begin(), agents.end(), std::int64_t{0}),
                     count = std::max<std::int64_t>(
                         1, std::llround(spec.run.participation *
                                         static_cast<double>(n)));  // as Run::take_part
  std::vector<LaneSet> present(static_cast<std::size_t>(blocks_of(n)));
  std::set<int> periods;
  for (const MethodSpec& m : spec.methods) periods.insert(m.period);
  for (const int period : periods)
    for (std::int64_t replicate = 0; replicate < spec.replicates; ++replicate)
      for (std::int64_t round = 0; round * period < spec.run.steps; ++round) {
        const Key key{spec.run.seed, static_cast<std::uint32_t>(spec.first + replicate),
                      static_cast<std::uint32_t>(round)};
        choose(key, Purpose::kPresence, n, count, present);
        std::int64_t sites = 0, next = 0;
        for (const std::int64_t here : agents) {
          const auto takes_part = [&](std::int64_t i) {
            return has_lane(present[static_cast<std::size_t>(i / kLanes)],
                            static_cast<int>(i % kLanes));
          };
          bool any = false;
          for (std::int64_t i = next; i < next + here && !any; ++i) any = takes_part(i);
          sites += any, next += here;
        }
        if (sites < fewest_sites(site))
          throw BadInput(fmt::format(
              "run.participation = {}: agents of {} site{} alone take part in round {} of "
              "replicate {}, "
              "and a sum over them would be theirs; a larger share, or another seed, takes in more",
              spec.run.participation, sites, sites == 1 ? "" : "s", round + 1,
              spec.first + replicate));
      }
}

std::vector<double> numbers(In in) {
  if (in.p == nullptr) return {};
  return {in.p, in.p + in.rows};
}

class SiteRunner {
 public:
  SiteRunner(const Study& study, const StudyOptions& options)
      : study_(study),
        options_(options),
        site_(*options.processes),
        team_(thread_team(threads_or_all(options.threads), site_)) {
    for (const Setting& s : study.settings)
      work_ += static_cast<double>(s.spec.run.steps) * static_cast<double>(s.spec.replicates);
  }

  SiteStudy run() {
    SiteStudy all;
    all.result.threads = threads_or_all(options_.threads);
    all.result.ranks = site_.count();
    for (const Setting& s : study_.settings) run(s, all);
    const Processes::Traffic traffic = site_.traffic();
    all.result.bytes_sent = traffic.bytes;
    all.result.communication_seconds = traffic.seconds;
    return all;
  }

 private:
  struct One {
    Replicate replicate;
    std::vector<CommonResult> common;
  };

  void run(Setting setting, SiteStudy& all) {
    Spec& spec = setting.spec;
    refuse(spec);
    spec.run.curve_agents.clear();  // an agent's own curve is of its site alone
    for (MethodSpec& m : spec.methods) m.sum = Sums::kFixed;
    const Rows::Found found = Rows::find(spec.problem);
    agree(found, site_);
    all.agents = count_agents(found, site_);
    refuse_thin_rounds(spec, all.agents, site_);
    place_ = {};
    for (int r = 0; r < site_.count(); ++r) {
      if (r == site_.rank()) place_.first = std::max<std::int64_t>(place_.agents, 0);
      place_.agents =
          std::max<std::int64_t>(place_.agents, 0) + all.agents[static_cast<std::size_t>(r)];
    }
    SettingShape shape;
    std::vector<One> done(static_cast<std::size_t>(spec.replicates));
    for (std::size_t from = 0; from < done.size(); from += kSideBySide)
      side_by_side(std::min(kSideBySide, done.size() - from), *team_,
                   [&](std::size_t k, Team& team) {
                     done[from + k] = run(spec, found, from + k, team, shape);
                   });
    std::vector<Replicate> replicates;
    for (One& one : done) replicates.push_back(std::move(one.replicate));
    all.result.settings.push_back(summarise(setting, shape, replicates));
    all.common.push_back(mean_of(done, all.result.settings.back(), spec.methods.size()));
  }

  One run(const Spec& spec, const Rows::Found& found, std::size_t replicate, Team& team,
          SettingShape& shape) {
    Rows::Place place = place_;
    place.sites = fewest_sites(site_);
    for (const MethodSpec& m : spec.methods)
      place.samples = std::max(place.samples, spec.run.steps * m.batch);
    place.sum = [&](std::span<Fixed> sums) {
      team.processes().set_purpose("true solutions, weights, steps of the centre, numbers of rows");
      team.processes().sum(sums);
    };
    const auto number =
        static_cast<std::uint32_t>(spec.first + static_cast<std::int64_t>(replicate));
    const Replica made =
        make_replica(spec, number, team,
                     Rows::at_site(spec.problem, spec.redraw_system ? number : 0, found, place));
    if (replicate == 0) {
      shape = shape_of(spec, *made.problem);
      shape.agents = found.agents;
    }
    Run& run = *made.run;
    std::int64_t told = 0;
    run.advance(spec.run.steps, options_.stop, [&] {
      const std::lock_guard lock(mutex_);
      done_ += static_cast<double>(run.step() - std::exchange(told, run.step()));
      if (options_.progress) options_.progress(done_ / work_);
    });
    One one{.replicate = {run.finish(), run.step(), number, {}}, .common = {}};
    for (std::size_t m = 0; m < spec.methods.size(); ++m)
      one.common.push_back({numbers(run.central_x(m)), numbers(run.central_theta(m))});
    return one;
  }

  // Over the replicates that the summary uses.
  static std::vector<CommonResult> mean_of(const std::vector<One>& all, const SettingResult& result,
                                           std::size_t methods) {
    std::vector<CommonResult> mean(methods);
    for (const One& one : all) {
      if (std::find(result.numbers.begin(), result.numbers.end(), one.replicate.number) ==
          result.numbers.end())
        continue;
      const auto add = [&](const std::vector<double>& from, std::vector<double>& to) {
        to.resize(from.size());
        for (std::size_t r = 0; r < from.size(); ++r)
          to[r] += from[r] / static_cast<double>(result.used);
      };
      for (std::size_t m = 0; m < methods; ++m) {
        add(one.common[m].x, mean[m].x);
        add(one.common[m].theta, mean[m].theta);
      }
    }
    return mean;
  }

  const Study& study_;
  const StudyOptions& options_;
  Processes& site_;
  std::unique_ptr<Team> team_;
  Rows::Place place_;
  std::mutex mutex_;  // of the progress
  double done_ = 0, work_ = 0;
};

}  // namespace

SiteStudy run_study_at_site(const Study& study, const StudyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SiteStudy all = SiteRunner(study, options).run();
  all.result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

}  // namespace affpcl
