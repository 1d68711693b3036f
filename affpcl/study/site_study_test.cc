// A study over sites that are apart is the study of all rows in one place, to the bit.
#include "affpcl/study/site_study.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/federation/sites_test.h"
#include "affpcl/output/federation_file.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {
namespace fs = std::filesystem;

// Sites whose agents begin and end inside blocks of 64, and inside leaves of 256.
const std::vector<std::pair<std::string, int>> kSites = {
    {"north", 3}, {"south", 200}, {"east", 130}, {"west", 5}};

// Rows of all agents in one file, and the same rows by site, with two outcomes and three folds.
class Files {
 public:
  Files() : folder_(fs::temp_directory_path() / fmt::format("affpcl-study-{}", ::getpid())) {
    fs::create_directories(folder_);
    std::ofstream all(path("all")), weights(path("weights"));
    const std::string head = "agent,fold,x,z,cost,days\n";
    all << head, weights << "agent,cost,days\n";
    std::int64_t agent = 0;
    for (const auto& [site, agents] : kSites) {
      std::ofstream own(path(site)), own_weights(path(site + "-weights"));
      own << head, own_weights << "agent,cost,days\n";
      for (int i = 0; i < agents; ++i, ++agent) {
        const std::string weight =
            fmt::format("a{},{},{}\n", agent, 0.1 * static_cast<double>(agent % 7), 0.3);
        weights << weight, own_weights << weight;
        for (std::uint32_t r = 0; r < 6 + agent % 4; ++r) {
          const auto draw = [&](std::uint32_t j) {
            return normal({.seed = 8, .replicate = 0, .step = r}, agent, Purpose::kSample, j);
          };
          const double u = normal({.seed = 9}, agent, Purpose::kObjective, 0), x = draw(0),
                       z = draw(1);
          const std::string row = fmt::format("a{},{},{},{},{},{}\n", agent, r % 3, x, z,
                                              (1 + u) * x + draw(2), z - u * x + draw(3));
          all << row, own << row;
        }
      }
    }
  }
  ~Files() { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / (name + ".csv"); }

 private:
  fs::path folder_;
};

constexpr const char* kChannels =
    "channels = \"cost,days\"\ndelta_obj = 0.4\nfold = \"fold\"\nridge = 0.05\n";

Study study_of(const Files& files, const std::string& name, const std::string& problem,
               const std::string& run, const std::string& methods) {
  const bool weighs = problem.find("WEIGHTS") != std::string::npos;
  std::string text = problem;
  if (weighs)
    text.replace(text.find("WEIGHTS"), 7,
                 files.path(name == "all" ? "weights" : name + "-weights"));
  return read_study(
      fmt::format("[problem]\nkind = \"rows\"\nfile = \"{}\"\n{}[run]\n{}step_size = "
                  "0.05\ncurve_agents = []\n{}{}",
                  files.path(name), text,
                  run.find("steps = ") == std::string::npos ? "steps = 9\n" : "", run, methods),
      "study");
}

StudyOptions on(int threads) {
  StudyOptions options;
  options.threads = threads;
  return options;
}

struct Outcome {
  std::vector<StudyResult> sites;
  std::vector<std::string> centres;
  std::string error;
  std::int64_t rounds = 0;
};

Outcome over_sites(const Files& files, const std::string& problem, const std::string& run,
                   const std::string& methods, bool secure) {
  Outcome out;
  out.sites.resize(kSites.size()), out.centres.resize(kSites.size());
  std::vector<std::string> names;
  for (const auto& [name, agents] : kSites) names.push_back(name);
  FederationCentre centre({.job = "job", .sites = names, .secure = secure});
  std::vector<std::unique_ptr<TestSite>> threads;
  std::vector<std::pair<std::string, TestSite*>> sites;
  for (std::size_t s = 0; s < names.size(); ++s) {
    threads.push_back(std::make_unique<TestSite>(
        SiteOptions{.name = names[s], .job = "job", .unmasked = !secure},
        [&, s](SiteProcesses& processes) {
          StudyOptions options = on(1);
          options.processes = &processes;
          const SiteStudy done =
              run_study_at_site(study_of(files, names[s], problem, run, methods), options);
          out.sites[s] = done.result;
          return out.centres[s] = centre_json(done);
        }));
    sites.emplace_back(names[s], threads.back().get());
  }
  run_federation(centre, sites);
  for (const auto& thread : threads) thread->kill();
  for (const auto& thread : threads)
    if (out.error.empty()) out.error = thread->error();
  threads.clear();
  out.rounds = centre.rounds();
  if (out.error.empty()) {
    EXPECT_EQ(centre.state(), CentreState::kDone) << centre.status();
  }
  return out;
}

