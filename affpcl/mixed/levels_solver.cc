#include "affpcl/mixed/levels_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/mixed/levels_fit.h"
#include "affpcl/mixed/mixed.h"
#include "affpcl/mixed/ridge.h"

namespace affpcl {
namespace {

// Everything that one fold learnt.
struct LevelsLearnt {
  LevelsLearnt(const Frame& frame, int without, const LevelDecomposition* start, bool restricted,
               Team& team)
      : moments(frame.moments(0, without, team)),
        all(affpcl::pooled(moments, team)),
        pooled(fit_ridge(all, 0)),
        fit(frame, moments, without, start, restricted, team) {
    for (std::size_t g = 0; g < frame.levels.size(); ++g) effects.push_back(fit.level(g));
  }
  Moments moments, all;
  Ridge pooled;
  LevelFit fit;
  std::vector<LevelFit::Effect> effects;  // of the levels
};

// A model of standardised numbers, in units of the target.
LinearModel in_units(const Frame& frame, std::span<const double> x, std::span<const double> cov,
                     double times, double s2) {
  const double mean = frame.y_mean[0], sd = frame.y_sd[0], unit = sd * sd;
  const std::size_t d = x.size();
  LinearModel m;
  for (double v : x) m.x.push_back(sd * v);
  m.x[0] += mean;
  for (std::size_t j = 0; j < d && !cov.empty(); ++j) {
    m.se.push_back(std::sqrt(std::max(0.0, cov[j * d + j] * times * unit)));
    for (std::size_t k = 0; k < d; ++k)  // symmetric to the bit, as a file holds it
      m.cov.push_back(unit * times * cov[std::max(j, k) * d + std::min(j, k)]);
  }
  m.s2 = s2 * unit;
  return m;
}

class LevelAgent final : public AgentFit {
 public:
  LevelAgent(const Frame& frame, const LevelsLearnt& learnt, std::size_t agent)
      : frame_(frame),
        learnt_(learnt),
        agent_(agent),
        own_(learnt.fit.agent(agent)),
        independent_(fit_ridge(learnt.moments, agent)) {
    // Without a row of its own an agent has the mean of the others' targets.
    if (learnt.moments.rows[learnt.moments.at(agent)] == 0)
      independent_.x[0] = learnt.all.b[0] / learnt.all.rows[0];
  }

  void predict(std::size_t from, std::size_t to, double* out) const override {
    for (std::size_t row = from; row < to; ++row) {
      const std::int32_t g = frame_.level[row];  // -1: a test row's, which no other row has
      *out++ =
          predicted(own_.x, row, g < 0 ? 0 : learnt_.effects[static_cast<std::size_t>(g)].value);
      *out++ = predicted(independent_.x, row, 0);
      *out++ = predicted(learnt_.pooled.x, row, 0);
    }
  }

  // The effects of levels belong to the personalised model, which is always chosen.
  void describe(const ByKind<double>&, AgentModel& agent) const override {
    const Ridge& alone = independent_;
    agent.independent.push_back(in_units(frame_, alone.x, {}, 1, 0).x);
    agent.channels.push_back(
        in_units(frame_, own_.x, own_.cov.all(), 1, learnt_.fit.best().variances.s2));
    if (frame_.encoding.within.empty()) return;
    agent.level = static_cast<int>(learnt_.fit.level_of(agent_));
    agent.level_cov = learnt_.fit.level_cov(agent_);
    for (double& v : agent.level_cov) v *= frame_.y_sd[0] * frame_.y_sd[0];
  }

 private:
  double predicted(std::span<const double> x, std::size_t row, double effect) const {
    double sum = effect;
    for (std::size_t j = 0; j < frame_.d; ++j) sum += frame_.X[j * frame_.rows + row] * x[j];
    const double offset = frame_.subtracted.empty() ? 0 : frame_.subtracted[row];
    return offset + frame_.y_mean[0] + frame_.y_sd[0] * sum;
  }

  const Frame& frame_;
  const LevelsLearnt& learnt_;
  std::size_t agent_;
  LevelFit::Agent own_;
  Ridge independent_;
};

class LevelFoldFit final : public FoldFit {
 public:
  LevelFoldFit(const Frame& frame, std::unique_ptr<LevelsLearnt> learnt)
      : frame_(frame), learnt_(std::move(learnt)) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<LevelAgent>(frame_, *learnt_, agent);
  }
  std::unique_ptr<RowScorer> scorer() const override { return channel_scorer(frame_); }

