// Algorithm 1 once more, written to be read and not to be fast: every agent's own vectors, every
// sum a loop over all agents and samples, ratios as a full table. What the engine computes by
// blocks and sums must agree.
#pragma once

#include <functional>

#include "tests/theory/harness.h"

namespace affpcl::testing {

struct Sample {  // all that one agent's sample s means to anybody
  Matrix A, Phi;
  Vector b;    // b^j(s) of the agent that drew it
  Vector b0;   // the mean of all agents' b^i(s)
  Vector rho;  // rho^i(s) of every agent i
  int cell = 0;
};
using World = std::function<Sample(int agent, int index)>;

inline World finite_world(const FiniteSystem& sys, const std::vector<int>& states) {
  auto e = std::make_shared<const Exact>(sys);
  return [e, states](int agent, int index) {
    const std::size_t per_agent = states.size() / at(e->n);
    const int s = states[at(agent) * per_agent + at(index)];
    Sample sample{e->A[at(s)],      e->Phi[at(s)],    e->b[at(agent)][at(s)],
                  Vector(at(e->d)), Vector(at(e->n)), s};
    for (int i = 0; i < e->n; ++i) {
      sample.b0 += e->b[at(i)][at(s)] / e->n;
      sample.rho[at(i)] = e->rho(i, s);
    }
    return sample;
  };
}

class Oracle {
 public:
  Oracle(Plan plan, World world, Iterates start)
      : plan_(std::move(plan)),
        step_(plan_.steps()),
        world_(std::move(world)),
        now_(std::move(start)) {
    if (plan_.config.central == AffPcl::Central::kAverage) now_.xc = mean(now_.x);
  }
  const Iterates& now() const { return now_; }

  void round(int steps) {
    const auto n = static_cast<int>(now_.x.size());
    const int m = plan_.batch;
    // samples[j][k][q], drawn by agent j for its local step k
    std::vector<std::vector<std::vector<Sample>>> samples(at(n));
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < steps; ++k) {
        samples[at(j)].emplace_back();
        for (int q = 0; q < m; ++q) samples[at(j)].back().push_back(world_(j, (time_ + k) * m + q));
      }
    const auto central_residual = [&](const Sample& s) -> Vector {  // g^{c->j}
      return s.A * now_.xc - bhat(s, now_.thetac);
    };
    const bool client = plan_.config.correction == AffPcl::Correction::kClient;
    const bool exact = plan_.ratio == "exact";

    Iterates next = now_;
    for (int i = 0; i < n; ++i) {
      Vector rg(now_.xc.size());
      for (int j = 0; j < n; ++j)
        for (int k = 0; k < steps; ++k)
          for (const Sample& s : samples[at(j)][at(k)])
            rg += (client || !exact ? 1 : s.rho[at(i)]) * central_residual(s) / (n * steps * m);
      for (int k = 0; k < steps; ++k) {
        Vector g = rg;
        for (const Sample& s : samples[at(i)][at(k)])
          g += (s.A * next.x[at(i)] - s.b -
                central_residual(s) / (client && exact ? s.rho[at(i)] : 1)) /
               m;
        next.x[at(i)] -= agent_step(i, time_ + k) * g;
      }
    }

    next.xc *= 0, next.thetac *= 0;
    for (int j = 0; j < n; ++j) {
      Vector xc = now_.xc, thetac = now_.thetac;
      for (int k = 0; k < steps; ++k) {
        Vector gx(xc.size()), gtheta(thetac.size());
        for (const Sample& s : samples[at(j)][at(k)]) {
          const bool own = plan_.config.central == AffPcl::Central::kOwn;
          gx += (s.A * xc - (own ? s.b : bhat(s, thetac))) / m;
          if (thetac.size() == 0 || solves()) continue;
          const Vector residual = s.Phi * thetac - s.b;
          const bool square = s.Phi.rows() == s.Phi.cols();
          gtheta += (square ? residual : transpose(s.Phi) * residual) / m;
        }
        xc -= step_.central.at(time_ + k) * gx;
        thetac -= step_.objective.at(time_ + k) * gtheta;
      }
      next.xc += xc / n;
      next.thetac += thetac / n;
    }
    if (plan_.config.central == AffPcl::Central::kAverage) next.xc = mean(next.x);
    if (solves()) next.thetac = solved(samples);

