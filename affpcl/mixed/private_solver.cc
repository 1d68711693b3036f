#include "affpcl/mixed/private_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/given_fit.h"
#include "affpcl/random/secret_bits.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/release.h"

namespace affpcl {
namespace {

using namespace mixed;

// Columns that are neither bounded nor left out.
void refuse_unbounded(const FrameOptions& o, const PrivacyTerms& terms) {
  const std::vector<std::string> files = data_files(o.paths),
                                 header = tables_header(files, o.beside, o.reading);
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : header) {
    const bool agent = o.agent.empty()
                           ? name == "agent" || (name == "site" && !has(header, "agent"))
                           : name == o.agent;
    const bool feature = (o.features.empty() || has(o.features, name)) && !has(o.exclude, name);
    if (name == o.target || agent || !feature || terms.find(name) != nullptr) continue;
    throw BadInput(
        fmt::format("{}: `bounds` lacks the column '{}': state what it is known to lie in, as "
                    "{}=0:1, or its levels, "
                    "or leave it out with `exclude {}`",
                    files[0], name, name, joined_names(std::span(&name, 1))));
  }
  for (const Bound& b : terms.bounds)
    if (has(o.exclude, b.column) ||
        (!o.features.empty() && b.column != o.target && !has(o.features, b.column)))
      throw BadInput(fmt::format("`bounds` has the column '{}', which is left out", b.column));
}

// Everything of the rows, but not whose they are.
void let_go_of_rows(Frame& frame) {
  frame.X = {}, frame.Y = {}, frame.places = {};
  frame.rows = 0;
  frame.starts.assign(frame.starts.size(), 0);
  frame.notes.clear();  // they count rows
}

// Covariance of the columns; that of agents' means is part of it.
std::vector<double> covariance_of(const Moments& m) {
  const std::size_t d = m.d;
  std::vector<double> cov(d * d);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < d; ++k)
      cov[j * d + k] = (m.A[j * d + k] - m.A[j] * m.A[k] / m.rows[0]) / m.rows[0];
  for (std::size_t j = 0; j < d; ++j) cov[j] = cov[j * d] = 0;
  return cov;
}

double trace_of(const Learnt& learnt) {
  double sum = 0;
  const std::size_t d = learnt.best().centre.size();
  for (std::size_t j = 0; j < d; ++j) sum += learnt.best().variances.D[j * (d + 1)];
  return sum;
}

// As the fit of the moments, with numbers of rows from the release.
class PrivateAgent final : public AgentFit {
 public:
  PrivateAgent(std::unique_ptr<AgentFit> fit, double rows) : fit_(std::move(fit)), rows_(rows) {}
  void predict(std::size_t from, std::size_t to, double* out) const override {
    fit_->predict(from, to, out);
  }
  void describe(const ByKind<double>& weights, AgentModel& agent) const override {
    fit_->describe(weights, agent);
    agent.rows = static_cast<std::size_t>(std::llround(rows_));
  }

 private:
  std::unique_ptr<AgentFit> fit_;
  double rows_;
};

class PrivateFit final : public FoldFit {
 public:
  PrivateFit(std::unique_ptr<FoldFit> fit, const PrivacyTerms& terms, const PrivateMoments& moments)
      : fit_(std::move(fit)), terms_(terms), moments_(moments) {}

  std::unique_ptr<AgentFit> agent(std::size_t agent) const override {
    return std::make_unique<PrivateAgent>(fit_->agent(agent),
                                          moments_.own().rows[moments_.own().at(agent)]);
  }
  std::unique_ptr<RowScorer> scorer() const override { return fit_->scorer(); }
  void describe(Model& model, Team& team) const override {
    fit_->describe(model, team);
    model.rows = model.centre_rows = static_cast<std::size_t>(std::llround(moments_.rows()));
    model.privacy = std::make_shared<const PrivacyTerms>(terms_);
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = fit_->notes();
    notes.push_back(
        fmt::format("learnt from one release of moments with noise: epsilon {:g}, delta {:g} for "
                    "every row; numbers "
                    "of rows have noise too, and scores, which would cost more, are left out",
                    terms_.epsilon, terms_.delta));
    return notes;
  }

