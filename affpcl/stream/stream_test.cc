#include "affpcl/stream/stream.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>

#include "affpcl/data/file_test.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"
#include "affpcl/output/model_file.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

double draw(int agent, int row, int j, std::uint64_t seed = 1) {
  return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(row)}, agent,
                Purpose::kSample, static_cast<std::uint32_t>(j));
}

class StreamTest : public FileTest {
 protected:
  FitOptions options() const {
    FitOptions o{.frame = {.paths = {path}, .target = "y", .agent = ""}, .threads = 1};
    o.solver = SolverKind::kStream;
    return o;
  }
  // y = x0 + slope_i x1 + noise; agent i has 100 (i + 1) rows.
  void write_table(double spread, double noise) const {
    std::string text = "agent,time,x0,x1,y\n";
    for (int i = 0; i < 5; ++i)
      for (int r = 0; r < 100 * (i + 1); ++r) {
        const double u = draw(i, r, 0), v = 3 * draw(i, r, 1) + u;
        text += fmt::format("a{},{},{},{},{}\n", i, -r, u, v,
                            u + (1 + spread * (i - 2)) * v + noise * draw(i, r, 2));
      }
    write(text);
  }
  const std::string weights = path + "_weights";
};

TEST_F(StreamTest, WithoutNoiseEveryAgentFindsItsOwnLine) {
  write_table(0.3, 0);
  FitOptions o = options();
  o.frame.exclude = {"time"};
  const FitResult r = fit(o);
  EXPECT_TRUE(r.complete);
  const Source& v = r.model.encoding.sources[1];
  for (std::size_t i = 0; i < 5; ++i) {
    const double slope = 1 + 0.3 * (static_cast<double>(i) - 2);
    EXPECT_NEAR(r.model.agents[i].channels[0].x[2] / v.sd[0], slope, 0.05) << i;
  }
  EXPECT_LT(r.loss.chosen, 0.5 * r.loss.pooled);
}

// One agent, rows (x, y) = (1, 10), (-1, 20): in the stream's coordinates phi = (1, 1), (1, -1) and
// y = -1, 1, so R^2 = 2 and alpha_0 = 2 / (4 R^2 + 1). The first prediction is 0; the second is
// phi_2'x = -alpha_0 phi_2'phi_1 = 0 as well, for the rows are orthogonal. Both miss by one
// unit, 5.
TEST_F(StreamTest, PredictsBeforeItLearns) {
  write("agent,x,y\na,1,10\na,-1,20\n");
  const FitResult r = fit(options());
  EXPECT_NEAR(r.agents[0].loss.independent, 25, 1e-9);
  const double alpha0 = 2 / (4 * 2 + 1.0), alpha1 = 2 / (4 * 2 + 2.0);
  const std::vector<double>& x = r.model.agents[0].independent[0];
  EXPECT_NEAR(x[0], 15 + 5 * (-alpha0 + alpha1), 1e-9);
  EXPECT_NEAR(x[1], 5 * (-alpha0 - alpha1), 1e-9);
}

TEST_F(StreamTest, AgentsWithoutAClueOfTheirOwnAreGivenWhatIsBetter) {
  write_table(0, 1);
  FitOptions o = options();
  o.frame.exclude = {"time"};
  o.stream.method = "affpcl";  // without channels it is learning alone
  const FitResult r = fit(o);
  EXPECT_NEAR(r.loss.personalised, r.loss.independent, 1e-9);
  EXPECT_LE(r.loss.chosen, r.loss.independent);
  bool said = false;
  for (const std::string& note : r.notes)
    said |= note.find("AffPCL is learning alone") != std::string::npos;
  EXPECT_TRUE(said);
}

// The first prediction is the mean, 4.5; the table's first row has y = 0, whatever folds would be.
TEST_F(StreamTest, TakesRowsAsTheyCame) {
  std::string text = "agent,x,y\n";
  for (int r = 0; r < 10; ++r) text += fmt::format("a,{},{}\n", draw(0, r, 0), r);
  write(text);
  for (std::uint64_t seed : {1, 2, 3}) {
    FitOptions o = options();
    o.frame.seed = seed;
    std::atomic<bool> stop = false;
    o.stop = &stop;
    o.progress = [&](double) { stop = true; };
    EXPECT_NEAR(fit(o).agents[0].loss.independent, 4.5 * 4.5, 1e-9);
  }
}

