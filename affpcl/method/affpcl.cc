#include "affpcl/method/affpcl.h"

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/method/local_steps.h"

namespace affpcl {
const Params<AffPcl::Config>& AffPcl::params() {
  static const Params<Config> kParams = {
      {"objective", &Config::objective,
       "central objective: learnt by gradient steps (COE), solved from summed moments, known, or a "
       "running mean per state; auto: the problem's choice (known where agents state weights, "
       "moments on recorded channels without weights)"},
      {"central", &Config::central,
       "central decision: own b (CDL-1), estimated b (CDL-2), or the average of x^i"},
      {"aggregate", &Config::aggregate,
       "the mean that corrects: of directions by the central objective, or by each agent's own b "
       "(eq:het-pcl-alg, for agents of one environment: ratio = \"none\")"},
      {"correction", &Config::correction,
       "where the importance correction acts; client is for studies only"},
      {"guard", &Config::guard,
       "against harm by the others: returns a safe combination with the independent iterate; the "
       "collaborative one has a weighted correction (weight) and its mean taken off (full); none "
       "is "
       "the paper"},
  };
  return kParams;
}

namespace {

// Under another law than the agent's own, the others' b^j do not have the mean of b^0.
void refuse_own_aggregate(const AffPcl::Config& config, const Values& values) {
  if (config.aggregate != AffPcl::Aggregate::kOwn) return;
  if (values.text("ratio") != "none")
    throw BadInput(
        "aggregate = \"own\" is for agents of one environment and needs ratio = \"none\": an "
        "importance-corrected mean of the agents' own objectives is biased");
  if (config.correction == AffPcl::Correction::kClient)
    throw BadInput("aggregate = \"own\" needs correction = \"server\"");
}

}  // namespace

MethodKind AffPcl::kind() {
  std::vector<Param> all = ratio_params();
  all.insert(all.end(), params().table().begin(), params().table().end());
  return {
      "affpcl",
      "personalised collaborative learning with affinity-based variance reduction (Algorithm 1)",
      std::move(all), [](const Values& v) {
        const Config config = params().read(v);
        refuse_own_aggregate(config, v);
        return std::make_unique<AffPcl>(config, make_ratio(v));
      }};
}

AffPcl::AffPcl(const Config& config, std::unique_ptr<Ratio> ratio)
    : config_(config),
      objective_(config.objective),
      correction_(config.correction, std::move(ratio)),
      guard_(config.guard),
      combination_(config.guard != Guard::Mode::kNone) {}

void AffPcl::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  x_ = agent.add("x", d);
  xc_ = centre.add("xc", d);
  objective_.declare(setup, centre, sum);
  path_.declare(xc_, objective_.steps() ? objective_.theta() : Field{}, sum);
  if (config_.central == Central::kAverage) refuse_average(setup);
  correction_.declare(setup, agent, centre, sum);
  drift_.declare(setup, agent);
  guard_.declare(setup, agent, centre, sum);
  combination_.declare(setup, agent);
  if (!correction_.ratio().learns()) published_ = traffic_of_algorithm1(setup);
}

void AffPcl::refuse_average(const Setup& setup) const {
  if (setup.partial)
    throw BadInput(
        "central = \"average\" needs all agents in every round: the average of all x^i is no sum "
        "over those present");
  if (setup.period != 1 || !setup.step.common())
    throw BadInput(
        "central = \"average\" needs period = 1 and the same step size for all agents: only then "
        "does one sum carry the average");
  if (config_.correction == Correction::kClient)
    throw BadInput(
        "central = \"average\" needs correction = \"server\": only there do the corrections "
        "cancel in the mean");
}

// Algorithm 1 sends (s, g(x^c), g^b(theta^c), g^{c->i}) and gets three directions back. CDL-2 moves
// x^c along the mean of g^{c->i}, so g(x^c) is not sent; eq:het-pcl-alg needs nothing but g(x^c).
Traffic AffPcl::traffic_of_algorithm1(const Setup& setup) const {
  Layout world, sample;
  setup.problem.declare(world, sample);
  const std::int64_t samples = std::int64_t{setup.period - 1} * setup.batch + setup.last;
  const int d = x_.rows, k = objective_.steps() ? objective_.theta().rows : 0,
            directions = (config_.central == Central::kEstimated) ==
                                 (config_.aggregate == Aggregate::kEstimated)
                             ? 1
                             : 2;
  return {samples * (sample.rows() + directions * d + k), 2 * d + k};
}

void AffPcl::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(xc_), central_start(problem).x);
  objective_.start(problem, centre);
  if (config_.central != Central::kAverage) return;
  const std::span<double> x0 = centre.mutate(xc_);  // x^0_0 is the mean of the starts
  std::fill(x0.begin(), x0.end(), 0.0);
  const std::int64_t n = problem.shape().agents;
  const Buffer space(x0.size() * kLanes);
  const Out x{space.data(), xc_.rows};
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    problem.start(lanes, x);
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < x.rows; ++r)
        x0[static_cast<std::size_t>(r)] += x.row(r)[l] / static_cast<double>(n);
  }
}