std::vector<double> numbers(const std::vector<Estimate>& all) {
  std::vector<double> out;
  for (const Estimate& e : all)
    for (const double x : {e.mean, e.lo, e.hi}) out.push_back(std::isfinite(x) ? x : -1e300);
  return out;
}

// Everything that a study shows of its methods but the centre's error, whose truth is a sum in doubles
// in one place and over sites in fixed point.
void expect_same(const StudyResult& pooled, const Outcome& over) {
  ASSERT_EQ(over.error, "");
  for (const std::string& centre : over.centres) EXPECT_EQ(centre, over.centres[0]);
  const SettingResult& want = pooled.settings[0];
  for (std::size_t m = 0; m < want.methods.size(); ++m) {
    SCOPED_TRACE(want.methods[m].name);
    std::vector<double> solution;
    std::vector<Estimate> agents;
    for (const StudyResult& site : over.sites) {
      const MethodResult& own = site.settings[0].methods[m];
      solution.insert(solution.end(), own.solution.begin(), own.solution.end());
      for (const AgentResult& a : own.agents)
        agents.push_back(a.mse), agents.push_back(a.vs_independent);
      EXPECT_EQ(numbers({own.mse, own.vs_independent}),
                numbers({want.methods[m].mse, want.methods[m].vs_independent}));
      EXPECT_EQ(site.settings[0].diverged, want.diverged);
      ASSERT_EQ(own.curves.size(), want.methods[m].curves.size());
      for (std::size_t c = 0; c < own.curves.size(); ++c)
        EXPECT_EQ(numbers(own.curves[c].mse), numbers(want.methods[m].curves[c].mse));
    }
    EXPECT_EQ(solution, want.methods[m].solution);
    std::vector<Estimate> all;
    for (const AgentResult& a : want.methods[m].agents)
      all.push_back(a.mse), all.push_back(a.vs_independent);
    EXPECT_EQ(numbers(agents), numbers(all));
  }
}

std::string method(std::string_view kind, int period, const std::string& more = "") {
  return fmt::format(
      "[[method]]\nkind = \"{}\"\nname = \"{}-{}\"\nperiod = {}\nsum = \"fixed\"\n{}", kind, kind,
      period, period, more);
}

TEST(SiteStudy, EveryMethodIsThatOfAllRowsToTheBitOrRefusedInASentence) {
  const Files files;
  std::string methods;
  std::set<std::string_view> refused;
  for (const MethodKind& kind : method_kinds()) {
    const bool affpcl = kind.name == "affpcl";
    if (kind.name == "all_for_all" || kind.name == "all_for_one") {
      const Outcome over =
          over_sites(files, kChannels, "replicates = 1\n", method(kind.name, 1), false);
      EXPECT_EQ(over.error,
                "all_for_one and all_for_all need the data of all agents at one place, which a "
                "federation does not have");
      refused.insert(kind.name);
      continue;
    }
    for (const int period : {1, 4})
      methods += method(kind.name, period, affpcl ? "ratio = \"linear\"\n" : "");
  }
  EXPECT_EQ(refused.size(), 2U);
  const Study study = study_of(files, "all", kChannels, "replicates = 2\n", methods);
  const StudyResult pooled = run_study(study, on(1));
  expect_same(pooled, over_sites(files, kChannels, "replicates = 2\n", methods, false));
}

