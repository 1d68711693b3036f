#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <cmath>

#include "affpcl/data/file_test.h"
#include "affpcl/data/table.h"
#include "affpcl/fit/predict.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/output/model_file.h"
#include "affpcl/random/streams.h"
#include "affpcl/table/frame.h"
#include "tests/ranks.h"

namespace affpcl {
namespace {

// A table of agents whose coefficients spread by `sd` around 1, as text.
std::string table(int agents, int rows, double sd, std::uint64_t seed, int columns = 3) {
  std::string text = "agent";
  for (int j = 0; j < columns; ++j) text += fmt::format(",x{}", j);
  text += ",y\n";
  for (int i = 0; i < agents; ++i)
    for (int r = 0; r < rows; ++r) {
      const auto draw = [&](int j) {
        return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(r)}, i,
                      Purpose::kSample, static_cast<std::uint32_t>(j));
      };
      const auto own = [&](int j) {
        return sd * normal({.seed = seed}, i, Purpose::kObjective, static_cast<std::uint32_t>(j));
      };
      double y = draw(columns) + own(columns);
      text += fmt::format("a{}", i);
      for (int j = 0; j < columns; ++j) {
        text += fmt::format(",{}", draw(j));
        y += (1 + own(j)) * draw(j);
      }
      text += fmt::format(",{}\n", y);
    }
  return text;
}

class FitTest : public FileTest {
 protected:
  FitOptions options() const {
    return {.frame = {.paths = {path}, .target = "y", .agent = ""}, .threads = 1};
  }
  FitResult fitted(const std::string& text) const {
    write(text);
    return fit(options());
  }
};

TEST_F(FitTest, SimilarAgentsGain) {
  const FitResult r = fitted(table(20, 15, 0.1, 1, 8));
  EXPECT_EQ(r.lost, 0);
  EXPECT_GT(r.gain.lo, 0);
  EXPECT_LT(r.loss.chosen, 0.9 * r.loss.independent);
  EXPECT_EQ(r.gained + r.even, 20);
}

// Against the better twin, which nobody knows beforehand, within 3 %: not to know how alike the
// agents are costs 1.1 % where they are equal, and less elsewhere.
TEST_F(FitTest, NeitherTwinIsNeededAndNobodyLoses) {
  for (double sd : {0.0, 0.3, 1.0, 10.0}) {
    const FitResult r = fitted(table(20, 30, sd, 2));
    EXPECT_LE(r.loss.chosen, 1.03 * std::min(r.loss.independent, r.loss.pooled)) << sd;
    EXPECT_EQ(r.lost, 0) << sd;
  }
}

// Agents that have nothing in common, with rows enough: nothing to gain. At a false discovery rate
// of 5 % no table should find a gain in more than one of twenty; in all, 5 % of 500 agents.
TEST_F(FitTest, NoGainIsCalledNoGain) {
  int gained = 0, agents = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    const FitResult r = fitted(table(20, 60, 30, seed));
    gained += r.gained;
    agents += 20;
  }
  EXPECT_LE(gained, 0.05 * agents);
}

// A target of noise alone, and rows enough to see it: what an agent alone has to pay for its two
// coefficients is 2/800 of the error, so there is next to nothing to gain.
TEST_F(FitTest, NoiseIsNoGain) {
  int gained = 0, agents = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    std::string text = "agent,x,y\n";
    for (int i = 0; i < 20; ++i)
      for (std::uint32_t r = 0; r < 1000; ++r) {
        const Key key{.seed = seed, .replicate = 0, .step = r};
        text += fmt::format("{},{:.5f},{:.5f}\n", i, normal(key, i, Purpose::kSample, 0),
                            normal(key, i, Purpose::kSample, 1));
      }
    gained += fitted(text).gained;
    agents += 20;
  }
  EXPECT_LE(gained, 0.05 * agents);
}

