#include "affpcl/algorithm/affpcl.h"

#include <algorithm>

#include "affpcl/algorithm/local_steps.h"
#include "affpcl/base/error.h"

namespace affpcl {
namespace {

Out step_rows(Out all, int k, int d) {
  return {all.row(k * d), d, all.lanes};
}  // step k of K x d rows

}  // namespace

MethodKind AffPcl::kind() {
  std::vector<Param> params = {
      {.name = "objective",
       .doc = "central objective: learnt (COE), known, or a running mean per state; auto: learnt, "
              "or the problem's choice",
       .fallback = "auto",
       .choices = {"auto", "learnt", "known", "tabular"}},
      {.name = "central",
       .doc = "central decision: own b (CDL-1), estimated b (CDL-2), or the average of x^i",
       .fallback = "own",
       .choices = {"own", "estimated", "average"}},
      {.name = "correction",
       .doc = "where the importance correction acts; client is for studies only",
       .fallback = "server",
       .choices = {"server", "client"}},
      {.name = "guard",
       .doc = "against harm by the others: weight (how much of the correction is used), full (and "
              "its mean taken off); none is the paper",
       .fallback = "none",
       .choices = {"none", "weight", "full"}},
  };
  params.insert(params.begin(), ratio_params().begin(), ratio_params().end());
  return {
      "affpcl",
      "personalised collaborative learning with affinity-based variance reduction (Algorithm 1)",
      std::move(params), [](const Values& v) {
        Config c;
        c.objective = v.text("objective") == "known"     ? Objective::kKnown
                      : v.text("objective") == "tabular" ? Objective::kTabular
                      : v.text("objective") == "learnt"  ? Objective::kLearnt
                                                         : Objective::kAuto;
        c.central = v.text("central") == "estimated" ? Central::kEstimated
                    : v.text("central") == "average" ? Central::kAverage
                                                     : Central::kOwn;
        c.correction = v.text("correction") == "client" ? Correction::kClient : Correction::kServer;
        c.guard = v.text("guard") == "weight" ? Guard::Mode::kWeight
                  : v.text("guard") == "full" ? Guard::Mode::kFull
                                              : Guard::Mode::kNone;
        return std::make_unique<AffPcl>(c, make_ratio(v));
      }};
}

AffPcl::AffPcl(const Config& config, std::unique_ptr<Ratio> ratio)
    : config_(config), ratio_(std::move(ratio)), guard_(config.guard) {}

void AffPcl::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const Shape shape = setup.problem.shape();
  if (config_.objective == Objective::kAuto)
    config_.objective = setup.problem.prefers_table() ? Objective::kTabular : Objective::kLearnt;
  x_ = agent.add("x", shape.d);
  gc_ = agent.add("gc", setup.period * shape.d);
  xc_ = centre.add("xc", shape.d);
  dx_ = sum.add("dx", shape.d);
  switch (config_.objective) {
    case Objective::kLearnt:
      if (shape.k == 0)
        throw BadInput(
            "objective = \"learnt\" needs Phi, which this problem does not have; use \"tabular\" "
            "or \"known\"");
      thetac_ = centre.add("thetac", shape.k);
      dtheta_ = sum.add("dtheta", shape.k);
      break;
    case Objective::kTabular:
      table_ = setup.problem.table();
      if (table_.cells == 0)
        throw BadInput(
            "objective = \"tabular\" needs a problem with finitely many states; use \"learnt\"");
      seen_ = centre.add("seen", table_.cells * (table_.width + 1));
      cells_ = sum.add_product("cells", table_.cells, table_.width + 1);
      break;
    case Objective::kKnown:
    case Objective::kAuto:
      break;
  }
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
  watch_.declare(setup, agent);
  guard_.declare(setup, agent, centre, sum);
  if (!ratio_->learns()) {  // Algorithm 1: (s, g(x^c), g^b(theta^c), g^{c->i}) up, three means down
    Layout world, sample;
    setup.problem.declare(world, sample);
    const std::int64_t K = std::int64_t{setup.period - 1} * setup.batch + setup.last;
    published_ = {K * (sample.rows() + 2 * shape.d + thetac_.rows), 2 * shape.d + thetac_.rows};
  }
}