// The methods of the issue with local steps on channels, masked; weights of each site's own; steps that
// the problem bounds; agents that are absent; compressed messages.
TEST(SiteStudy, MaskedSumsAreThoseOfAllRows) {
  const Files files;
  const std::string methods =
      method("affpcl", 3, "ratio = \"linear\"\n") +
      method("residual", 1, "compress = {kind = \"top-k\", share = 0.5}\n") + method("ditto", 3) +
      method("fedavg", 4, "batch = 2\n") + method("independent", 1);
  const std::string
      weighed = "channels = \"cost,days\"\nweights = \"WEIGHTS\"\nfold = \"fold\"\nridge = 0.05\n",
      observed = "channels = \"days\"\ntarget = \"cost\"\nfeatures = \"x,z\"\n";
  for (const std::string& problem : {std::string(kChannels), weighed, observed})
    for (const char* run :
         {"replicates = 3\n", "replicates = 1\nparticipation = 0.7\nstep_size_ratio = 0.02\n"}) {
      SCOPED_TRACE(problem + run);
      const StudyResult pooled = run_study(study_of(files, "all", problem, run, methods), on(2));
      expect_same(pooled, over_sites(files, problem, run, methods, true));
    }
}

// Each row once, after which an agent is absent.
TEST(SiteStudy, AgentsWhoseRowsEndAreAbsentEverywhere) {
  const Files files;
  const std::string methods = method("affpcl", 1, "ratio = \"linear\"\n") + method("scaffold", 1) +
                              method("ditto", 1) + method("independent", 1),
                    once = "channels = \"cost,days\"\ndelta_obj = 0.4\norder = \"once\"\n";
  const StudyResult pooled =
      run_study(study_of(files, "all", once, "replicates = 1\n", methods), on(1));
  expect_same(pooled, over_sites(files, once, "replicates = 1\n", methods, false));
  EXPECT_EQ(over_sites(files, once, "replicates = 1\nsteps = 20\n", methods, false).error,
            "20 samples per agent are asked for, but the problem has 9");
}

// A central step that is too long is bounded by the same number at all sites as in one place.
TEST(SiteStudy, CentralStepsAreBoundedAlike) {
  const Files files;
  const std::string methods =
      method("affpcl", 1, "ratio = \"linear\"\nstep_size = 2\nbatch = 8\n") +
      method("independent", 1);
  const StudyResult pooled = run_study(
      study_of(files, "all", kChannels,
               "replicates = 1\ndiverged_above = 1e300\nstep_size_ratio = 0.02\n", methods),
      on(1));
  EXPECT_EQ(pooled.settings[0].diverged[0].second, 0);
  expect_same(pooled, over_sites(files, kChannels,
                                 "replicates = 1\ndiverged_above = 1e300\nstep_size_ratio = 0.02\n",
                                 methods, false));
}

TEST(SiteStudy, ReplicatesShareMessages) {
  const Files files;
  const std::string methods =
      method("affpcl", 1, "ratio = \"linear\"\n") + method("independent", 1);
  const std::int64_t one = over_sites(files, kChannels, "replicates = 1\n", methods, false).rounds,
                     many =
                         over_sites(files, kChannels, "replicates = 12\n", methods, false).rounds;
  EXPECT_EQ(many, one);
}

TEST(SiteStudy, RefusesInASentence) {
  const Files files;
  const std::string one = method("independent", 1);
  const auto error = [&](const std::string& problem, const std::string& run,
                         const std::string& methods) {
    return over_sites(files, problem, run, methods, false).error;
  };
  EXPECT_EQ(error(kChannels, "replicates = 1\nparticipation = 0.009\n", one),
            "run.participation = 0.009: agents of 2 sites alone take part in round 1 of replicate "
            "0, and a sum over them would "
            "be theirs; a larger share, or another seed, takes in more");
  EXPECT_EQ(
      error(std::string(kChannels) + "agents = 2\n", "replicates = 1\n", one),
      "problem.agents is not available in a federation: every site has all agents of its file");
  EXPECT_EQ(error(kChannels, "replicates = 1\nschedule = \"who.csv\"\n", one),
            "run.schedule is not available in a federation; run.participation is");
  EXPECT_EQ(error(kChannels, "replicates = 1\n",
                  method("independent", 1, "step_size = {schedule = \"log-constant\"}\n")),
            "method 'independent-1': a relative step_size schedule needs the data of all agents at "
            "one place, which a "
            "federation does not have");
}

}  // namespace
}  // namespace affpcl