  void describe(Model& model, Team&) const override {
    const LevelFit& fit = learnt_->fit;
    const LevelDecomposition& best = fit.best();
    const std::size_t d = frame_.d;
    const double sd = frame_.y_sd[0];
    ChannelModel channel;
    channel.pooled = in_units(frame_, learnt_->pooled.x, {}, 1, 0).x;
    channel.covariance = best.covariance;
    channel.converged = best.converged;
    channel.singular = singular();
    for (const LevelDecomposition& t : fit.tried())
      channel.tried.push_back({to_text(t.covariance), t.log_evidence, t.bic});
    Matrix unseen = fit.centre_cov();
    channel.D.assign(d * d, 0.0);
    for (std::size_t k = 0; k < fit.random().size(); ++k) {
      const std::size_t j = fit.random()[k];
      unseen(j, j) += best.variances.D[k];
      channel.D[j * d + j] = sd * sd * best.variances.D[k];
    }
    channel.centre = in_units(frame_, fit.centre(), unseen.all(), 1, best.variances.s2);
    for (std::size_t j = 0; j < d; ++j)  // of the centre itself
      channel.centre.se[j] = sd * std::sqrt(std::max(0.0, fit.centre_cov()(j, j)));
    model.channels.push_back(std::move(channel));
    model.log_likelihood =  // in units of the target
        fit.log_likelihood() -
        (fit.rows() - (fit.restricted() ? static_cast<double>(d) : 0)) * std::log(sd);
    model.restricted = fit.restricted();
    model.parameters = d + static_cast<std::size_t>(best.numbers) + 1;
    model.levels.variance = sd * sd * best.variances.tau2;
    model.levels.names = frame_.levels;
    for (const LevelFit::Effect& effect : learnt_->effects) {
      model.levels.effect.push_back(sd * effect.value);
      model.levels.se.push_back(sd * std::sqrt(std::max(0.0, effect.variance)));
    }
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    const LevelVariances& v = learnt_->fit.best().variances;
    const std::string& column = frame_.encoding.level_column();
    if (std::all_of(v.D.begin(), v.D.end(), [](double D) { return D == 0; }))
      notes.push_back("the rows do not tell the agents apart: all have the same model");
    else if (singular())
      notes.push_back("the model is singular: a variance of random effects is 0");
    if (v.tau2 == 0)
      notes.push_back(fmt::format("the levels of '{}' have no effect of their own", column));
    if (!learnt_->fit.best().converged)
      notes.push_back("the variances were still moving when the search for them ended");
    return notes;
  }

 private:
  bool singular() const {
    const LevelVariances& v = learnt_->fit.best().variances;
    return v.tau2 == 0 || std::any_of(v.D.begin(), v.D.end(), [](double D) { return D == 0; });
  }

  const Frame& frame_;
  std::unique_ptr<LevelsLearnt> learnt_;
};

void refuse_crossed(const Frame& frame, Team& team) {
  const std::string& column = frame.encoding.crossed;
  if (column.empty()) return;
  if (const std::size_t size = LevelFit::system_size(frame); size > kMostCrossedLevels)
    throw BadInput(
        fmt::format("`crossed {}` needs a dense system of {} levels, and {} is the most; where all "
                    "columns are `common`, the factor with fewer levels counts",
                    column, size, kMostCrossedLevels));
  if (team.processes().count() > 1)
    throw BadInput(
        fmt::format("`crossed {}` runs in one process: its levels share one dense system", column));
}

}  // namespace

std::unique_ptr<FoldFit> LevelSolver::learn(const Frame& frame, int without, Team& team) {
  refuse_crossed(frame, team);
  auto learnt = std::make_unique<LevelsLearnt>(
      frame, without, without == kAllRows ? nullptr : &*found_, restricted_, team);
  if (without == kAllRows) found_ = learnt->fit.best();
  return std::make_unique<LevelFoldFit>(frame, std::move(learnt));
}

}  // namespace affpcl
