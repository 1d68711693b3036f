// The page's data, from result folders on disk. The page itself is tested in a browser
// (report/test).
#include "affpcl/output/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/output/result_folder-inl.h"
#include "affpcl/output/results.h"

namespace affpcl {
namespace {

namespace fs = std::filesystem;

class Page : public ::testing::Test {
 protected:
  Page() { fs::create_directories(root); }
  ~Page() override { fs::remove_all(root); }

  std::string run(const std::string& name, const std::vector<std::string>& set = {},
                  const std::string& levels = "[0.0, 0.3333333333333333]") const {
    std::string spec = kSpec;
    spec.replace(spec.find("LEVELS"), 6, levels);
    const Study study = read_study(spec, "my.toml", set);
    const std::string path = (root / name).string();
    ResultFolder folder(path, false);
    StudyOptions options;
    options.threads = 1;
    write_results(folder, study, run_study(study, options), "affpcl run my.toml");
    return path;
  }
  static void replace(const fs::path& file, const std::string& what, const std::string& with) {
    std::ifstream in(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    ASSERT_NE(text.find(what), std::string::npos) << what;
    write_file(file.string(), text.replace(text.find(what), what.size(), with));
  }
  static void refused(const std::string& folder, const std::string& words) {
    try {
      page_data(read_result(folder), kRoom);
      FAIL() << words;
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(folder), std::string::npos) << e.what();
    }
  }