 private:
  std::unique_ptr<FoldFit> fit_;
  const PrivacyTerms& terms_;
  const PrivateMoments& moments_;
};

}  // namespace

void refuse_beside_privacy(const FrameOptions& o) {
  if (o.family != "gaussian" && o.family != "auto")
    throw BadInput(
        fmt::format("`privacy` is for the gaussian family, whose moments are one release; `family "
                    "{}` would need one "
                    "in every step",
                    o.family));
  const std::pair<const char*, bool> refused[] = {{"channels", !o.channels.empty()},
                                                  {"row_weight", !o.row_weight.empty()},
                                                  {"trials", !o.trials.empty()},
                                                  {"offset", !o.offset.empty()},
                                                  {"common", !o.common.empty()},
                                                  {"within", !o.within.empty()},
                                                  {"crossed", !o.crossed.empty()},
                                                  {"time", !o.time.empty()},
                                                  {"folds", !o.folds.empty()},
                                                  {"test", !o.test.empty()},
                                                  {"categorical", !o.categorical.empty()},
                                                  {"numeric", !o.numeric.empty()},
                                                  {"task classify", o.task == Task::kClassify}};
  for (const auto& [name, given] : refused)
    if (given) throw BadInput(fmt::format("`{}` does not go with `privacy`", name));
  const auto indicator = [](const auto& rule) { return rule.second == Missing::kIndicator; };
  if (o.missing.rest == Missing::kIndicator ||
      std::any_of(o.missing.of.begin(), o.missing.of.end(), indicator))
    throw BadInput(
        "`missing indicator` does not go with `privacy`, whose columns are those that have bounds");
}

Frame PrivateSolver::read(const FrameOptions& given, Team& team) {
  Processes& processes = team.processes();
  if (processes.count() > 1 && !processes.apart())
    throw BadInput("`privacy` is for one process, or for the sites of a federation");
  FrameOptions o = given;
  refuse_beside_privacy(o);
  const InputScope once;
  refuse_unbounded(o, terms_);
  o.family = "gaussian";
  o.task = Task::kRegress;
  o.known = std::make_shared<const KnownColumns>(terms_.columns(o));
  o.features.clear(), o.exclude.clear();
  Frame frame = build_frame(o, *serial_team());  // nothing of it leaves this process
  frame.joined = false;
  SecretBits bits;
  const Release release = released_once(file_, job_, terms_, frame, bits);
  let_go_of_rows(frame);
  if (processes.apart()) {
    processes.set_purpose("number of agents");
    team.set_agents({0, std::ssize(frame.agents)});
    frame.agents.resize(sum(processes, frame.agents.size()));
    frame.starts.assign(frame.agents.size() * static_cast<std::size_t>(frame.folds()) + 1, 0);
  }
  const std::size_t agents = frame.agents.size();
  const auto first = static_cast<std::size_t>(own_agents(agents, team).first);
  moments_.emplace(release, terms_.noise(), first, agents, team);
  frame.within = covariance_of(moments_->together());
  frame.all_rows = static_cast<std::size_t>(std::llround(moments_->rows()));
  return frame;
}

std::unique_ptr<FoldFit> PrivateSolver::learn(const Frame& frame, int, Team& team) {
  DecompositionOptions o = options_.decomposition;
  o.plain = true;
  o.centre_precision = bounded_precision(frame.d);
  o.restricted = options_.estimate != EstimateChoice::kMl;
  choose_forms(options_.covariance, o);
  Learnt learnt = learn_agents(moments_->equivalent(0, team), o, team);
  const Variances near = learnt.best().variances;
  o.start = &near;
  learnt = learn_agents(moments_->equivalent(trace_of(learnt), team), o, team);
  MixedOptions options = options_;
  options.decomposition.centre_precision = o.centre_precision;
  std::unique_ptr<FoldFit> fit = given_fit(
      frame, options,
      {.own = moments_->own(), .together = moments_->together(), .learnt = std::move(learnt)});
  return std::make_unique<PrivateFit>(std::move(fit), terms_, *moments_);
}

}  // namespace affpcl