void AffPcl::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(xc_), problem.start_xc());
  if (config_.objective == Objective::kLearnt) set(centre.mutate(thetac_), problem.start_thetac());
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

// What a block's samples say at x and theta, where these are central.
void AffPcl::evaluate(const Round& round, Lanes lanes, In s, In b, Centre centre, In x, In theta,
                      const Problem::AtCentre& to) const {
  if (config_.objective == Objective::kLearnt)
    return round.problem.at_centre(lanes, s, b, x, theta, to);
  round.problem.apply(lanes, s, x, to.gx);
  central_objective(round, lanes, s, centre, to.g);
  subtract(to.gx, to.g, to.g);
  subtract(to.gx, b, to.gx);
}

// bhat^c where it is not learnt.
void AffPcl::central_objective(const Round& round, Lanes lanes, In s, Centre centre,
                               Out bhat) const {
  if (config_.objective == Objective::kKnown) return round.problem.known(lanes, s, bhat);
  const Out cell = round.scratch.rows(1), value = round.scratch.rows(table_.width);
  round.problem.cell(lanes, s, cell);
  const double* seen = centre[seen_].p;
  for (int l = 0; l < lanes.count; ++l) {
    const double* c =
        seen + static_cast<std::ptrdiff_t>(std::max(cell.p[l], 0.0)) * (table_.width + 1);
    const double count = cell.p[l] < 0 ? 0 : c[table_.width];
    for (int r = 0; r < table_.width; ++r) value.row(r)[l] = count > 0 ? c[r] / count : 0;
  }
  round.problem.table_lift(lanes, s, value, bhat);
}

