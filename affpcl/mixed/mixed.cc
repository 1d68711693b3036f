#include "affpcl/mixed/mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <type_traits>

#include "affpcl/base/error.h"
#include "affpcl/mixed/noise.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/score.h"

namespace affpcl {
namespace {

constexpr double kMostCovariances = 1e6;  // numbers kept

// Everything learnt from the rows outside one fold (or from all, -1).
struct Part {
  int without = -1;
  std::vector<Moments> moments;  // by channel
  std::vector<Learnt> learnt;
  std::vector<Ridge> pooled;
  // Variance of the noise of agent i.
  double s2(std::size_t c, std::size_t i) const {
    return learnt[c].chosen.best.variances.s2 * learnt[c].noise[i];
  }
};

Part learn(const Frame& frame, int without, const std::vector<Variances>& start, Team& team) {
  Part part;
  part.without = without;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    part.moments.push_back(frame.moments(c, without, team));
    DecompositionOptions o;
    if (!start.empty()) o.start = &start[c], o.evidence_tolerance = 1e-3;
    part.learnt.push_back(decompose_with_noise(part.moments[c], o, team));
    part.pooled.push_back(fit_ridge(pooled(part.moments[c], team), 0));
  }
  return part;
}

struct AgentFit {
  Kind kind = Kind::kPersonalised;
  std::vector<Posterior> own;  // by channel
  std::vector<Ridge> alone;
};

// A linear smoother's errors on its own rows as if each had been left out: residual / (1 -
// leverage).
Vector left_out(const Matrix& X, std::span<const double> y, const std::vector<double>& x,
                const std::vector<double>& influence, double scale) {
  Vector r(y.begin(), y.end()), leverage(y.size());
  add_product(-1, transposed(X), x, r);
  column_dots(multiply({influence.data(), X.rows(), X.rows()}, X), X, leverage);
  for (std::size_t k = 0; k < r.size(); ++k) r[k] /= 1 - std::min(leverage[k] * scale, 1 - 1e-6);
  return r;
}

// Squared errors of rows, summed over classes; of outcomes that are weighed, the square of the sum.
class Squares {
 public:
  Squares(std::size_t rows, bool weighs) : sum_(rows), weighs_(weighs) {}
  void add(double unit, const Vector& errors) {
    for (std::size_t k = 0; k < sum_.size(); ++k) {
      const double e = unit * errors[k];
      sum_[k] += weighs_ ? e : e * e;
    }
  }
  double total(std::size_t k) const { return weighs_ ? sum_[k] * sum_[k] : sum_[k]; }

 private:
  Vector sum_;
  bool weighs_;
};

// Which model the agent's own training rows speak for. The personalised one, unless another is
// clearly better on rows left out one by one.
AgentFit fit_agent(const Frame& frame, const Part& part, std::size_t i) {
  AgentFit agent;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    agent.own.push_back(agent_posterior(part.learnt[c].moments, part.learnt[c].chosen.best, i));
    agent.alone.push_back(fit_ridge(part.moments[c], i));
  }
  Paired than_alone, than_pooled;  // how much larger the personalised model's errors are
  const bool weighs = !frame.theta.empty();
  for (int f = 0; f < kFolds; ++f) {
    const std::size_t from = frame.begin(i, f), to = frame.begin(i, f + 1);
    if (f == part.without || from == to) continue;
    constexpr std::size_t kRows = 512;
    for (std::size_t at = from; at < to; at += kRows) {
      const std::size_t count = std::min(kRows, to - at);
      const Matrix X = frame.block(at, count);
      Squares own(count, weighs), alone(count, weighs), all(count, weighs);
      for (std::size_t c = 0; c < frame.channels; ++c) {
        const std::span y(frame.Y.data() + c * frame.rows + at, count);
        const double unit = frame.y_sd[c] * (weighs ? frame.theta[i * frame.channels + c] : 1);
        own.add(unit, left_out(X, y, agent.own[c].x, agent.own[c].smoother, 1 / part.s2(c, i)));
        alone.add(unit, left_out(X, y, agent.alone[c].x, agent.alone[c].inverse, 1));
        all.add(unit, left_out(X, y, part.pooled[c].x, part.pooled[c].inverse, 1));
      }
      for (std::size_t k = 0; k < count; ++k) {
        than_alone.add(own.total(k) - alone.total(k));
        than_pooled.add(own.total(k) - all.total(k));
      }
    }
  }
  agent.kind = supported(than_alone, than_pooled);
  return agent;
}

