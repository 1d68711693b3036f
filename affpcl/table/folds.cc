#include "affpcl/table/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>

#include "affpcl/random/streams.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/class_divergence.h"
#include "affpcl/table/cross_validation.h"
#include "affpcl/table/typical_covariance.h"

namespace affpcl {
namespace {

constexpr double kMostCovariances = 1e6;  // numbers kept
constexpr std::size_t kTypicalOf = 128;   // agents, about
constexpr double kPriorRows = 20;         // a coefficient
constexpr std::size_t kNewRows = 128;     // drawn, where a gap has no closed form
constexpr double kJitter = 1e-9;          // of the largest variance of a column

// The numbers of all agents' covariances are kept where they are not too many.
bool keeps_covariances(const Frame& frame) {
  return static_cast<double>(frame.agents.size() * frame.channels * frame.d * frame.d) <=
         kMostCovariances;
}

Kind largest(const ByKind<double>& weights) {
  return static_cast<Kind>(std::max_element(weights.begin(), weights.end()) - weights.begin());
}

// What a new row of an agent looks like: its own mean, and the covariance of its rows shrunk towards
// that within all agents. A model's coefficients are least sure where its own rows vary least, so its
// own covariance makes models seem closer than they are: by d/n of their distance. The covariance
// within all agents therefore counts like 20 d rows.
class NewRows {
 public:
  NewRows(const Frame& frame, Team& team) : frame_(frame), within_(frame.d, frame.d) {
    const std::size_t d = frame.d, n = frame.agents.size();
    if (!frame.within.empty()) {
      within_.all() = frame.within;
      return;
    }
    AgentSum sum("covariance of columns within agents", d * d + 1, n, team);
    const double* const total = sum([&](std::size_t i, double* out) {
      const Matrix rows = centred(i, mean_of(i));
      add_gram(1, rows, {out, d, d});
      out[d * d] += static_cast<double>(rows.cols()) - 1;
    });
    for (std::size_t j = 0; j < d * d; ++j)
      within_.all()[j] = total[d * d] > 0 ? total[j] / total[d * d] : j % (d + 1) == 0 && j > 0;
  }

  const std::vector<double>& within() const { return within_.all(); }

  // Fills in how far an agent's chosen model is from its independent one on a new row, and the mean
  // square of the chosen one's error along their difference, as the mixed model has it: the agent's
  // coefficients are those of the personalised model with its covariance.
  void compare(std::size_t agent, const AgentModel& model, const AgentModel& personalised,
               RowTally& tally) const {
    const std::size_t d = frame_.d;
    const Vector mean = mean_of(agent);
    const Matrix rows = centred(agent, mean);
    double far = 0, unsure = 0, vague = 0;
    // Of a weighted sum of outcomes; without weights there is one sum per channel.
    const auto add = [&](std::size_t from, std::size_t to, const std::vector<double>& weights) {
      Vector apart(d), off(d);
      for (std::size_t c = from; c < to; ++c)
        for (std::size_t j = 0; j < d; ++j) {
          const double x = model.channels[c].x[j], w = weights[c - from];
          apart[j] += w * (model.independent[c][j] - x);
          off[j] += w * (personalised.channels[c].x[j] - x);
        }
      const Vector S = second_moment_times(mean, rows, apart);
      const double distance = dot(apart, S), at_mean = dot(apart, mean) * dot(apart, mean);
      far += distance;
      // The mean of new rows is that of the agent's rows up to a share of their variance.
      const double move = (distance - at_mean) / static_cast<double>(rows.cols() + 1);
      vague += 4 * at_mean * move + 2 * move * move;
      unsure += dot(off, S) * dot(off, S);
      for (std::size_t c = from; c < to; ++c)
        unsure += weights[c - from] * weights[c - from] *
                  dot(S, multiply(MatrixView(personalised.channels[c].cov.data(), d, d), S));
    };
    if (!model.weights.empty()) add(0, model.channels.size(), model.weights);
    for (std::size_t c = 0; c < model.channels.size() && model.weights.empty(); ++c)
      add(c, c + 1, {1});
    tally.in_hand = far;
    tally.unsure = far > 0 ? unsure / far : 0;
    tally.vague = far > 0 ? std::sqrt(vague) / far : 0;
  }