void AffPcl::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                        Message message) const {
  const Lanes lanes = agents.lanes;
  const In xc = centre[xc_], thetac = centre[thetac_];
  const int d = x_.rows;
  Scratch& scratch = round.scratch;
  const Out g = scratch.rows(d), gx = scratch.rows(d), gtheta = scratch.rows(thetac_.rows);
  // With several local steps, how far x^c and theta^c came, and copies of them that take the steps.
  const bool several = batch.steps > 1;
  Out dx, dtheta, xk, thetak;
  if (several) {
    dx = scratch.rows(d), dtheta = scratch.rows(thetac_.rows);
    xk = scratch.rows(d), thetak = scratch.rows(thetac_.rows);
    fill(dx, 0);
    fill(dtheta, 0);
  }
  const auto move = [&](Field sum, Out by, double alpha, In direction) {
    if (several) return descend(by, alpha, direction);
    message.add(sum, direction, -alpha);
  };

  int all = 0;  // samples of the round
  for (int k = 0; k < batch.steps; ++k) all += batch.samples(k);
  const bool alone = all == 1 && config_.correction == Correction::kServer;
  guard_.contribute(round, agents, message);
  for (int k = 0; k < batch.steps; ++k) {
    const Out gc = step_rows(agents[gc_], k, d);
    if (!alone) fill(gc, 0);
    if (k > 0) {
      copy(xc, xk), add_scaled(xk, 1, dx);
      copy(thetac, thetak), add_scaled(thetak, 1, dtheta);
    }
    const int samples = batch.samples(k);
    const double alpha_c = round.step.central.at(round.first + k) / samples;
    const double alpha_b = round.step.objective.at(round.first + k) / samples;
    for (int m = 0; m < samples; ++m) {
      const In s = batch.s(k, m), b = batch.b(k, m);
      const Out gj = alone ? gc : g;  // g^{c->j}
      const auto move_centre = [&](In estimated) {
        if (config_.central != Central::kAverage)  // CDL
          move(dx_, dx, alpha_c, config_.central == Central::kEstimated ? estimated : In(gx));
        if (config_.objective == Objective::kLearnt) move(dtheta_, dtheta, alpha_b, gtheta);  // COE
      };
      evaluate(round, lanes, s, b, centre, xc, thetac, {gj, gx, gtheta});
      if (k == 0) move_centre(gj);
      correction(round, samples, all, s, gj, k + m == 0, agents, centre, gc, message);
      if (k > 0) {
        evaluate(round, lanes, s, b, centre, xk, thetak, {g, gx, gtheta});
        move_centre(g);
      }
      if (config_.objective == Objective::kTabular) add_to_cells(round, s, b, message);
    }
  }
  if (config_.correction == Correction::kServer) ratio_->end(round, agents[x_], agents, message);
  if (several) {
    message.add(dx_, dx);
    message.add(dtheta_, dtheta);
  }
  // The average of x^i moves by -alpha mean_i g^i(x^i): the corrections cancel in the mean, for
  // mean_i rho^i = 1.
  if (config_.central == Central::kAverage) {
    residual(round, lanes, batch, 0, agents[x_], g);
    fill(gx, 0);
    descend(gx, round.step.agents(round.first, lanes, scratch), g);
    message.add(dx_, gx);
  }
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

void AffPcl::add_to_cells(const Round& round, In s, In b, Message message) const {
  const Lanes lanes = message.lanes();
  const int w = table_.width;
  const Out cell = round.scratch.rows(1), value = round.scratch.rows(w);
  round.problem.cell(lanes, s, cell);
  round.problem.table_value(lanes, s, b, value);
  for (int l = 0; l < lanes.count; ++l) {
    if (cell.p[l] < 0) continue;
    double* c = message.at(cells_) + static_cast<std::ptrdiff_t>(cell.p[l]) * (w + 1);
    for (int r = 0; r < w; ++r) c[r] += value.row(r)[l];
    c[w] += 1;
  }
}

void AffPcl::centre(const Round& round, Mean mean, Centre centre) const {
  shift(centre.mutate(xc_), mean[dx_]);
  shift(centre.mutate(thetac_), mean[dtheta_]);
  if (config_.objective == Objective::kTabular)
    shift(centre.mutate(seen_), {mean[cells_], seen_.rows, 1});
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
  if (watch_.weighs(round)) {
    const Out rho = round.scratch.rows(1);
    ratio_->own(round, batch.s(0, 0), agents, centre, rho);
    watch_.weigh(round, agents, rho);
  }
  for (int k = 0; k < batch.steps; ++k) {
    residual(round, agents.lanes, batch, k, x, g);                      // g^i(x^i)
    watch_.follow(round, agents, rg, step_rows(agents[gc_], k, d), h);  // h = rg^i - g^{c->i}
    guard_.apply(round.first + k, agents, centre, g, h);
    descend(x, round.step.agents(round.first + k, agents.lanes, round.scratch), g, h);
  }
}

// What the watch and the guard have to say, one after the other.
std::vector<Tally> AffPcl::tallies() const {
  std::vector<Tally> all = Watch::tallies();
  for (Tally t : guard_.tallies()) all.push_back(t);
  return all;
}

void AffPcl::report(Agents agents, Out rows) const {
  const auto watched = static_cast<int>(Watch::tallies().size());
  watch_.report(agents, {rows.p, watched, rows.lanes});
  guard_.report(agents, {rows.row(watched), rows.rows - watched, rows.lanes});
}

std::vector<std::string> AffPcl::columns() const {
  std::vector<std::string> all = Watch::columns();
  for (const std::string& c : guard_.columns()) all.push_back(c);
  return all;
}

void AffPcl::conclude(std::span<const double> tallies, std::span<double> columns) const {
  const std::size_t watched = Watch::tallies().size(), shown = Watch::columns().size();
  Watch::conclude(tallies.first(watched), columns.first(shown));
  if (columns.size() > shown) Guard::conclude(tallies.subspan(watched), columns.subspan(shown));
}

}  // namespace affpcl
