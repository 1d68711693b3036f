#include "affpcl/method/affpcl.h"

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {
namespace {

// Step k of K x d rows.
Out step_rows(Out all, int k, int d) { return {all.row(k * d), d, all.lanes}; }

int samples_of(const Batch& batch) {
  int all = 0;
  for (int k = 0; k < batch.steps; ++k) all += batch.samples(k);
  return all;
}

}  // namespace

const Params<AffPcl::Config>& AffPcl::params() {
  static const Params<Config> kParams = {
      {"objective", &Config::objective,
       "central objective: learnt by gradient steps (COE), solved from summed moments, known, or a "
       "running mean per state; auto: the problem's choice (known where agents state weights, "
       "moments on recorded channels without weights)"},
      {"central", &Config::central,
       "central decision: own b (CDL-1), estimated b (CDL-2), or the average of x^i"},
      {"correction", &Config::correction,
       "where the importance correction acts; client is for studies only"},
      {"guard", &Config::guard,
       "against harm by the others: weight (how much of the correction is used), full (and "
       "its mean taken off); none is the paper"},
  };
  return kParams;
}

MethodKind AffPcl::kind() {
  std::vector<Param> all = ratio_params();
  all.insert(all.end(), params().table().begin(), params().table().end());
  return {
      "affpcl",
      "personalised collaborative learning with affinity-based variance reduction (Algorithm 1)",
      std::move(all),
      [](const Values& v) { return std::make_unique<AffPcl>(params().read(v), make_ratio(v)); }};
}

AffPcl::AffPcl(const Config& config, std::unique_ptr<Ratio> ratio)
    : config_(config),
      ratio_(std::move(ratio)),
      objective_(config.objective),
      guard_(config.guard) {}

void AffPcl::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const Shape shape = setup.problem.shape();
  x_ = agent.add("x", shape.d);
  gc_ = agent.add("gc", setup.period * shape.d);
  xc_ = centre.add("xc", shape.d);
  objective_.declare(setup, centre, sum);
  path_.declare(xc_, objective_.steps() ? objective_.theta() : Field{}, sum);
  if (config_.central == Central::kAverage) {
    if (setup.period != 1 || !setup.step.common())
      throw BadInput(
          "central = \"average\" needs period = 1 and the same step size for all agents: only then "
          "does one sum carry the average");
    if (config_.correction == Correction::kClient)
      throw BadInput(
          "central = \"average\" needs correction = \"server\": only there do the corrections "
          "cancel in the mean");
  }
  if (config_.correction == Correction::kServer) {
    ratio_->declare(setup.problem, agent, centre, sum);
  } else if (ratio_->learns()) {
    throw BadInput(
        "correction = \"client\" needs a ratio that is not learnt: the sums it is learnt from do "
        "not "
        "travel");
  } else {  // the ratio weighs what stays at home; only the plain mean travels
    SumLayout nothing;
    ratio_->declare(setup.problem, agent, centre, nothing);
    gbar_ = sum.add("gbar", shape.d);
  }
  drift_.declare(setup, agent);
  guard_.declare(setup, agent, centre, sum);
  if (!ratio_->learns()) published_ = traffic_of_algorithm1(setup);
}

// Algorithm 1 sends (s, g(x^c), g^b(theta^c), g^{c->i}) and gets three directions back. CDL-2 moves
// x^c along the mean of g^{c->i}, so g(x^c) stays at home.
Traffic AffPcl::traffic_of_algorithm1(const Setup& setup) const {
  Layout world, sample;
  setup.problem.declare(world, sample);
  const std::int64_t samples = std::int64_t{setup.period - 1} * setup.batch + setup.last;
  const int d = x_.rows, k = objective_.steps() ? objective_.theta().rows : 0,
            directions = config_.central == Central::kEstimated ? 1 : 2;
  return {samples * (sample.rows() + directions * d + k), 2 * d + k};
}

void AffPcl::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(xc_), problem.start_xc());
  objective_.start(problem, centre);
  if (config_.central == Central::kAverage) {  // x^0_0 is the mean of the starts
    const std::span<double> x0 = centre.mutate(xc_);
    std::fill(x0.begin(), x0.end(), 0.0);
    const std::int64_t n = problem.shape().agents;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::vector<double> xi = problem.start_x(i);
      for (std::size_t r = 0; r < x0.size(); ++r) x0[r] += xi[r] / static_cast<double>(n);
    }
  }
}