// The expected loss of an agent's independent model minus that of its chosen one, on a new row of
// table(): its columns are independent standard normals and its coefficients are known.
double true_gain(const Model& model, std::size_t place, int agent, double sd, std::uint64_t seed) {
  const AgentModel& a = model.agents[place];
  const std::size_t columns = model.encoding.sources.size();
  const auto error = [&](const std::vector<double>& x) {
    double intercept = x[0], sum = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      const Source& s = model.encoding.sources[j];
      const double own =
          sd * normal({.seed = seed}, agent, Purpose::kObjective, static_cast<std::uint32_t>(j));
      sum += std::pow(x[j + 1] / s.sd[0] - (1 + own), 2);
      intercept -= x[j + 1] * s.mean[0] / s.sd[0];
    }
    const double own = sd * normal({.seed = seed}, agent, Purpose::kObjective,
                                   static_cast<std::uint32_t>(columns));
    return sum + std::pow(intercept - own, 2);
  };
  return error(a.independent[0]) - error(a.channels[0].x);
}

// Verdicts have the wrong sign in at most 5 % of the cases, and 90 % intervals hold what they should.
// With 600 agents of which at least 100 gained, the limits are passed by chance in .001 of all seeds:
// .05 + 3.1 sqrt(.05 * .95 / 100) and .90 - 3.1 sqrt(.9 * .1 / 600) - .03 for the approximation.
TEST_F(FitTest, VerdictsHaveTheRightSignAndIntervalsHoldTheGain) {
  int signs = 0, wrong = 0, held = 0, agents = 0;
  for (const double sd : {0.0, 0.3})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const FitResult r = fitted(table(30, 8, sd, seed));
      for (std::size_t i = 0; i < r.agents.size(); ++i, ++agents) {
        const AgentScore& a = r.agents[i];
        const double truth =
            true_gain(r.model, i, std::stoi(r.model.agents[i].name.substr(1)), sd, seed);
        held += a.gain.lo <= truth && truth <= a.gain.hi;
        if (a.verdict == Outcome::kEven) continue;
        ++signs;
        wrong += (a.verdict == Outcome::kGained) != (truth > 0);
      }
    }
  EXPECT_GE(signs, 100);
  EXPECT_LE(wrong, 0.12 * signs);
  EXPECT_GE(held, 0.83 * agents);
}

// Equal agents lose nothing by learning together, and their held-out rows together say so.
TEST_F(FitTest, EqualAgentsAreSaidToGain) {
  int gained = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) gained += fitted(table(40, 8, 0, seed)).gained;
  EXPECT_GE(gained, 0.6 * 200);
}

// A model of one or two yes/no rows is far off on rows of the other answer, of which it has seen none:
// they lose nothing, though their few held-out rows may like it better.
TEST_F(FitTest, EqualAgentsWithTwoAnswersDoNotLose) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::string text = "agent,x,y\n";
    for (int i = 0; i < 40; ++i)
      for (std::uint32_t r = 0; r < 2; ++r) {
        const auto draw = [&](std::uint32_t j) {
          return normal({.seed = seed, .replicate = 0, .step = r}, i, Purpose::kSample, j);
        };
        const double x = draw(0);
        text += fmt::format("a{},{},{}\n", i, x, x + 1.7 * draw(1) > 0.6 ? "yes" : "no");
      }
    const FitResult result = fitted(text);
    EXPECT_EQ(result.lost, 0) << seed;
    EXPECT_GT(result.expect_gain, 0.7 * 40) << seed;
  }
}