  // The same of classes by least squares, in units of the log loss.
  void compare_classes(std::size_t agent, const AgentModel& model, const AgentModel& personalised,
                       RowTally& tally) const {
    const std::size_t d = frame_.d, channels = model.channels.size();
    const Matrix Z = draw(agent);
    std::vector<double> chosen(channels), independent(channels);
    Matrix along(channels, d);  // of the channels' coefficients: half a row's loss
    ModelGap& gap = tally.new_rows;
    gap = {};
    const double share = 1 / static_cast<double>(Z.cols());
    for (std::size_t r = 0; r < Z.cols(); ++r) {
      for (std::size_t c = 0; c < channels; ++c) {
        chosen[c] = independent[c] = 0;
        for (std::size_t j = 0; j < d; ++j) {
          chosen[c] += Z(j, r) * model.channels[c].x[j];
          independent[c] += Z(j, r) * model.independent[c][j];
        }
      }
      const std::size_t classes = frame_.encoding.classes.size();
      const Divergence apart = class_divergence(class_probabilities(chosen, classes),
                                                class_probabilities(independent, classes));
      gap.gap += share * apart.gap, gap.norm += share * apart.norm;
      for (std::size_t c = 0; c < channels; ++c) {
        const double slope = classes == 2 ? apart.slope[1] - apart.slope[0] : apart.slope[c];
        for (std::size_t j = 0; j < d; ++j) along(c, j) -= share * slope / 2 * Z(j, r);
      }
    }
    if (!(gap.norm > 0)) return;
    double off = 0, unsure = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const LinearModel& own = personalised.channels[c];
      for (std::size_t j = 0; j < d; ++j) off += along(c, j) * (own.x[j] - model.channels[c].x[j]);
      unsure += dot(along.row(c), multiply(MatrixView(own.cov.data(), d, d), along.row(c)));
    }
    tally.unsure = (off * off + unsure) / gap.norm;
  }

  // New rows, [d][kNewRows], normal and in pairs around their mean. The same normals for all agents,
  // so that no agent's name matters.
  Matrix draw(std::size_t agent) const {
    const std::size_t d = frame_.d;
    const Vector mean = mean_of(agent);
    const Matrix rows = centred(agent, mean);
    const auto n = static_cast<double>(rows.cols()), prior = kPriorRows * static_cast<double>(d);
    Matrix S(d, d);
    add_gram(1, rows, S);
    double largest = 0;
    for (std::size_t j = 0; j < d * d; ++j) {
      S.all()[j] = (1 + 1 / n) * (S.all()[j] + prior * within_.all()[j]) / (n - 1 + prior);
      if (j % (d + 1) == 0) largest = std::max(largest, S.all()[j]);
    }
    for (std::size_t j = 0; j < d; ++j) S(j, j) += kJitter * std::max(largest, 1.0);
    Matrix normals(d, kNewRows / 2);
    normals_of({}, 0, Purpose::kSample, normals.all());
    const Matrix upper = Cholesky(S).upper();
    const Matrix moved = multiply(transposed(upper), normals);
    Matrix Z(d, kNewRows);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t r = 0; r < kNewRows / 2; ++r) {
        const double far = j == 0 ? 0 : moved(j, r);  // the intercept's column is 1
        Z(j, 2 * r) = mean[j] + far, Z(j, 2 * r + 1) = mean[j] - far;
      }
    return Z;
  }

 private:
  Vector mean_of(std::size_t agent) const {
    const std::size_t from = frame_.begin(agent, 0), count = frame_.agent_rows(agent);
    Vector mean(frame_.d);
    for (std::size_t j = 0; j < frame_.d; ++j)
      for (std::size_t r = from; r < from + count; ++r)
        mean[j] += frame_.X[j * frame_.rows + r] / static_cast<double>(count);
    return mean;
  }
  Matrix centred(std::size_t agent, const Vector& mean) const {
    Matrix rows = frame_.block(frame_.begin(agent, 0), frame_.agent_rows(agent));
    for (std::size_t j = 0; j < frame_.d; ++j)
      for (double& v : rows.row(j)) v -= mean[j];
    return rows;
  }
  // E z z' times a vector, z a new row.
  Vector second_moment_times(const Vector& mean, const Matrix& rows, const Vector& v) const {
    const auto n = static_cast<double>(rows.cols()),
               prior = kPriorRows * static_cast<double>(frame_.d);
    const Vector own = multiply(rows, multiply(transposed(rows), v)), all = multiply(within_, v);
    const double along = dot(mean, v), unknown_mean = 1 + 1 / n;
    Vector out(frame_.d);
    for (std::size_t j = 0; j < frame_.d; ++j)
      out[j] = along * mean[j] + unknown_mean * (own[j] + prior * all[j]) / (n - 1 + prior);
    return out;
  }

  const Frame& frame_;
  Matrix within_;  // covariance of columns within agents
};