  static constexpr std::size_t kRoom = 500'000;
  static constexpr const char* kSpec = R"([problem]
kind = "gaussian"
agents = 6
dim = 2
[run]
steps = 12
replicates = 4
seed = 3
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[sweep]
"problem.delta_env" = LEVELS
"run.iterate" = ["last", "polyak"]
)";
  const fs::path root = fs::path(::testing::TempDir()) /
                        ("affpcl_page_" + std::to_string(getpid()) + "_" +
                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

// As report/src/data.js reads it.
std::vector<double> unpacked(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<double> out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k)
      bits = bits << 6 | static_cast<std::uint32_t>(digits.find(text[i + k]));
    out.push_back(std::bit_cast<float>(bits << 8));
  }
  return out;
}

TEST(Pack, KeepsFourDigitsOfAnything) {
  const std::vector<double> numbers = {0, 1, -1, 0.1, 1.0 / 3, -123456.789, 1e-30, 3e30, 65535};
  const std::vector<double> back = unpacked(pack(numbers));
  ASSERT_EQ(back.size(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_LE(std::abs(back[i] - numbers[i]), std::abs(numbers[i]) * 0x1p-16) << numbers[i];
}

TEST(Pack, KeepsWhatIsNotFinite) {
  const std::vector<double> back = unpacked(pack({NAN, INFINITY, -INFINITY, 1e300}));
  EXPECT_TRUE(std::isnan(back[0]));
  EXPECT_EQ(back[1], INFINITY);
  EXPECT_EQ(back[2], -INFINITY);
  EXPECT_TRUE(std::isinf(back[3]));  // beyond a float
}

TEST_F(Page, EveryRowFindsItsSetting) {
  const std::string folder = run("a");
  const ResultFiles result = read_result(folder);
  const Json data = page_data(result, kRoom);
  ASSERT_EQ(data["settings"].size(), 4u);
  for (std::size_t s = 0; s < 4; ++s)
    for (std::size_t m = 0; m < 2; ++m) {
      const Json& method = data["settings"][s]["methods"][m];
      const Json& full = result.summary["settings"][s]["methods"][m];
      const std::vector<double> errors = unpacked(method["columns"]["mse_mean"].string());
      ASSERT_EQ(errors.size(), 6u);
      for (std::size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(errors[i] / full["agents"][i]["mse"]["mean"].get<double>(), 1, 1e-4);
      EXPECT_EQ(method["curves"].size(), 3u);  // all agents, the first, the last
      EXPECT_EQ(unpacked(method["curves"][0]["mean"].string()).size(), 12u);
    }
  EXPECT_EQ(data["steps"].size(), 1u);  // all curves share one list
}

TEST_F(Page, SweptKeysAreExplained) {
  const Json labels = page_data(read_result(run("a")), kRoom)["labels"];
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_TRUE(labels["problem.delta_env"].string().starts_with("environment heterogeneity: "));
  EXPECT_TRUE(labels["run.iterate"].string().starts_with("what is scored"));
}

TEST_F(Page, ClaimsAreTakenFromTheFolderAndChecked) {
  const std::string folder = run("a");
  EXPECT_FALSE(page_data(read_result(folder), kRoom)["claims"].is_array());
  write_file(folder + "/claims.json",
             R"([{"says": "it falls", "measured": 0.5, "lo": 0, "hi": 1, "holds": true}])");
  const Json claims = page_data(read_result(folder), kRoom)["claims"];
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0]["says"], "it falls");
  write_file(folder + "/claims.json", R"([{"says": "it falls", "lo": 0, "hi": 1, "holds": true}])");
  refused(folder, "'measured'");
}

TEST_F(Page, ManyAgentsAreThinnedButNotTheBestAndTheWorst) {
  const std::string folder = run(
      "many", {"problem.agents=4000", "run.replicates=2", "run.steps=2", "run.curve_agents=[]"});
  const ResultFiles result = read_result(folder);
  const Json data = page_data(result, kRoom);
  std::size_t characters = 0;
  for (const Json& setting : data["settings"].elements()) {
    EXPECT_EQ(setting["agents"], 4000);
    const auto shown = setting.get<std::vector<std::size_t>>("shown");
    EXPECT_LT(shown.size(), 4000u);
    const auto worst = setting["headline"]["worst"].get<std::size_t>("agent");
    EXPECT_TRUE(std::binary_search(shown.begin(), shown.end(), worst));
    for (const Json& m : setting["methods"].elements())
      for (const auto& [name, column] : m["columns"].members()) {
        EXPECT_EQ(column.string().size(), 4 * shown.size());
        characters += column.string().size();
      }
  }
  EXPECT_LE(print_json(data).size(), kRoom * 11 / 10);
  EXPECT_GT(characters, kRoom / 2);  // and the room is used
}

TEST_F(Page, HalfAFolderAndNoFolderAreRefused) {
  refused((root / "nowhere").string(), "is not a folder");
  fs::create_directories(root / "empty");
  refused((root / "empty").string(), "has no summary.json");
  for (const char* name : {"curves.csv", "agents.csv"}) {
    const std::string folder = run(std::string("without_") + name);
    fs::remove(fs::path(folder) / name);
    refused(folder, std::string("but no ") + name);
  }
}

TEST_F(Page, DamageIsNamed) {
  const std::string folder = run("a");
  const auto damaged = [&](const char* file, const char* what, const char* with,
                           const char* words) {
    const fs::path copy = root / "copy";
    fs::remove_all(copy);
    fs::copy(folder, copy);
    replace(copy / file, what, with);
    refused(copy.string(), words);
  };
  damaged("summary.json", "{", "[", "not whole JSON");
  damaged("summary.json", "\"settings\"", "\"sittings\"", "neither of a run nor of a fit");
  damaged("summary.json", "\"methods\"", "\"madness\"", "'methods'");
  damaged("summary.json", "\"mse\"", "\"mess\"", "'mse'");
  damaged("summary.json", "\"seed\": 3,\n  \"command\"", "\"command\"", "'seed'");
  damaged("summary.json", "\"replicates\": 4,\n   \"used\"", "\"used\"", "'replicates'");
  damaged("summary.json", "\"run.iterate\": \"last\"\n", "\"run.iterate\": null\n", "'at'");
  damaged("summary.json", "\"headline\": {", "\"headline\": 1, \"was\": {", "'headline'");
  damaged("curves.csv", "mse_lo", "mse_low", "'mse_lo'");
  damaged("curves.csv", ",all,1,", ",all,one,", "line 2, column 'step': 'one' is not a number");
  damaged("agents.csv", "affpcl,0,", "afpcl,0,", "is not in summary.json");
  damaged("agents.csv", "vs_lo,", "", "line 2");
}

TEST_F(Page, ReplicatesArePairedWhereSeedsAgree) {
  const ResultFiles a = read_result(run("a")), b = read_result(run("b", {"run.step_size=0.02"})),
                    c = read_result(run("c", {"run.seed=4"}));
  const Json same = compare(a, b), other = compare(a, c);
  ASSERT_EQ(same["pairs"].size(), 8u);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_TRUE(same["pairs"][k].get<bool>("paired"));
    EXPECT_FALSE(other["pairs"][k].get<bool>("paired"));
    const auto s = same["pairs"][k].get<std::size_t>("before");
    const auto mean_of = [&](const ResultFiles& r) {
      return r.summary["settings"][s]["methods"][k % 2]["mse"]["mean"].get<double>();
    };
    EXPECT_NEAR(same["pairs"][k]["ratio"].get<double>("mean"), mean_of(b) / mean_of(a), 1e-12);
    EXPECT_NEAR(other["pairs"][k]["ratio"].get<double>("mean"), mean_of(c) / mean_of(a), 1e-12);
  }
  // A result against itself: paired, it is 1 without any doubt.
  const Json itself = compare(a, a);
  EXPECT_NEAR(itself["pairs"][0]["ratio"].get<double>("lo"), 1, 1e-12);
  EXPECT_NEAR(itself["pairs"][0]["ratio"].get<double>("hi"), 1, 1e-12);
}

TEST_F(Page, StrangersHaveTheIntervalOfIndependentMeans) {
  const auto result = [](const std::vector<double>& errors, int seed) {
    ResultFiles r;
    r.summary = {
        {"manifest", {{"seed", seed}}},
        {"settings",
         Json::array({{{"at", Json::object()},
                       {"numbers", Json::array({0, 1, 2})},
                       {"methods", Json::array({{{"name", "m"}, {"by_replicate", errors}}})}}})}};
    return r;
  };
  const Json ratio = compare(result({1, 2, 3}, 1), result({4, 5, 6}, 2))["pairs"][0]["ratio"];
  // 5/2, relative variance (1/3)/4 + (1/3)/25, t of 2 degrees of freedom at 95 % is 2.919986.
  const double half = 2.919986 * 2.5 * std::sqrt(1.0 / 12 + 1.0 / 75);
  EXPECT_NEAR(ratio.get<double>("mean"), 2.5, 1e-12);
  EXPECT_NEAR(ratio.get<double>("lo"), 2.5 - half, 1e-5);
  EXPECT_NEAR(ratio.get<double>("hi"), 2.5 + half, 1e-5);
}

TEST_F(Page, ResultsWithNothingInCommonDoNotCompare) {
  const ResultFiles a = read_result(run("a")), b = read_result(run("b", {}, "[0.7, 0.8]"));
  EXPECT_THROW(compare(a, b), BadInput);
}

// The agents of a fit's summary, with these reasons and gains that rise.
Json agents(const std::vector<std::string>& reasons) {
  Json list = Json::array();
  for (std::size_t i = 0; i < reasons.size(); ++i)
    list.push_back(
        {{"agent", "a" + std::to_string(i)},
         {"rows", 10 + i},
         {"given", i == 1 ? "alone" : "personalised"},
         {"verdict", "even"},
         {"score", {{"given", 1.5}, {"personalised", 1.5}, {"alone", 2.0}, {"pooled", 3.0}}},
         {"gain", {{"mean", static_cast<double>(i)}, {"lo", Json()}, {"hi", 7.0}}},
         {"probability", 0.75},
         {"why", reasons[i]}});
  return list;
}

// A fit of one coefficient, with so many agents.
ResultFiles fit_of(const std::vector<std::string>& reasons) {
  ResultFiles result;
  result.summary = {{"headline", "h"}, {"agents", agents(reasons)}};
  Model& model = result.model.emplace();
  model.encoding.target = "y";
  model.encoding.sources.push_back({.name = "u", .levels = {}, .mean = {10}, .sd = {4}});
  ChannelModel channel;
  channel.centre = {.x = {5, 2}, .se = {0.5, 0.1}, .cov = {}};
  channel.D = {1, 0, 0, 0.25};
  model.channels.push_back(channel);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    AgentModel agent;
    agent.channels.push_back({.x = {6, 1}, .se = {0.5, 0.2}, .cov = {1, 0, 0, 0.04}});
    model.agents.push_back(agent);
  }
  return result;
}