    for (const auto& agent : samples)
      for (const auto& batch : agent)
        for (const Sample& s : batch) {
          if (at(s.cell) >= seen_.size()) seen_.resize(at(s.cell) + 1, {Vector(s.b.size()), 0});
          seen_[at(s.cell)].first += s.b;
          seen_[at(s.cell)].second += 1;
        }
    now_ = next;
    time_ += steps;
  }

 private:
  bool solves() const { return plan_.config.objective == AffPcl::Objective::kMoments; }
  // theta^c from all samples so far: least norm until the summed matrix has full rank.
  template <class Samples>
  Vector solved(const Samples& samples) {
    for (const auto& agent : samples)
      for (const auto& batch : agent)
        for (const Sample& s : batch) {
          const bool square = s.Phi.rows() == s.Phi.cols();
          M_ = M_.rows() == 0 ? M_of(s) : M_ + M_of(s);
          const Vector v = square ? s.b : transpose(s.Phi) * s.b;
          v_ = v_.empty() ? v : v_ + v;
        }
    return solve_least_norm(M_, v_);
  }
  static Matrix M_of(const Sample& s) {
    return s.Phi.rows() == s.Phi.cols() ? s.Phi : transpose(s.Phi) * s.Phi;
  }
  static Vector mean(const std::vector<Vector>& x) {
    Vector sum(x[0].size());
    for (const Vector& v : x) sum += v / static_cast<double>(x.size());
    return sum;
  }
  Vector bhat(const Sample& s, const Vector& thetac) const {
    switch (plan_.config.objective) {
      case AffPcl::Objective::kAuto:  // these problems prefer COE
      case AffPcl::Objective::kLearnt:
      case AffPcl::Objective::kMoments:
        return s.Phi * thetac;
      case AffPcl::Objective::kKnown:
        return s.b0;
      case AffPcl::Objective::kTabular:
        break;
    }
    if (at(s.cell) >= seen_.size() || seen_[at(s.cell)].second == 0) return Vector(s.b.size());
    return seen_[at(s.cell)].first / seen_[at(s.cell)].second;
  }
  double agent_step(int i, int t) const {
    return step_.agent.schedule.at(t) *
           (plan_.agent_factors.empty() ? step_.agent.factor : plan_.agent_factors[at(i)]);
  }

  Plan plan_;
  StepSizes step_;
  World world_;
  Iterates now_;
  int time_ = 0;
  std::vector<std::pair<Vector, int>> seen_;
  Matrix M_;
  Vector v_;
};

// The largest difference between the engine and the oracle over all rounds of a run.
inline double difference(const Problem& problem, const Plan& plan, const World& world, int steps) {
  const Shape shape = problem.shape();
  const auto team = serial_team();
  RunOptions options;
  options.steps = steps;
  options.diverged_above = 1e300;
  std::vector<RunMethod> methods;
  methods.push_back(plan.affpcl());
  Run run(problem, std::move(methods), options, *team);
  Oracle oracle(plan, world, iterates(run, 0, shape.agents));
  double most = 0;
  for (int t = 0; t < steps; t += plan.period) {
    run.advance(t + plan.period);
    oracle.round(std::min(plan.period, steps - t));
    const Iterates mine = iterates(run, 0, shape.agents);
    most = std::max({most, distance(mine.x, oracle.now().x), distance(mine.xc, oracle.now().xc),
                     distance(mine.thetac, oracle.now().thetac)});
  }
  return most;
}

}  // namespace affpcl::testing