// Whatever the table: the sign that an interval leaves is that of the probability and the verdict.
TEST_F(FitTest, IntervalsAndVerdictsDoNotContradictEachOther) {
  for (const double sd : {0.0, 0.5, 20.0})
    for (const int rows : {1, 2, 5, 40}) {
      const FitResult r = fitted(table(12, rows, sd, 31) + "odd,9,-9,9,1000\nodd,1,2,3,-500\n");
      for (const AgentScore& a : r.agents) {
        EXPECT_LE(a.gain.lo, a.gain.mean);
        EXPECT_LE(a.gain.mean, a.gain.hi);
        EXPECT_EQ(a.gain.lo > 0, a.probability > 0.95) << a.gain.lo << " " << a.probability;
        EXPECT_EQ(a.gain.hi < 0, a.probability < 0.05) << a.gain.hi << " " << a.probability;
        if (a.verdict == Outcome::kGained) {
          EXPECT_GT(a.gain.lo, 0);
        }
        if (a.verdict == Outcome::kLost) {
          EXPECT_LT(a.gain.hi, 0);
        }
      }
      EXPECT_EQ(r.gained + r.even + r.lost, static_cast<int>(r.agents.size()));
    }
}

// The independent model of an agent without another row is the mean of the rows outside the fold.
TEST_F(FitTest, ASingleRowIsNotSeenWhenItIsHeldOut) {
  write(table(6, 10, 0.5, 32) + "single,1,1,1,1000\n");
  FitOptions o = options();
  o.repeats = 1;
  const FitResult r = fit(o);
  const Frame frame = build_frame(o.frame);
  const std::size_t single = frame.agents.size() - 1;
  ASSERT_EQ(frame.agents[single], "single");
  int fold = 0;
  while (frame.begin(single, fold) == frame.begin(single, fold + 1)) ++fold;
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < single; ++i)
    for (std::size_t row = frame.begin(i, 0); row < frame.begin(i + 1, 0); ++row)
      if (row < frame.begin(i, fold) || row >= frame.begin(i, fold + 1))
        sum += frame.y(0, row), ++count;
  EXPECT_NEAR(r.agents[single].loss.independent, std::pow(1000 - sum / count, 2), 1e-6);
}

TEST_F(FitTest, SameNumbersOnAnyNumberOfThreads) {
  write(table(19, 12, 0.5, 3));
  const FitResult one = fit(options());
  FitOptions two = options();
  two.threads = 3;
  const FitResult many = fit(two);
  EXPECT_EQ(model_json(one.model), model_json(many.model));
  EXPECT_EQ(one.loss.chosen, many.loss.chosen);
  for (std::size_t i = 0; i < one.agents.size(); ++i)
    EXPECT_EQ(one.agents[i].probability, many.agents[i].probability);
}

TEST_F(FitTest, AModelSurvivesItsFile) {
  const FitResult r = fitted(table(5, 20, 0.5, 4));
  const std::string text = model_json(r.model);
  write(text);
  EXPECT_EQ(model_json(read_model(path)), text);
}

// Also what the file does not write twice: the other triangle of a covariance.
TEST_F(FitTest, AModelReadBackIsTheSameToTheBit) {
  bool other = false;  // both kinds of covariances are to be tried
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Model model = fitted(table(20, 30, 0.02, seed, 12)).model;
    const Model back = parse_model(model_json(model), "model");
    for (std::size_t i = 0; i < model.agents.size(); ++i) {
      other |= model.agents[i].kind != Kind::kPersonalised;
      const LinearModel &now = model.agents[i].channels[0], &later = back.agents[i].channels[0];
      EXPECT_EQ(now.x, later.x);
      EXPECT_EQ(now.cov, later.cov);
      EXPECT_EQ(now.s2, later.s2);
    }
    EXPECT_EQ(model.channels[0].centre.cov, back.channels[0].centre.cov);
  }
  EXPECT_TRUE(other);
}

TEST_F(FitTest, PredictsItsOwnRowsAndStrangers) {
  const std::string rows = table(8, 40, 0.5, 5);
  const FitResult r = fitted(rows);
  const Predictions p = predict(r.model, {path});
  EXPECT_EQ(p.rows, 320);
  EXPECT_EQ(p.scored, 320);
  EXPECT_NEAR(p.loss, 1, 0.25);
  EXPECT_EQ(p.unseen_rows, 0);
  write("agent,x0,x1,x2\na0,0,0,0\nnew,0,0,0\n");
  const Predictions strangers = predict(r.model, {path});
  EXPECT_EQ(strangers.unseen, std::vector<std::string>{"new"});
  EXPECT_EQ(strangers.scored, 0);
  // The stranger's interval is wider.
  write(strangers.csv);
  const DataTable table = read_table(path);
  const auto width = [&](std::size_t row) {
    return table.numbers("prediction_hi")[row] - table.numbers("prediction_lo")[row];
  };
  EXPECT_GT(width(1), width(0));
}