TEST_F(StreamTest, TimeOrdersTheRows) {
  write_table(0.3, 0.5);
  FitOptions o = options();
  o.frame.time = "time";
  const FitResult backwards = fit(o);
  EXPECT_EQ(backwards.model.encoding.sources.size(), 2u);
  o.frame.time.clear();
  o.frame.exclude = {"time"};
  EXPECT_NE(fit(o).loss.independent, backwards.loss.independent);
}

TEST_F(StreamTest, BitsDoNotDependOnThreads) {
  write_table(0.3, 0.5);
  FitOptions o = options();
  const FitResult one = fit(o);
  o.threads = 2;
  const FitResult two = fit(o);
  EXPECT_EQ(one.loss.chosen, two.loss.chosen);
  EXPECT_EQ(model_json(one.model), model_json(two.model));
}

TEST_F(StreamTest, StopsWhenTold) {
  write_table(0.3, 0.5);
  FitOptions o = options();
  std::atomic<bool> stop = false;
  o.stop = &stop;
  int calls = 0;
  o.progress = [&](double) { stop = ++calls == 7; };
  const FitResult r = fit(o);
  EXPECT_EQ(calls, 7);
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(r.scored);
  EXPECT_NE(r.notes.back().find("stopped after 7"), std::string::npos);
}

TEST_F(StreamTest, ModelsAreWrittenReadAndUsed) {
  write_table(0.3, 0.5);
  const FitResult r = fit(options());
  const std::string file = path + "_model";
  std::ofstream(file) << model_json(r.model);
  const Model back = read_model(file);
  EXPECT_EQ(model_json(back), model_json(r.model));
  EXPECT_EQ(back.method, "residual");
  const Predictions p = predict(back, {path});
  EXPECT_EQ(p.rows, 1500);
  EXPECT_GT(p.r2, 0.9);
}

// Outcomes that agents weigh: both solvers predict the weighted sum, and its channels explain it.
TEST_F(StreamTest, OutcomesAreWeighed) {
  std::string text = "agent,x0,x1,c1,c2\n", prefs = "agent,c1,c2\n";
  for (int i = 0; i < 4; ++i) {
    prefs += fmt::format("a{},{},{}\n", i, i / 3.0, 1 - i / 3.0);
    for (int r = 0; r < 60 * (i + 1); ++r)
      text += fmt::format("a{},{},{},{},{}\n", i, draw(i, r, 0), draw(i, r, 1),
                          2 * draw(i, r, 0) + 0.3 * draw(i, r, 2),
                          5 - draw(i, r, 1) + 0.3 * draw(i, r, 2));  // the noise is shared
  }
  write(text);
  std::ofstream(weights) << prefs;
  FitOptions o = options();
  o.frame.target.clear();
  o.frame.channels = {"c1", "c2"};
  o.frame.weights = weights;
  const FitResult stream = fit(o);
  EXPECT_EQ(stream.model.method, "affpcl");
  EXPECT_EQ(stream.model.channels.size(), 1u);
  o.solver = SolverKind::kExact;
  const FitResult exact = fit(o);
  EXPECT_EQ(exact.model.channels.size(), 2u);
  EXPECT_NEAR(exact.model.noise[1], 1, 0.02);
  for (const FitResult* r : {&stream, &exact}) {
    const Predictions p = predict(r->model, {path});
    EXPECT_GT(p.r2, 0.8);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(r->model.agents[i].weights[0], static_cast<double>(i) / 3, 1e-15);
  }
  // Noise that is the same in both outcomes does not average out: .3^2 for every weighing.
  EXPECT_NEAR(exact.loss.chosen, 0.09, 0.012);
}

TEST_F(StreamTest, OutcomesNeedWeightsOfAllAgents) {
  write("agent,x,c1,c2\na,1,2,3\na,2,2,1\nb,1,0,1\nb,3,2,1\n");
  FitOptions o = options();
  o.frame.target.clear();
  o.frame.channels = {"c1", "c2"};
  EXPECT_THROW(fit(o), BadInput);
  std::ofstream(weights) << "agent,c1,c2\na,1,1\n";
  o.frame.weights = weights;
  refused([&] { fit(o); }, "has no weights for agent 'b'");
  std::ofstream(weights) << "agent,c1,c2\na,1,1\na,1,1\n";
  try {
    fit(o);
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("has weights already"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace affpcl