TEST(FitPage, CoefficientsArePerUnitOfTheirColumns) {
  const Json shown = page_data(fit_of({"", "", ""}), 500'000)["model"];
  const std::vector<double> centre = unpacked(shown["centre"][0]["x"].string());
  EXPECT_EQ(centre, (std::vector<double>{5 - 10 * 0.5, 0.5}));  // at 0, and per unit
  const std::vector<double> own = unpacked(shown["channels"][0]["x"].string());
  EXPECT_EQ(own[0], 6 - 10 * 0.25);
  EXPECT_EQ(own[1], 0.25);
  EXPECT_EQ(unpacked(shown["channels"][0]["intercept"].string())[0], 6);  // where u is 10
  EXPECT_EQ(unpacked(shown["sd"].string()), (std::vector<double>{1, 4}));
  EXPECT_NEAR(unpacked(shown["centre"][0]["spread"].string())[1], 0.125, 1e-5);
}

TEST(FitPage, AgentsAreColumns) {
  const Json data = page_data(fit_of({"", "few rows", ""}), 500'000)["agents"];
  EXPECT_EQ(data["count"], 3);
  EXPECT_EQ(data["given"], "ABA");
  EXPECT_EQ(data["verdict"], "BBB");
  EXPECT_EQ(data["why"].size(), 1u);
  EXPECT_EQ(data["why"]["1"], "few rows");
  EXPECT_EQ(unpacked(data["numbers"]["gain.mean"].string()), (std::vector<double>{0, 1, 2}));
  EXPECT_TRUE(std::isnan(unpacked(data["numbers"]["gain.lo"].string())[0]));
  EXPECT_EQ(unpacked(data["numbers"]["score.pooled"].string())[2], 3);
}

TEST(FitPage, OfTooManyAgentsThoseWithAReasonStay) {
  std::vector<std::string> reasons(20'000);
  for (std::size_t i = 0; i < reasons.size(); i += 1000) reasons[i] = "special";
  const Json data = page_data(fit_of(reasons), 300'000);
  const auto shown = data["agents"].get<std::vector<std::size_t>>("shown");
  EXPECT_LT(shown.size(), 20'000u);
  EXPECT_GT(shown.size(), 1000u);
  EXPECT_EQ(data["agents"]["count"], 20'000);
  for (std::size_t i = 0; i < reasons.size(); i += 1000)
    EXPECT_TRUE(std::binary_search(shown.begin(), shown.end(), i)) << i;
  EXPECT_EQ(shown.back(), 19'999u);  // the largest gain
  EXPECT_LE(print_json(data).size(), 330'000u);
}

// A stream's model has neither standard errors nor a spread between agents.
TEST_F(Page, AStreamsModelHasNoErrorsButASpread) {
  ResultFiles result;
  result.summary = {{"headline", "h"}, {"agents", agents({"", "", ""})}};
  Model& model = result.model.emplace();
  model.solver = SolverKind::kStream;
  model.encoding.outcomes = {"speed", "comfort"};
  for (const char* name : {"u", "v"})
    model.encoding.sources.push_back({.name = name, .levels = {}, .mean = {0}, .sd = {1}});
  ChannelModel channel;
  channel.centre.x = {1, 2, 3};
  model.channels.push_back(channel);
  for (double v : {1.0, 5.0, 9.0}) {
    AgentModel agent;
    agent.channels.push_back({.x = {0.1, v, -v}, .se = {}, .cov = {}});
    model.agents.push_back(agent);
  }
  const Json shown = page_data(result, kRoom)["model"];
  EXPECT_EQ(shown["target"], "speed + comfort");
  EXPECT_EQ(shown["outcomes"], Json::array({"speed", "comfort"}));
  ASSERT_EQ(shown["channels"].size(), 1u);
  const Json& one = shown["channels"][0];
  EXPECT_EQ(unpacked(one["x"].string()).size(), 9u);
  EXPECT_EQ(unpacked(one["between"].string()), (std::vector<double>{0, 4, 4}));
  ASSERT_EQ(unpacked(one["se"].string()).size(), 9u);
  for (double se : unpacked(one["se"].string())) EXPECT_TRUE(std::isnan(se));
  for (double half : unpacked(shown["centre"][0]["half"].string())) EXPECT_TRUE(std::isnan(half));

  // Where room is short, the coefficients in which agents differ stay.
  const Json narrow = page_data(result, 0)["model"];
  EXPECT_EQ(narrow["all"], 3);
  EXPECT_EQ(narrow["names"], Json::array({"u", "v"}));
}

TEST_F(Page, IsWholeAndCannotBeBrokenByNames) {
  const std::string folder = run("a");
  if (page_template().empty()) {
    EXPECT_THROW(report_page({&folder, 1}), BadInput);
    GTEST_SKIP() << "the page was not built";
  }
  replace(fs::path(folder) / "summary.json", "affpcl run my.toml", "</script><script>\u2028<!-- ");
  const std::string page = report_page({&folder, 1});
  EXPECT_EQ(page.find("</script><script>\\u2028"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>\\u2028\\u003c!-- "), std::string::npos);
  EXPECT_EQ(page.find("AFFPCL_DATA"), std::string::npos);
  EXPECT_LT(page.size(), 1'500'000u);
}

}  // namespace
}  // namespace affpcl