void AffPcl::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                        Message message) const {
  const In xc = centre[xc_], thetac = centre[objective_.theta()];
  const int d = x_.rows, all = samples_of(batch);
  const Out g = round.scratch.rows(d), gx = round.scratch.rows(d),
            gtheta = round.scratch.rows(objective_.theta().rows);
  const bool in_place = all == 1 && config_.correction == Correction::kServer;
  CentralPath::Walk path(path_, round, batch, centre, message);
  guard_.contribute(round, agents, message);
  for (int k = 0; k < batch.steps; ++k) {
    const Out gc = step_rows(agents[gc_], k, d), gj = in_place ? gc : g;
    if (!in_place) fill(gc, 0);
    path.begin(k);
    for (int m = 0; m < batch.samples(k); ++m) {
      const In s = batch.s(k, m), b = batch.b(k, m);
      objective_.evaluate(round, agents.lanes, s, b, centre, xc, thetac, {gj, gx, gtheta});
      if (!path.moved()) move_centre(path, gj, gx, gtheta);
      correction(round, batch.samples(k), all, s, gj, k + m == 0, agents, centre, gc, message);
      if (path.moved()) {
        objective_.evaluate(round, agents.lanes, s, b, centre, path.x(), path.theta(),
                            {g, gx, gtheta});
        move_centre(path, g, gx, gtheta);
      }
      objective_.contribute(round, s, b, message);
    }
  }
  path.end();
  if (config_.correction == Correction::kServer) ratio_->end(round, agents[x_], agents, message);
  if (config_.central == Central::kAverage) contribute_average(round, batch, agents, message);
}

// CDL and COE: one sample's central directions.
void AffPcl::move_centre(CentralPath::Walk& path, In gc, In gx, In gtheta) const {
  if (config_.central != Central::kAverage)
    path.move_x(config_.central == Central::kEstimated ? gc : gx);
  path.move_theta(gtheta);
}

// The average of x^i moves by -alpha mean_i g^i(x^i): the corrections cancel in the mean, since
// mean_i rho^i = 1.
void AffPcl::contribute_average(const Round& round, const Batch& batch, Agents agents,
                                Message message) const {
  const Out g = round.scratch.rows(x_.rows), moved = round.scratch.rows(x_.rows);
  residual(round, agents.lanes, batch, 0, agents[x_], g);
  fill(moved, 0);
  descend(moved, round.step.agents(round.first, agents.lanes, round.scratch), g);
  message.add(path_.sum_x(), moved);
}

// Keeps g^{c->i}, and sends g; g is of no use afterwards, unless it is alone.
void AffPcl::correction(const Round& round, int step, int all, In s, Out g, bool first,
                        Agents agents, Centre centre, Out gc, Message message) const {
  const double share = 1.0 / all;
  if (config_.correction == Correction::kServer) {
    if (g.p != gc.p) add_scaled(gc, 1.0 / step, g);
    if (share != 1)
      for (int i = 0; i < g.rows * kLanes; ++i) g.p[i] *= share;
    ratio_->contribute(round, s, g, first, agents, centre, message);
    return;
  }
  const Out rho = round.scratch.rows(1);
  ratio_->own(round, s, agents, centre, rho);
  for (int r = 0; r < g.rows; ++r)
    for (int l = 0; l < agents.lanes.count; ++l) {
      gc.row(r)[l] += g.row(r)[l] / (rho.p[l] * step);
      g.row(r)[l] *= share;
    }
  message.add(gbar_, g);
}

void AffPcl::centre(const Round& round, Mean mean, Centre centre) const {
  path_.centre(mean, centre);
  objective_.centre(mean, centre);
  ratio_->centre(round, mean, centre);
  guard_.centre(mean, centre);
}

void AffPcl::update(const Round& round, const Batch& batch, Agents agents, Centre centre,
                    Mean mean) const {
  const int d = x_.rows;
  const Out x = agents[x_], g = round.scratch.rows(d), rg = round.scratch.rows(d),
            h = round.scratch.rows(d);
  if (config_.correction == Correction::kServer) {
    ratio_->correct(round, agents, centre, mean, rg);
  } else {
    copy(mean[gbar_], rg);
  }
  if (drift_.weighs(round)) {
    const Out rho = round.scratch.rows(1);
    ratio_->own(round, batch.s(0, 0), agents, centre, rho);
    drift_.weigh(round, agents, rho);
  }
  for (int k = 0; k < batch.steps; ++k) {
    residual(round, agents.lanes, batch, k, x, g);                      // g^i(x^i)
    drift_.follow(round, agents, rg, step_rows(agents[gc_], k, d), h);  // h = rg^i - g^{c->i}
    guard_.apply(round.first + k, agents, centre, g, h);
    descend(x, round.step.agents(round.first + k, agents.lanes, round.scratch), g, h);
  }
}

// What the watch and the guard have to say, one after the other.
std::vector<Tally> AffPcl::tallies() const {
  std::vector<Tally> all = DriftMonitor::tallies();
  for (Tally t : guard_.tallies()) all.push_back(t);
  return all;
}

void AffPcl::report(Agents agents, Out rows) const {
  const auto watched = static_cast<int>(DriftMonitor::tallies().size());
  drift_.report(agents, {rows.p, watched, rows.lanes});
  guard_.report(agents, {rows.row(watched), rows.rows - watched, rows.lanes});
}

std::vector<std::string> AffPcl::columns() const {
  std::vector<std::string> all = DriftMonitor::columns();
  for (const std::string& c : guard_.columns()) all.push_back(c);
  return all;
}

void AffPcl::conclude(std::span<const double> tallies, std::span<double> columns) const {
  const std::size_t watched = DriftMonitor::tallies().size(),
                    shown = DriftMonitor::columns().size();
  DriftMonitor::conclude(tallies.first(watched), columns.first(shown));
  if (columns.size() > shown) Guard::conclude(tallies.subspan(watched), columns.subspan(shown));
}

}  // namespace affpcl
