#include "affpcl/mixed/joined.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/mixed/posterior.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

constexpr double kPrecision = 0.01;

// The first `n` agents of these moments.
Moments first_agents(const Moments& m, std::size_t n) {
  Moments out(n, m.d);
  std::copy_n(m.A.begin(), out.A.size(), out.A.begin());
  std::copy_n(m.b.begin(), out.b.size(), out.b.begin());
  std::copy_n(m.yy.begin(), n, out.yy.begin());
  std::copy_n(m.rows.begin(), n, out.rows.begin());
  return out;
}
Moments last_agent(const Moments& m) {
  Moments out(1, m.d);
  std::copy_n(m.A.end() - static_cast<std::ptrdiff_t>(m.d * m.d), m.d * m.d, out.A.begin());
  std::copy_n(m.b.end() - static_cast<std::ptrdiff_t>(m.d), m.d, out.b.begin());
  out.yy[0] = m.yy.back(), out.rows[0] = m.rows.back();
  return out;
}

// As a file has it: in units of a target that was shifted by `mean` and divided by `sd`.
CentreForm published(const Decomposition& model, double mean, double sd) {
  CentreForm form;
  form.x = model.centre;
  for (double& v : form.x) v *= sd;
  form.x[0] += mean;
  form.cov = model.centre_cov;
  form.D = model.variances.D;
  for (std::vector<double>* list : {&form.cov, &form.D})
    for (double& v : *list) v *= sd * sd;
  form.D_cov.assign(form.D.size(), 0.0);
  form.s2 = sd * sd * model.variances.s2;
  return form;
}

// The posterior of an agent that joins is that of a fit of all agents with the same variances.
TEST(Joined, IsTheFitOfAllAgentsAtTheSameVariances) {
  const auto team = serial_team();
  for (const std::size_t agents : {3, 12}) {
    const Frame frame = TableWorld{.agents = agents}.frame();
    const Moments all = frame.moments(0, kAllRows, *team), others = first_agents(all, agents - 1);
    Variances variances;
    variances.D.assign(all.d * all.d, 0.0);
    for (std::size_t j = 0; j < all.d; ++j)
      variances.D[j * (all.d + 1)] = 0.2 + 0.1 * static_cast<double>(j);
    variances.s2 = 0.3;
    const Decomposition together = decompose_known(all, variances, kPrecision, *team);
    Decomposition before = decompose_known(others, variances, kPrecision, *team);
    ChannelModel centre;
    centre.forms = {published(before, 7, 3)};
    const Moments own = last_agent(all);
    const Posterior joined = averaged_posterior(own, joined_learnt(centre, 7, 3, own), 0);
    Decomposition known = together;
    known.variance_cov.assign(all.d * all.d, 0.0);
    const Posterior expected = agent_posterior(all, known, agents - 1);
    for (std::size_t j = 0; j < all.d; ++j) EXPECT_NEAR(joined.x[j], expected.x[j], 1e-9);
    for (std::size_t j = 0; j < joined.cov.size(); ++j)
      EXPECT_NEAR(joined.cov[j], expected.cov[j], 1e-9);
    EXPECT_GT(std::abs(joined.x[1] - before.centre[1]), 1e-3);  // its rows have a say
  }
}

// An agent without rows has the centre's model, moved towards the pooled one.
TEST(Joined, WithoutRowsIsTheCentresModel) {
  ChannelModel centre;
  centre.centre.x = {5, 1, 2}, centre.pooled = {6, 2, 0}, centre.pooled_weight = 0.25;
  const std::vector<double> x = joined_unseen(centre, 5, 2);
  EXPECT_DOUBLE_EQ(x[0], 0.125);
  EXPECT_DOUBLE_EQ(x[1], 0.625);
  EXPECT_DOUBLE_EQ(x[2], 0.75);
}

// With equal rows an agent learns its own noise where the centre's law leaves it open, and not where
// all have the same.
TEST(Joined, TheNoiseLawIsTheCentres) {
  const auto team = serial_team();
  const Frame frame = TableWorld{.agents = 4}.frame();
  Moments all = frame.moments(0, kAllRows, *team);
  Decomposition model = decompose_known(all, {std::vector<double>(all.d * all.d, 0.0), 0.01},
                                        kPrecision, *team);  // far too small
  ChannelModel centre;
  centre.forms = {published(model, 0, 1)};
  const Moments own = last_agent(all);
  EXPECT_DOUBLE_EQ(averaged_posterior(own, joined_learnt(centre, 0, 1, own), 0).s2, 0.01);
  centre.usual.assign(LawGrid::kNoises, 1.0 / LawGrid::kNoises);
  centre.outlying.assign(LawGrid::kNoises, 0.0);
  EXPECT_GT(averaged_posterior(own, joined_learnt(centre, 0, 1, own), 0).s2, 0.02);
  EXPECT_GT(joined_agents(centre, 0, 1, own, *team).noise[0], 2);
}

}  // namespace
}  // namespace affpcl