// Calls each(list, size) for every list of numbers of an agent's model.
template <class Each>
void each_list(const Frame& frame, AgentModel& agent, Each each) {
  const std::size_t d = frame.d, cov = keeps_covariances(frame) ? d * d : 0;
  const std::size_t near = cov > 0 ? 0 : std::min(d, kCovarianceDirections);
  agent.channels.resize(frame.channels), agent.independent.resize(frame.channels);
  for (std::size_t c = 0; c < frame.channels; ++c) {
    LinearModel& channel = agent.channels[c];
    each(channel.x, d), each(channel.se, d), each(agent.independent[c], d), each(channel.cov, cov);
    each(channel.near_cov.weights, near), each(channel.near_cov.directions, near * d);
  }
  each(agent.level_cov, frame.encoding.within.empty() ? 0 : d);
}

// Gathers the models of all agents to rank 0.
void gather_agents(const Frame& frame, Team& team, Model& model) {
  if (team.processes().count() == 1 || team.processes().apart()) return;
  std::vector<double> numbers;
  const Leaves own = own_agents(frame.agents.size(), team);
  for (std::int64_t i = own.first; i < own.last; ++i) {
    AgentModel& a = model.agents[static_cast<std::size_t>(i)];
    numbers.insert(numbers.end(), {static_cast<double>(a.rows), a.stacked[0], a.stacked[1],
                                   a.stacked[2], a.widened, static_cast<double>(a.level)});
    for (const LinearModel& c : a.channels)
      numbers.push_back(c.s2), numbers.push_back(c.near_cov.scale);
    each_list(frame, a, [&](const std::vector<double>& v, std::size_t) {
      numbers.insert(numbers.end(), v.begin(), v.end());
    });
  }
  std::size_t i = 0;
  gather(team.processes(), numbers, [&](std::span<const double> theirs) {
    const double* at = theirs.data();
    for (; at != theirs.data() + theirs.size(); ++i) {
      AgentModel& a = model.agents[i];
      a.rows = static_cast<std::size_t>(*at++);
      for (double& w : a.stacked) w = *at++;
      a.kind = largest(a.stacked);
      a.widened = *at++;
      a.level = static_cast<int>(*at++);
      a.channels.resize(frame.channels);
      for (LinearModel& c : a.channels) c.s2 = *at++, c.near_cov.scale = *at++;
      each_list(frame, a, [&](std::vector<double>& v, std::size_t size) {
        v.assign(at, at + size);
        at += size;
      });
    }
  });
}

// Gathers the tallies of all agents to rank 0.
void gather_tallies(Team& team, std::vector<RowTally>& tallies) {
  if (team.processes().apart()) return;
  constexpr std::size_t kNumbers = sizeof(RowTally) / sizeof(double);
  static_assert(std::is_trivially_copyable_v<RowTally> && sizeof(RowTally) % sizeof(double) == 0);
  const Leaves own = own_agents(tallies.size(), team);
  std::vector<double> numbers(static_cast<std::size_t>(own.count()) * kNumbers);
  if (own.count() > 0)
    std::memcpy(numbers.data(), tallies.data() + own.first, numbers.size() * sizeof(double));
  RowTally* to = tallies.data();
  gather(team.processes(), numbers, [&](std::span<const double> theirs) {
    if (!theirs.empty()) std::memcpy(static_cast<void*>(to), theirs.data(), theirs.size_bytes());
    to += theirs.size() / kNumbers;
  });
}

// Of every channel, from about kTypicalOf agents; empty where all covariances are kept.
std::vector<TypicalCovariance> typical_covariances(const Frame& frame, const FoldFit& fit,
                                                   const std::vector<ByKind<double>>& weights,
                                                   Team& team) {
  std::vector<TypicalCovariance> all;
  if (keeps_covariances(frame)) return all;
  const std::size_t n = frame.agents.size(), d = frame.d, dd = d * d;
  // A site does not know the places of its agents among all.
  const std::size_t step = team.processes().apart() ? 1 : std::max<std::size_t>(1, n / kTypicalOf);
  const std::size_t taken = (n + step - 1) / step;
  const auto first = static_cast<std::size_t>(own_agents(n, team).first);
  AgentSum sum("shared part of the covariances", (1 + frame.channels) * dd, n, team);
  const double* const totals = sum([&](std::size_t i, double* out) {
    add_gram(1 / static_cast<double>(frame.all_rows),
             frame.block(frame.begin(i, 0), frame.agent_rows(i)), {out, d, d});
    if (i % step != 0) return;
    AgentModel agent;
    fit.agent(i)->describe(weights[i - first], agent);
    for (std::size_t c = 0; c < frame.channels; ++c)
      for (std::size_t j = 0; j < dd; ++j)
        out[(1 + c) * dd + j] += agent.channels[c].cov[j] / static_cast<double>(taken);
  });
  for (std::size_t c = 0; c < frame.channels; ++c)
    all.emplace_back(MatrixView(totals + (1 + c) * dd, d, d), MatrixView(totals, d, d));
  return all;
}