void score_rows(const Frame& frame, const Part& part, const AgentFit& agent, std::size_t i,
                RowTally& tally) {
  std::vector<double> own(frame.channels), alone(frame.channels), all(frame.channels);
  for (std::size_t r = frame.begin(i, part.without); r < frame.begin(i, part.without + 1); ++r) {
    for (std::size_t c = 0; c < frame.channels; ++c) {
      const auto predict = [&](const std::vector<double>& x) {
        double sum = 0;
        for (std::size_t j = 0; j < frame.d; ++j) sum += frame.X[j * frame.rows + r] * x[j];
        return frame.y_mean[c] + frame.y_sd[c] * sum;
      };
      own[c] = predict(agent.own[c].x);
      alone[c] = predict(agent.alone[c].x);
      all[c] = predict(part.pooled[c].x);
    }
    tally.add(
        {row_loss(frame, i, r, own), row_loss(frame, i, r, alone), row_loss(frame, i, r, all)},
        agent.kind, frame.wanted(i, r));
  }
}

std::vector<double> in_units(std::vector<double> x, const Frame& frame, std::size_t c) {
  for (double& v : x) v *= frame.y_sd[c];
  x[0] += frame.y_mean[c];
  return x;
}

LinearModel in_units(const std::vector<double>& x, const std::vector<double>& cov, double times,
                     double s2, const Frame& frame, std::size_t c, bool keep_cov) {
  const double unit = frame.y_sd[c] * frame.y_sd[c];
  LinearModel m;
  m.x = in_units(x, frame, c);
  for (std::size_t j = 0; j < frame.d; ++j)
    m.se.push_back(std::sqrt(std::max(0.0, cov[j * frame.d + j] * times * unit)));
  if (keep_cov) {
    m.cov = cov;
    for (double& v : m.cov) v *= times * unit;
    for (std::size_t r = 0; r < frame.d; ++r)  // to the bit, as a file holds it
      for (std::size_t k = 0; k < r; ++k) m.cov[k * frame.d + r] = m.cov[r * frame.d + k];
  }
  m.s2 = s2 * unit;
  return m;
}

// How the errors of the outcomes go together, over all rows.
std::vector<double> noise_correlations(const Frame& frame, const Model& model, Team& team) {
  const std::size_t k = frame.channels;
  AgentSum sum(k * k, frame.agents.size(), team);
  const double* const S = sum([&](std::size_t i, double* out) {
    const std::size_t from = frame.begin(i, 0), count = frame.agent_rows(i);
    const Matrix X = frame.block(from, count);
    Matrix errors(k, count);
    for (std::size_t c = 0; c < k; ++c) {
      for (std::size_t r = 0; r < count; ++r) errors(c, r) = frame.y(c, from + r);
      add_product(-1, transposed(X), model.agents[i].channels[c].x, errors.row(c));
    }
    const Matrix squares = multiply(errors, transposed(errors));
    for (std::size_t j = 0; j < k * k; ++j) out[j] += squares.all()[j];
  });
  Vector scale;
  for (std::size_t c = 0; c < k; ++c)
    scale.push_back(1 / std::sqrt(std::max(S[c * k + c], 1e-300)));
  std::vector<double> R(k * k);
  for (std::size_t a = 0; a < k; ++a)
    for (std::size_t b = 0; b < k; ++b) R[a * k + b] = scale[b] * S[a * k + b] * scale[a];
  return R;
}

