// A fit over sites that are apart equals the fit of their rows in one place, to the bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "affpcl/federation/sites_test.h"
#include "affpcl/fit/fit.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

// Rows of agents a0 to a8 in one file, and the same rows by site.
class Rows {
 public:
  explicit Rows(const std::string& family) {
    folder_ = fs::temp_directory_path() / ("affpcl-federated-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const std::string head = "agent,x,colour,z,y\n";
    std::ofstream all(folder_ / "all.csv");
    all << head;
    std::map<std::string, std::ofstream> of;
    for (const std::string& site : sites())
      of[site].open(folder_ / (site + ".csv")), of[site] << head;
    for (std::int64_t i = 0; i < 9; ++i)
      for (std::uint32_t r = 0; r < 30; ++r) {
        const auto draw = [&](std::uint32_t j) {
          return normal({.seed = 8, .replicate = 0, .step = r}, i, Purpose::kSample, j);
        };
        const double u = normal({.seed = 9}, i, Purpose::kObjective, 0), x = draw(0), z = draw(1);
        const char* colour = draw(2) > 0.3 ? "red" : draw(2) < -0.3 ? "blue" : "green";
        const double eta = 1 + (1 + 0.5 * u) * x + 0.2 * z * u + (colour[0] == 'r' ? 0.7 : 0);
        std::string y = std::to_string(eta + 0.5 * draw(3));
        if (family == "binomial") y = draw(3) < eta - 1 ? "yes" : "no";
        if (family == "poisson")
          y = std::to_string(static_cast<int>(std::exp(0.4 * eta + 0.2 * draw(3))));
        const std::string row = "a" + std::to_string(i) + "," + std::to_string(x) + "," + colour +
                                "," + std::to_string(z) + "," + y + "\n";
        all << row;
        of[sites()[static_cast<std::size_t>(i) % 3]] << row;
      }
  }
  ~Rows() { fs::remove_all(folder_); }
  static std::vector<std::string> sites() { return {"north", "south", "east"}; }
  std::string file(const std::string& name) const { return folder_ / (name + ".csv"); }

 private:
  fs::path folder_;
};

FitOptions options_of(const std::string& file, const std::string& family) {
  FitOptions o;
  o.frame.paths = {file};
  o.frame.target = "y";
  o.frame.agent = "agent";
  o.frame.family = family;
  o.threads = 1;
  o.sum = Sums::kFixed;
  o.repeats = 1;
  return o;
}

void expect_same(const FitResult& own, const FitResult& all) {
  ASSERT_EQ(own.agents.size(), own.model.agents.size());
  for (std::size_t i = 0; i < own.model.agents.size(); ++i) {
    const AgentModel& mine = own.model.agents[i];
    const auto at = std::find_if(all.model.agents.begin(), all.model.agents.end(),
                                 [&](const AgentModel& a) { return a.name == mine.name; });
    ASSERT_NE(at, all.model.agents.end()) << mine.name;
    const auto k = static_cast<std::size_t>(at - all.model.agents.begin());
    for (std::size_t c = 0; c < mine.channels.size(); ++c) {
      EXPECT_EQ(mine.channels[c].x, at->channels[c].x);
      EXPECT_EQ(mine.channels[c].cov, at->channels[c].cov);
    }
    EXPECT_EQ(mine.stacked, at->stacked);
    EXPECT_EQ(own.agents[i].gain.mean, all.agents[k].gain.mean);
    EXPECT_EQ(own.agents[i].gain.lo, all.agents[k].gain.lo);
    EXPECT_EQ(own.agents[i].probability, all.agents[k].probability);
    EXPECT_EQ(own.agents[i].loss.chosen, all.agents[k].loss.chosen);
  }
  EXPECT_EQ(own.model.channels[0].centre.x, all.model.channels[0].centre.x);
  EXPECT_EQ(own.model.channels[0].centre.cov, all.model.channels[0].centre.cov);
  EXPECT_EQ(own.model.channels[0].pooled, all.model.channels[0].pooled);
  EXPECT_EQ(own.loss.chosen, all.loss.chosen);
  EXPECT_EQ(own.gain.lo, all.gain.lo);
  EXPECT_EQ(own.classes.auc.chosen, all.classes.auc.chosen);
}

class FederatedFit : public testing::TestWithParam<std::pair<const char*, bool>> {};

TEST_P(FederatedFit, EqualsTheFitOfAllRowsToTheBit) {
  const auto [family, secure] = GetParam();
  const Rows rows(family);
  const FitResult all = fit(options_of(rows.file("all"), family));
  std::map<std::string, FitResult> results;
  FederationCentre centre({.job = "job", .sites = Rows::sites(), .secure = secure});
  std::vector<std::unique_ptr<TestSite>> threads;
  std::vector<std::pair<std::string, TestSite*>> sites;
  for (const std::string& name : Rows::sites()) {
    FitResult& result = results[name];
    threads.push_back(
        std::make_unique<TestSite>(SiteOptions{.name = name, .job = "job", .unmasked = !secure},
                                   [&, name, family = family](SiteProcesses& processes) {
                                     FitOptions o = options_of(rows.file(name), family);
                                     o.processes = &processes;
                                     result = fit(o);
                                     return std::string("centre");
                                   }));
    sites.emplace_back(name, threads.back().get());
  }
  run_federation(centre, sites);
  EXPECT_EQ(centre.state(), CentreState::kDone) << centre.status();
  for (const auto& thread : threads) thread->kill();
  for (const auto& thread : threads) EXPECT_EQ(thread->error(), "");
  threads.clear();
  std::size_t agents = 0;
  for (const auto& [name, result] : results) {
    agents += result.model.agents.size();
    expect_same(result, all);
  }
  EXPECT_EQ(agents, all.model.agents.size());
  RecordProperty("rounds", static_cast<int>(centre.rounds()));
}

INSTANTIATE_TEST_SUITE_P(All, FederatedFit,
                         testing::Values(std::pair{"gaussian", false}, std::pair{"binomial", false},
                                         std::pair{"poisson", true}),
                         [](const auto& test) { return std::string(test.param.first); });

}  // namespace
}  // namespace affpcl
