#include "affpcl/stream/td.h"

#include <fmt/format.h>

#include <cmath>

#include "affpcl/data/file_test.h"
#include "affpcl/fit/fit.h"
#include "affpcl/fit/predict.h"
#include "affpcl/output/model_file.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

class FitTdTest : public FileTest {
 protected:
  FitResult fitted(double gamma) const {
    FitOptions o;
    o.td = TdLog::Config{.file = path, .gamma = gamma};
    return fit(o);
  }
  const std::string other = path + "_model";
};

// Two states that take turns, reward 1 in the first: V(a) = 1 / (1 - g^2), V(b) = g V(a). Agent i
// has i times as many rows, the last ones being absent at the end.
TEST_F(FitTdTest, TurnsHaveAClosedForm) {
  std::string text = "agent,state,next_state,reward\n";
  for (int i = 1; i <= 3; ++i)
    for (int r = 0; r < 1000 * i; ++r)
      text += r % 2 == 0 ? fmt::format("r{},a,b,1\n", i) : fmt::format("r{},b,a,0\n", i);
  write(text);
  const FitResult r = fitted(0.5);
  const double Va = 1 / (1 - 0.25), Vb = 0.5 * Va;
  for (const AgentModel& a : r.model.agents) {
    EXPECT_NEAR(a.channels[0].x[0], Va, 0.02) << a.name;
    EXPECT_NEAR(a.channels[0].x[0] + a.channels[0].x[1], Vb, 0.02) << a.name;
  }
  EXPECT_EQ(r.model.agents[2].rows, 3000u);
  EXPECT_TRUE(r.complete);

  // The model is a file, and predicts values of states, an unknown agent's by the centre.
  std::ofstream(other) << model_json(r.model);
  const Model back = read_model(other);
  EXPECT_STREQ(back.encoding.task(), "td");
  write("agent,state\nr1,b\nnew,a\n");
  const Predictions p = predict(back, {path});
  EXPECT_EQ(p.unseen_rows, 1);
  const std::vector<double>& x = back.agents[0].channels[0].x;
  EXPECT_NE(p.csv.find(fmt::format("r1,b,{},,\n", x[0] + x[1])), std::string::npos) << p.csv;
}

TEST_F(FitTdTest, RefusesASingleState) {
  write("agent,state,next_state,reward\na,s,s,1\na,s,s,2\n");
  refused([&] { fitted(0.5); }, "holds a single state");
}

}  // namespace
}  // namespace affpcl