// The models of other processes' agents come to the first.
void collect(const Frame& frame, bool keep_cov, Team& team, Model& model) {
  if (team.processes().count() == 1) return;
  const std::size_t d = frame.d;
  const auto each_list = [&](AgentModel& a, auto f) {
    a.channels.resize(frame.channels), a.alone.resize(frame.channels);
    for (std::size_t c = 0; c < frame.channels; ++c) {
      f(a.channels[c].x, d), f(a.channels[c].se, d), f(a.alone[c], d);
      f(a.channels[c].cov, keep_cov ? d * d : 0);
    }
  };
  std::vector<double> numbers;
  const Leaves own = own_agents(frame.agents.size(), team);
  for (std::int64_t i = own.first; i < own.last; ++i) {
    AgentModel& a = model.agents[static_cast<std::size_t>(i)];
    numbers.insert(numbers.end(),
                   {static_cast<double>(a.rows), static_cast<double>(a.kind), a.widened});
    for (const LinearModel& c : a.channels) numbers.push_back(c.s2);
    each_list(a, [&](const std::vector<double>& v, std::size_t) {
      numbers.insert(numbers.end(), v.begin(), v.end());
    });
  }
  std::size_t i = 0;
  gather(team.processes(), numbers, [&](std::span<const double> theirs) {
    const double* at = theirs.data();
    for (; at != theirs.data() + theirs.size(); ++i) {
      AgentModel& a = model.agents[i];
      a.rows = static_cast<std::size_t>(*at++);
      a.kind = static_cast<Kind>(*at++);
      a.widened = *at++;
      a.channels.resize(frame.channels);
      for (LinearModel& c : a.channels) c.s2 = *at++;
      each_list(a, [&](std::vector<double>& v, std::size_t size) {
        v.assign(at, at + size);
        at += size;
      });
    }
  });
}

Model make_model(const Frame& frame, const Part& part, const FitOptions& options, Team& team) {
  Model model = begin_model(frame, options);
  const std::size_t n = frame.agents.size();
  const bool keep = static_cast<double>(n * frame.channels * frame.d * frame.d) <= kMostCovariances;
  for (std::size_t c = 0; c < frame.channels; ++c) {
    const Decomposition& best = part.learnt[c].chosen.best;
    ChannelModel channel;
    channel.pooled = in_units(part.pooled[c].x, frame, c);
    channel.covariance = best.covariance;
    channel.converged = best.converged;
    for (const Decomposition& t : part.learnt[c].chosen.tried)
      channel.tried.push_back({to_text(t.covariance), t.log_evidence, t.bic});
    const Posterior unseen = unseen_posterior(best);
    channel.centre = in_units(unseen.x, unseen.cov, 1, best.variances.s2, frame, c, true);
    for (std::size_t j = 0; j < frame.d; ++j)  // of the centre itself
      channel.centre.se[j] =
          frame.y_sd[c] * std::sqrt(std::max(0.0, best.centre_cov[j * frame.d + j]));
    channel.D = best.variances.D;
    for (double& v : channel.D) v *= frame.y_sd[c] * frame.y_sd[c];
    model.channels.push_back(std::move(channel));
  }
  model.agents.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    model.agents[i].name = frame.agents[i];
    if (!frame.theta.empty())
      model.agents[i].weights.assign(frame.theta.data() + i * frame.channels,
                                     frame.theta.data() + (i + 1) * frame.channels);
  }
  team.each(own_agents(n, team), [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    const AgentFit fit = fit_agent(frame, part, i);
    AgentModel& agent = model.agents[i];
    agent.rows = frame.agent_rows(i);
    agent.kind = fit.kind;
    for (const Posterior& p : fit.own) agent.widened = std::max(agent.widened, p.widened);
    for (std::size_t c = 0; c < frame.channels; ++c) {
      const Ridge& alone = fit.alone[c];
      agent.alone.push_back(in_units(alone.x, frame, c));
      const Ridge& all = part.pooled[c];
      const double s2 = part.s2(c, i);
      agent.channels.push_back(
          fit.kind == Kind::kPersonalised
              ? in_units(fit.own[c].x, fit.own[c].cov, 1, s2, frame, c, keep)
          : fit.kind == Kind::kAlone
              ? in_units(alone.x, alone.inverse, alone.s2, alone.s2, frame, c, keep)
              : in_units(all.x, all.inverse, all.s2, all.s2, frame, c, keep));
    }
  });
  if (!frame.theta.empty()) model.noise = noise_correlations(frame, model, team);
  collect(frame, keep, team, model);
  return model;
}