TEST_F(FitTest, ClassesOfText) {
  std::string text = "site,x,colour,y\n";
  for (int i = 0; i < 6; ++i)
    for (std::uint32_t r = 0; r < 60; ++r) {
      const double x = normal({.seed = 6, .replicate = 0, .step = r}, i, Purpose::kSample, 0);
      const char* colour = r % 3 == 0 ? "red" : r % 3 == 1 ? "green" : "blue";
      text += fmt::format("s{},{},{},{}\n", i, x, colour,
                          x > 0.5      ? "high"
                          : r % 3 == 0 ? "red"
                                       : "low");
    }
  const FitResult r = fitted(text);
  EXPECT_EQ(r.model.encoding.classes, (std::vector<std::string>{"high", "low", "red"}));
  EXPECT_EQ(r.model.encoding.names(),
            (std::vector<std::string>{"intercept", "x", "colour=green", "colour=red"}));
  EXPECT_GT(r.accuracy.chosen, 0.8);
  EXPECT_GT(predict(r.model, {path}).accuracy, 0.8);
}

TEST_F(FitTest, DegenerateTablesAreFittedAndSaidSo) {
  const auto says = [](const FitResult& r, const std::string& word) {
    return std::any_of(r.notes.begin(), r.notes.end(),
                       [&](const std::string& n) { return n.find(word) != std::string::npos; });
  };
  EXPECT_TRUE(says(fitted(table(1, 30, 0.5, 7)), "one agent"));
  EXPECT_TRUE(says(fitted(table(10, 20, 0, 8)), "tell the agents apart"));
  const FitResult few = fitted(table(10, 2, 0.5, 9, 12));
  EXPECT_TRUE(says(few, "fewer rows than coefficients"));
  EXPECT_TRUE(std::isfinite(few.loss.chosen));
  const FitResult single = fitted(table(10, 20, 0.5, 10) + "lonely,1,1,1,3\n");
  EXPECT_TRUE(says(single, "single row"));
  EXPECT_NE(single.agents.back().why.find("one row"), std::string::npos);
  EXPECT_TRUE(says(fitted(table(4, 1, 0.5, 11, 6)), "even together"));
}

// The model and the summary without what is said of the machine.
std::string letters(FitResult r) {
  r.seconds = 0, r.threads = r.ranks = 1;
  return model_json(r.model) + fit_summary_json(r);
}

std::string fitted_by(int ranks, const FitOptions& options) {
  std::string text;
  Ranks::run(ranks, [&](Processes& processes) {
    FitOptions mine = options;
    mine.processes = &processes;
    try {
      const FitResult r = fit(mine);
      if (processes.first()) text = letters(r);
    } catch (const BadInput& e) {
      if (processes.first()) text = e.what();
    }
  });
  return text;
}