// Every sample of agent j adds to the round's sum: its part of the central steps (CDL, COE) and,
// for the corrections of all agents, psi(s^j) g^{c->j}' at x^c and theta^c from before the round.
void AffPcl::contribute(const Block& block, Message message) const {
  const Batch& batch = block.batch;
  const In xc = block.centre[xc_], thetac = block.centre[objective_.theta()];
  const Out space = block.scratch().rows(x_.rows), gx = block.scratch().rows(x_.rows),
            gtheta = block.scratch().rows(objective_.theta().rows);
  const bool own = config_.aggregate == Aggregate::kOwn;
  const Out own_mean =
      block.scratch().rows(own ? x_.rows : 0);  // of G(s, x^c) - b, for the average
  fill(own_mean, 0);
  CentralPath::Walk path(path_, block, message);
  for (int k = 0; k < batch.steps; ++k) {
    path.begin(k);
    const CentralDirections g{correction_.begin(block, k, space), gx, gtheta};
    for (int m = 0; m < batch.samples(k); ++m) {
      const In s = batch.s(k, m), b = batch.b(k, m);
      objective_.evaluate(block, {block.lanes(), s, b, path.x(), path.theta()}, g);
      move_centre(path, g);
      if (path.moved()) objective_.evaluate(block, {block.lanes(), s, b, xc, thetac}, g);
      if (own) add_scaled(own_mean, 1.0 / batch.samples(k), gx);
      correction_.contribute(block, k, m, g.g, own ? gx : g.g, message);
      objective_.contribute(block, s, b, message);
    }
  }
  path.end();
  correction_.end(block, solution(block.agents, block.centre), message);
  guard_.contribute(block, message);
  if (config_.central == Central::kAverage) contribute_average(block, own_mean, message);
}

// CDL and COE: one sample's central directions.
void AffPcl::move_centre(CentralPath::Walk& path, const CentralDirections& g) const {
  if (config_.central != Central::kAverage)
    path.move_x(config_.central == Central::kEstimated ? g.g : g.gx);
  path.move_theta(g.gtheta);
}

// The average of x^i moves by -alpha mean_i g^i(x^i): the corrections cancel in the mean, since
// mean_i rho^i = 1. With the agents' own b^j in the mean, mean_i (b^0 - b^i)(s^i) remains.
void AffPcl::contribute_average(const Block& block, In own_mean, Message message) const {
  const Out g = block.scratch().rows(x_.rows), moved = block.scratch().rows(x_.rows);
  direction(block, 0, block.agents[x_], g);
  if (own_mean.rows > 0) {
    add_scaled(g, 1, own_mean);
    subtract(g, correction_.own(block, 0), g);
  }
  fill(moved, 0);
  descend(moved, block.step_sizes(0), g);
  message.add(path_.sum_x(), moved);
}

void AffPcl::centre(const Round& round, Mean mean, Centre centre) const {
  path_.centre(mean, centre);
  objective_.centre(mean, centre);
  correction_.centre(round, mean, centre);
  guard_.centre(round, mean, centre);
}

void AffPcl::update(const Block& block, Mean mean) const {
  const Out x = block.agents[x_], g = block.scratch().rows(x.rows),
            rg = block.scratch().rows(x.rows), h = block.scratch().rows(x.rows);
  correction_.corrected(block, mean, rg);
  drift_.weigh(block, correction_.ratio());
  Combination::Walk combination(combination_, block, x);
  for (int k = 0; k < block.batch.steps; ++k) {
    direction(block, k, x, g);                               // g^i(x^i)
    drift_.follow(block, rg, correction_.own(block, k), h);  // h = rg^i - g^{c->i}
    guard_.apply(block, g, h);
    descend(x, block.step_sizes(k), g, h);
    combination.step(k, h);
  }
  combination.end(x);
}

std::vector<std::string_view> AffPcl::uncompressed() const {
  std::vector<std::string_view> all = objective_.uncompressed();
  for (const std::string_view part : correction_.ratio().uncompressed()) all.push_back(part);
  all.push_back("guard");
  return all;
}

// The tallies of the drift monitor, then those of the guard and of the combination.
std::vector<Tally> AffPcl::tallies() const {
  std::vector<Tally> all = DriftMonitor::tallies();
  for (Tally t : guard_.tallies()) all.push_back(t);
  if (combination_.on()) all.push_back(Tally::kSum);
  return all;
}

void AffPcl::report(Agents agents, Out rows) const {
  const auto monitored = static_cast<int>(DriftMonitor::tallies().size());
  drift_.report(agents, {rows.p, monitored, rows.lanes});
  guard_.report(agents, {rows.row(monitored), rows.rows - monitored, rows.lanes});
  if (combination_.on()) copy(combination_.share(agents), {rows.row(rows.rows - 1), 1, rows.lanes});
}

std::vector<std::string> AffPcl::columns() const {
  std::vector<std::string> all = DriftMonitor::columns();
  for (const std::string& c : guard_.columns()) all.push_back(c);
  if (combination_.on()) all.push_back("guard_share");
  return all;
}

void AffPcl::conclude(std::span<const double> tallies, std::span<double> columns) const {
  const std::size_t monitored = DriftMonitor::tallies().size(),
                    shown = DriftMonitor::columns().size();
  DriftMonitor::conclude(tallies.first(monitored), columns.first(shown));
  if (!combination_.on()) return;
  const auto guarded = tallies.subspan(monitored);
  Guard::conclude(guarded.first(guarded.size() - 1),
                  columns.subspan(shown, columns.size() - shown - 1));
  columns.back() = guarded.back() / guarded[guarded.size() - 2];  // by the number of replicates
}

}  // namespace affpcl