// The tallies of other processes' agents come to the first.
void collect(Team& team, std::vector<RowTally>& tallies) {
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

void count_traffic(Processes& processes, FitResult& result) {
  result.ranks = processes.count();
  const Processes::Traffic own = processes.traffic();
  const double numbers[] = {static_cast<double>(own.bytes), own.seconds};
  gather(processes, numbers, [&](std::span<const double> theirs) {
    result.bytes_sent += static_cast<std::int64_t>(theirs[0]);
    result.communication_seconds = std::max(result.communication_seconds, theirs[1]);
  });
}

void add_notes(const Frame& frame, const Part& part, const Model& model,
               std::vector<std::string>& notes) {
  const std::size_t n = frame.agents.size();
  if (n == 1) {
    notes.push_back("there is one agent, so nobody to learn with");
    return;
  }
  bool alike = true, converged = true;
  for (const Learnt& c : part.learnt) {
    for (double v : c.chosen.best.variances.D) alike &= std::abs(v) < 1e-9;
    converged &= c.chosen.best.converged;
  }
  if (alike) notes.push_back("the rows do not tell the agents apart: all have the same model");
  if (!converged) notes.push_back("the variances were still moving when the search for them ended");
  std::size_t few = 0, single = 0;
  for (std::size_t i = 0; i < n; ++i)
    few += model.agents[i].rows < frame.d, single += model.agents[i].rows == 1;
  if (few > 0)
    notes.push_back(fmt::format(
        "{} of {} agents have fewer rows than coefficients ({}): they lean on the others", few, n,
        frame.d));
  if (single > 0) notes.push_back(fmt::format("{} of {} agents have a single row", single, n));
  if (frame.all_rows < frame.d)
    notes.push_back(fmt::format("there are fewer rows ({}) than coefficients ({}), even together",
                                frame.all_rows, frame.d));
}

}  // namespace

FitResult fit_mixed(const Frame& frame, const FitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FitResult result;
  result.threads = threads_or_all(options.threads);
  const std::unique_ptr<Team> team = fit_team(options);
  Processes& processes = team->processes();
  const auto stopped = [&] { return processes.any(options.stop != nullptr && *options.stop); };
  const auto done = [&](int parts) {
    if (options.progress) options.progress(parts / (kFolds + 1.0));
  };
  result.notes = frame.notes;
  std::vector<Variances> near;
  {
    const Part all = learn(frame, -1, {}, *team);
    result.model = make_model(frame, all, options, *team);
    add_notes(frame, all, result.model, result.notes);
    for (const Learnt& c : all.learnt) near.push_back(c.chosen.best.variances);
  }
  done(1);
  const std::size_t n = frame.agents.size();
  std::vector<RowTally> tallies(n);
  result.scored = options.score && frame.all_rows > 1;
  std::vector<double> held(kFolds);  // rows in each fold
  for (std::size_t i = 0; i < n; ++i)
    for (int f = 0; f < kFolds; ++f)
      held[static_cast<std::size_t>(f)] +=
          static_cast<double>(frame.begin(i, f + 1) - frame.begin(i, f));
  sum(processes, held);
  for (int f = 0; f < kFolds && result.scored; ++f) {
    if (stopped()) {
      result.scored = result.complete = false;
      break;
    }
    const auto count = static_cast<std::size_t>(held[static_cast<std::size_t>(f)]);
    if (count == 0 || count == frame.all_rows) continue;
    const Part part = learn(frame, f, near, *team);
    team->each(own_agents(n, *team), [&](std::int64_t at, int) {
      const auto i = static_cast<std::size_t>(at);
      if (frame.begin(i, f) < frame.begin(i, f + 1))
        score_rows(frame, part, fit_agent(frame, part, i), i, tallies[i]);
    });
    done(f + 2);
  }
  collect(*team, tallies);
  if (result.scored && processes.first()) judge_agents(frame, tallies, result);
  count_traffic(processes, result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