TEST_F(FitTest, RanksAndThreadsDoNotMatter) {
  FitOptions regression = options();
  std::vector<std::pair<std::string, FitOptions>> cases;
  std::string noisy = table(45, 9, 0.4, 21);
  for (int r = 0; r < 120; ++r)  // an agent like no other, whose noise is ten times as large
    noisy += fmt::format("loud,{},{},{},{}\n", r % 7, r % 11, r % 5, (r * 37 % 101) * 10);
  cases.emplace_back(noisy, regression);

  std::string mixed = "site,colour,size,number,y,class\n";  // number: of the row, which is left out
  for (int r = 0; r < 400; ++r)
    mixed += fmt::format(
        "{},{},{},{},{},{}\n", r * 7 % 23, r % 31 == 0 ? "" : "rgb"[r % 3] + std::string(),
        r % 17 == 0 ? "NA" : fmt::to_string(r * 13 % 29), 3 * r - 50, r * 17 % 47 + 3 * (r % 3),
        r * 5 % 13 < 6 ? "no"
        : r % 2 == 0   ? "yes"
                       : "maybe");
  regression.frame.missing = Missing::kMean;
  regression.frame.exclude = {"class"};
  cases.emplace_back(mixed, regression);
  regression.frame.missing = Missing::kDrop;
  cases.emplace_back(mixed, regression);
  FitOptions classes = options();
  classes.frame.target = "class";
  classes.frame.missing = Missing::kMean;
  cases.emplace_back(mixed, classes);
  regression.frame.missing = Missing::kError;  // refused
  cases.emplace_back(mixed, regression);
  cases.emplace_back("agent,x,y\na,1,2\na,2,3\na,3,7\n", options());

  for (const auto& [text, o] : cases) {
    write(text);
    const std::string want = fitted_by(1, o);
    EXPECT_EQ(want.find("\"number\""), std::string::npos);
    for (int ranks : {2, 3, 8}) EXPECT_EQ(fitted_by(ranks, o), want) << ranks;
    FitOptions threads = o;
    threads.threads = 3;
    EXPECT_EQ(fitted_by(2, threads), want);
  }
}

TEST_F(FitTest, RanksShareOutcomesThatAreWeighed) {
  std::string text = "agent,x,a,b\n", weights = "agent,a,b\n";
  for (int i = 0; i < 20; ++i) {
    weights += fmt::format("a{},{},{}\n", i, i % 3, 1 + i % 4);
    for (int r = 0; r < 12; ++r)
      text += fmt::format("a{},{},{},{}\n", i, r * 7 % 5, r * i % 11, (r + i) * 3 % 7);
  }
  write(text);
  std::ofstream(folder + "/weights.csv") << weights;
  FitOptions o = options();
  o.frame.target = "";
  o.frame.channels = {"a", "b"};
  o.frame.weights = folder + "/weights.csv";
  const std::string want = fitted_by(1, o);
  EXPECT_NE(want.find("\"weights\""), std::string::npos) << want;
  for (int ranks : {2, 3}) EXPECT_EQ(fitted_by(ranks, o), want) << ranks;
}

// The error on a row left out, by leverage, is that of a fit without the row.
TEST_F(FitTest, LeverageLeavesARowOut) {
  write(table(6, 8, 0.7, 12));
  const Frame frame = build_frame(options().frame);
  const auto team = serial_team();
  const Moments all = frame.moments(0, -1, *team);
  const Decomposition model = decompose(all, {}, *team).best;
  const std::size_t row = frame.begin(2, 0) + 3, d = frame.d;
  std::vector<double> x(d);
  for (std::size_t j = 0; j < d; ++j) x[j] = frame.X[j * frame.rows + row];
  const double y = frame.Y[row];
  Moments without = all;
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) without.A[(2 * d + j) * d + k] -= x[j] * x[k];
    without.b[2 * d + j] -= x[j] * y;
  }
  without.yy[2] -= y * y, without.rows[2] -= 1;
  const Posterior full = agent_posterior(all, model, 2);
  const Posterior left = agent_posterior(
      without,
      decompose_known(without, model.variances, DecompositionOptions{}.centre_precision, *team), 2);
  double full_error = y, left_error = y, leverage = 0;
  for (std::size_t j = 0; j < d; ++j) {
    full_error -= full.x[j] * x[j];
    left_error -= left.x[j] * x[j];
    for (std::size_t k = 0; k < d; ++k)
      leverage += x[j] * full.smoother[j * d + k] * x[k] / model.variances.s2;
  }
  EXPECT_NEAR(full_error / (1 - leverage), left_error, 1e-9);
}

}  // namespace
}  // namespace affpcl