// The combined model of every agent of this process, and how far it is from its independent one.
Model make_model(const Frame& frame, const FoldFit& fit, const std::vector<ByKind<double>>& weights,
                 const FitRun& run, std::vector<RowTally>& tallies) {
  Model model = begin_model(frame, run.seed);
  model.agents = begin_agents(frame);
  const NewRows new_rows(frame, run.team);
  const std::vector<TypicalCovariance> typical = typical_covariances(frame, fit, weights, run.team);
  const Leaves own = own_agents(frame.agents.size(), run.team);
  run.team.each(own, [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    AgentModel& agent = model.agents[i];
    agent.stacked = weights[static_cast<std::size_t>(at - own.first)];
    agent.kind = largest(agent.stacked);
    const std::unique_ptr<AgentFit> fitted = fit.agent(i);
    AgentModel personalised;
    fitted->describe(agent.stacked, agent);
    fitted->describe(vertex(Kind::kPersonalised), personalised);
    new_rows.compare(i, agent, personalised, tallies[i]);
    if (!frame.encoding.classes.empty() && !frame.encoding.generalised())
      new_rows.compare_classes(i, agent, personalised, tallies[i]);
    if (fit.samples())
      fitted->compare(agent.stacked, new_rows.draw(i), frame.begin(i, 0),
                      frame.begin(i, 0) + frame.agent_rows(i), tallies[i]);
    for (std::size_t c = 0; c < typical.size(); ++c) typical[c].reduce(agent.channels[c]);
  });
  fit.describe(model, run.team);
  model.within = new_rows.within();
  for (std::size_t c = 0; c < typical.size(); ++c)
    model.channels[c].typical_cov = typical[c].typical();
  gather_agents(frame, run.team, model);
  return model;
}

std::vector<std::string> notes_of(const Frame& frame, const FoldFit& fit, const Model& model) {
  const std::size_t n = frame.agents.size(), here = model.agents.size();
  if (n == 1 && !model.joined) return {"there is one agent, so nothing to share"};
  std::vector<std::string> notes = fit.notes();
  std::size_t few = 0, single = 0;
  for (const AgentModel& a : model.agents) few += a.rows < frame.d, single += a.rows == 1;
  if (few > 0)
    notes.push_back(
        fmt::format("{} of {} agents have fewer rows than coefficients ({}): they lean on the {}",
                    few, here, frame.d, model.joined ? "centre" : "others"));
  if (single > 0) notes.push_back(fmt::format("{} of {} agents have a single row", single, here));
  if (frame.all_rows < frame.d && !model.joined)
    notes.push_back(fmt::format("there are fewer rows ({}) than coefficients ({}), even together",
                                frame.all_rows, frame.d));
  return notes;
}

}  // namespace

LinearModel combined(const ByKind<LinearModel>& models, const ByKind<double>& weights) {
  LinearModel m;
  const std::size_t d = models[0].x.size();
  m.x.assign(d, 0.0), m.se.assign(d, 0.0), m.cov.assign(d * d, 0.0);
  for (std::size_t k = 0; k < models.size(); ++k) {
    for (std::size_t j = 0; j < d; ++j) m.x[j] += weights[k] * models[k].x[j];
    m.s2 += weights[k] * models[k].s2;
  }
  for (std::size_t k = 0; k < models.size(); ++k)
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t l = 0; l <= j; ++l)
        m.cov[j * d + l] += weights[k] * (models[k].cov[j * d + l] +
                                          (models[k].x[j] - m.x[j]) * (models[k].x[l] - m.x[l]));
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t l = 0; l < j; ++l) m.cov[l * d + j] = m.cov[j * d + l];
    m.se[j] = std::sqrt(std::max(0.0, m.cov[j * d + j]));
  }
  return m;
}

Fitted FoldedSolver::solve(Frame& frame, const FitRun& run) {
  Fitted fitted;
  fitted.tallies.resize(frame.agents.size());
  const std::unique_ptr<FoldFit> all = learn(frame, kAllRows, run.team);
  run.report(1.0 / (1 + run.repeats * frame.folds()));
  const std::vector<ByKind<double>> weights = cross_validate(frame, *this, *all, run, fitted);
  fitted.model = make_model(frame, *all, weights, run, fitted.tallies);
  if (run.team.processes().apart()) {  // a site has its own agents' models only
    const auto own = static_cast<std::size_t>(own_agents(frame.agents.size(), run.team).count());
    fitted.model.agents.resize(own);
    fitted.tallies.resize(own);
  }
  fitted.notes = notes_of(frame, *all, fitted.model);
  gather_tallies(run.team, fitted.tallies);
  return fitted;
}

}  // namespace affpcl
