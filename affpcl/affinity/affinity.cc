#include "affpcl/affinity/affinity.h"

#include <algorithm>
#include <cmath>

#include "affpcl/affinity/stability.h"
#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/math/statistics.h"

namespace affpcl {
namespace {

Score none(const char* why) { return {std::nan(""), 0, why}; }
Score exact(double value) { return {value, 0, ""}; }

Score monte_carlo(const std::vector<double>& values) {  // mean and standard error
  const double m = mean(values), n = static_cast<double>(values.size());
  double square = 0;
  for (double v : values) square += (v - m) * (v - m);
  return {m, std::sqrt(square / (n - 1) / n), ""};
}

double norm(In column, int lane) {
  double square = 0;
  for (int r = 0; r < column.rows; ++r) square += column.at(r, lane) * column.at(r, lane);
  return std::sqrt(square);
}

void add(double factor, const Matrix& A, Matrix& to) {
  for (std::size_t j = 0; j < to.all().size(); ++j) to.all()[j] += factor * A.all()[j];
}

double quadratic(const Matrix& L, std::span<const double> v) {  // v'L v
  double sum = 0;
  for (std::size_t r = 0; r < v.size(); ++r) sum += v[r] * dot(L.row(r), v);
  return sum;
}

Matrix divided(Matrix A, double by) {
  for (double& a : A.all()) a /= by;
  return A;
}

class Measure {
 public:
  Measure(const Problem& problem, const AffinityOptions& options)
      : problem_(problem),
        options_(options),
        shape_(problem.shape()),
        n_(shape_.agents),
        means_(problem.means()),
        finite_(problem.finite()),
        truth_(problem.truth()) {
    if (means_ == nullptr || truth_ == nullptr || problem.densities() == nullptr)
      throw BadInput("affinity needs a problem whose means and densities are known");
    Layout world, sample;
    problem.declare(world, sample);
    worlds_ = Store(world.rows(), n_);
    state_rows_ = sample.rows();
  }

  Affinity operator()() {
    Affinity out;
    out.agents.resize(static_cast<std::size_t>(n_));
    scale(out);
    pairs(out);
    centre(out);
    if (finite_ != nullptr) {
      enumerate(out);
    } else {
      sample(out);
    }
    if (shape_.d <= 10 && n_ <= 1000) {
      const std::vector<double> limits = stable_steps(problem_, options_.seed, options_.rounds);
      out.step_limit = exact(*std::min_element(limits.begin(), limits.end()));
    } else {
      out.step_limit = none("more than 10 unknowns or 1000 agents");
    }
    out.nu = out.agents.front().nu;
    for (const AgentAffinity& a : out.agents)
      if (a.nu.value > out.nu.value) out.nu = a.nu;
    return out;
  }

 private:
  template <class F>
  void blocks(F f) const {
    for (std::int64_t b = 0; b < blocks_of(n_); ++b) f(lanes_of(b, n_));
  }
  In solution(Lanes lanes) const { return truth_->x.block(lanes.first / kLanes)[{0, shape_.d}]; }
  In xc() const { return {truth_->xc.data(), shape_.d, 1}; }
  AgentAffinity& agent(Affinity& out, Lanes lanes, int lane) const {
    return out.agents[static_cast<std::size_t>(lanes.first + lane)];
  }

  // bhat^c(s): Phi(s) theta^c_*, the mean per cell that a table of objectives tends to, or the mean
  // of all objectives.
  void central_objective(Lanes lanes, In s, Out b) {
    const Facets facets = problem_.facets();
    if (facets.form == ObjectiveForm::kTabular && !cells_.empty()) {
      from_cells(*facets.table, lanes, s, b);
    } else if (shape_.k > 0) {
      problem_.linear()->Phi(lanes, s, {truth_->thetac.data(), shape_.k, 1}, space_, b);
    } else {
      problem_.facets().known->known(lanes, s, space_, b);
    }
  }
  // The means of a table of objectives: every agent counts as often as it visits the cell.
  void fill_cells(Out s, Out b) {
    const Facets facets = problem_.facets();
    if (facets.form != ObjectiveForm::kTabular || facets.table == nullptr) return;
    const auto width = static_cast<std::size_t>(facets.table->width());
    cells_.assign(static_cast<std::size_t>(facets.table->cells()) * (width + 1), 0.0);
    Buffer space((width + 1) * kLanes);
    const Out cell{space.data(), 1}, value{space.data() + kLanes, facets.table->width()};
    for (int o = 0; o < finite_->outcomes(); ++o)
      blocks([&](Lanes lanes) {
        finite_->outcome(lanes, o, s);
        problem_.objective(lanes, s, b);
        facets.table->cell(lanes, s, cell);
        facets.table->table_value(lanes, s, b, value);
        for (int l = 0; l < lanes.count; ++l) {
          if (cell.p[l] < 0) continue;
          double* c = cells_.data() + static_cast<std::size_t>(cell.p[l]) * (width + 1);
          const double p = finite_->probability(lanes.first + l, o);
          for (std::size_t r = 0; r < width; ++r) c[r] += p * value.row(static_cast<int>(r))[l];
          c[width] += p;
        }
      });
  }
  void from_cells(const ObjectiveTable& table, Lanes lanes, In s, Out b) const {
    const auto width = static_cast<std::size_t>(table.width());
    Buffer space((width + 1) * kLanes);
    const Out cell{space.data(), 1}, value{space.data() + kLanes, table.width()};
    table.cell(lanes, s, cell);
    for (int l = 0; l < lanes.count; ++l) {
      const double* c =
          cells_.data() + static_cast<std::size_t>(std::max(cell.p[l], 0.0)) * (width + 1);
      for (std::size_t r = 0; r < width; ++r)
        value.row(static_cast<int>(r))[l] = c[width] > 0 ? c[r] / c[width] : 0;
    }
    table.table_lift(lanes, s, value, b);
  }
  // L of the agent in a lane; the unit matrix where Abar has none.
  static Matrix metric(const std::vector<double>& Abar, int lane, std::size_t d) {
    const Matrix L = error_metric({Abar.data() + static_cast<std::size_t>(lane) * d * d, d, d});
    return L.rows() == d ? L : Matrix::identity(d);
  }
  // V, and why there is none: noise below the rounding of |G(s, x)|^2, to which `size` is equal.
  static Score ratio(const Score& v, double alone, double size) {
    return alone > 1e-24 * size ? v : none("learning alone has no noise at the solution");
  }
  std::vector<double> theta(std::int64_t agent) const {
    return problem_.linear() != nullptr ? problem_.linear()->theta(agent) : std::vector<double>{};
  }

  void scale(Affinity& out) const {
    double Gx = norm(xc(), 0);
    blocks([&](Lanes lanes) {
      for (int l = 0; l < lanes.count; ++l) Gx = std::max(Gx, norm(solution(lanes), l));
    });
    out.G_x = exact(Gx);
    if (theta(0).empty()) {
      out.G_b = none("the objectives have no weights theta");
    } else {
      double Gb = norm({truth_->thetac.data(), shape_.k, 1}, 0);
      for (std::int64_t i = 0; i < n_; ++i) {
        const std::vector<double> own = theta(i);
        Gb = std::max(Gb, norm({own.data(), shape_.k, 1}, 0));
      }
      out.G_b = exact(Gb);
    }
    out.G_A = finite_ != nullptr ? exact(means_->G_A()) : none("sup|A(s)| is infinite");
    if (!out.G_A.why.empty()) {
      out.sigma = none("sup|A(s)| is infinite");
    } else if (!out.G_b.why.empty()) {
      out.sigma = none("the objectives have no weights theta");
    } else {
      out.sigma = exact(2 * std::max(out.G_A.value * Gx, out.G_b.value));
    }
    const Monotonicity lambda = monotonicity(problem_);
    out.lambda_central = exact(lambda.central);
    out.lambda_objective = shape_.k > 0 ? exact(lambda.objective) : none("there is no Phi");
    for (std::size_t i = 0; i < lambda.agents.size(); ++i) {
      out.agents[i].lambda = exact(lambda.agents[i]);
      out.agents[i].kappa =
          out.sigma.why.empty() ? exact(out.sigma.value / lambda.agents[i]) : out.sigma;
    }
  }

  void pairs(Affinity& out) const {
    if (n_ > 5000) {
      out.delta_env = out.delta_obj = none("more than 5000 agents: too many pairs");
      return;
    }
    double env = 0, obj = 0;
    std::vector<std::vector<double>> weights;
    for (std::int64_t i = 0; i < n_; ++i) weights.push_back(theta(i));
    for (std::size_t i = 0; i < weights.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        env = std::max(env, problem_.densities()->tv(static_cast<std::int64_t>(i),
                                                     static_cast<std::int64_t>(j)));
        double square = 0;
        for (std::size_t r = 0; r < weights[i].size(); ++r)
          square += (weights[i][r] - weights[j][r]) * (weights[i][r] - weights[j][r]);
        obj = std::max(obj, std::sqrt(square));
      }
    out.delta_env = exact(env);
    out.delta_obj = out.G_b.why.empty() ? exact(obj / (2 * out.G_b.value)) : out.G_b;
  }

  // |bbar^i - bbar^0| / (2 G_b), kept as delta_cen until the environment's part is known.
  void centre(Affinity& out) const {
    Buffer space(static_cast<std::size_t>(shape_.d) * kLanes);
    const Out b{space.data(), shape_.d};
    Vector b0(static_cast<std::size_t>(shape_.d));
    blocks([&](Lanes lanes) {
      means_->mean_objective(lanes, b);
      for (int l = 0; l < lanes.count; ++l)
        for (std::size_t r = 0; r < b0.size(); ++r)
          b0[r] += b.row(static_cast<int>(r))[l] / static_cast<double>(n_);
    });
    blocks([&](Lanes lanes) {
      means_->mean_objective(lanes, b);
      for (int l = 0; l < lanes.count; ++l) {
        double square = 0;
        for (std::size_t r = 0; r < b0.size(); ++r)
          square += std::pow(b.row(static_cast<int>(r))[l] - b0[r], 2);
        agent(out, lanes, l).delta_cen =
            out.G_b.why.empty() ? exact(std::sqrt(square) / (2 * out.G_b.value)) : out.G_b;
      }
    });
  }

  static void take_environment(Score& cen, const Score& tv) {
    if (cen.why.empty() && tv.value > cen.value) cen = tv;
  }

  // A(s) of every lane, from its columns.
  std::vector<Matrix> matrices(Lanes lanes, In s) {
    const auto d = static_cast<std::size_t>(shape_.d);
    std::vector<Matrix> A(static_cast<std::size_t>(lanes.count), Matrix(d, d));
    std::vector<double> unit(d);
    Buffer space(d * kLanes);
    const Out y{space.data(), shape_.d};
    for (std::size_t c = 0; c < d; ++c) {
      unit[c] = 1;
      problem_.direction(lanes, s, {}, {unit.data(), shape_.d, 1}, space_, y);
      unit[c] = 0;
      for (std::size_t l = 0; l < A.size(); ++l)
        for (std::size_t r = 0; r < d; ++r) A[l](r, c) = y.row(static_cast<int>(r))[l];
    }
    return A;
  }

  // Of the agent in a lane, given E D(s) and mean_matrices() of the block.
  static double nu_of(const Matrix& D, const std::vector<double>& Abar, int lane) {
    const std::size_t d = D.rows();
    return operator_norm(
        multiply(D, inverse({Abar.data() + static_cast<std::size_t>(lane) * d * d, d, d})));
  }

  // ---- finite problems: sums over outcomes ----
  // Some outcomes at a time: the probabilities of all agents, and the central step's noise g^c.
  struct Outcomes {
    int first = 0;
    Matrix p, gc;  // [agent][outcome], [outcome][d]
    Vector mu0;
    std::size_t count() const { return mu0.size(); }
    double rho(std::size_t i, std::size_t o) const { return p(i, o) == 0 ? 0 : p(i, o) / mu0[o]; }
  };

  Outcomes outcomes(int from, int to, Out s, Out y, Out b, Matrix& modulus_sums) {
    const auto N = static_cast<std::size_t>(n_), count = static_cast<std::size_t>(to - from),
               d = static_cast<std::size_t>(shape_.d);
    Outcomes these{from, Matrix(N, count), Matrix(count, d), Vector(count)};
    Matrix D(count, d * d);
    const Lanes first{0, 1};
    for (std::size_t o = 0; o < count; ++o) {
      for (std::size_t i = 0; i < N; ++i)
        these.mu0[o] += these.p(i, o) =
            finite_->probability(static_cast<std::int64_t>(i), from + static_cast<int>(o));
      these.mu0[o] /= static_cast<double>(n_);
      finite_->outcome(first, from + static_cast<int>(o), s);
      problem_.direction(first, s, {}, xc(), space_, y);
      central_objective(first, s, b);
      for (std::size_t r = 0; r < d; ++r)
        these.gc(o, r) = y.row(static_cast<int>(r))[0] - b.row(static_cast<int>(r))[0];
      const Matrix A = modulus(matrices(first, s).front());
      std::copy(A.all().begin(), A.all().end(), D.row(o).begin());
    }
    add(1, multiply(these.p, D), modulus_sums);
    return these;
  }

  // What one agent's prediction needs: sums over outcomes. gtilde^i is a sum of independent terms, one
  // per agent's sample, whose variance is a second moment less a square of the mean.
  struct Sums {
    double alone = 0, together = 0, noise = 0, size = 0, tv = 0;
    Vector own;    // mean of its own term
    Matrix means;  // of the other agents' terms
  };

  void add_own(const Outcomes& these, Out s, Out y, Out b, const std::vector<Matrix>& L,
               std::vector<Sums>& sums) {
    const auto d = static_cast<std::size_t>(shape_.d);
    const double n = static_cast<double>(n_);
    Vector own(d), u(d);
    for (std::size_t o = 0; o < these.count(); ++o)
      blocks([&](Lanes lanes) {
        finite_->outcome(lanes, these.first + static_cast<int>(o), s);
        problem_.direction(lanes, s, {}, solution(lanes), space_, y);
        problem_.objective(lanes, s, b);
        for (int l = 0; l < lanes.count; ++l) {
          const auto i = static_cast<std::size_t>(lanes.first + l);
          const double p = these.p(i, o), rho = these.rho(i, o);
          Sums& sum = sums[i];
          for (std::size_t r = 0; r < d; ++r) {
            const double Ax = y.row(static_cast<int>(r))[l];
            sum.size += Ax * Ax;
            own[r] = Ax - b.row(static_cast<int>(r))[l];
            u[r] = rho / n * these.gc(o, r) + own[r] - these.gc(o, r);
          }
          if (p == 0) continue;
          sum.alone += p * quadratic(L[i], own);
          sum.noise += p * squared_norm(own);
          sum.together += p * quadratic(L[i], u);
          for (std::size_t r = 0; r < d; ++r) sum.own[r] += p * u[r];
        }
      });
  }

  void add_others(const Outcomes& these, std::size_t i, const Matrix& L, Sums& sum) const {
    const double n = static_cast<double>(n_);
    Matrix u = these.gc;
    for (std::size_t o = 0; o < these.count(); ++o) {
      const double p = these.p(i, o), weight = these.rho(i, o) / n;
      sum.tv += std::abs(p - these.mu0[o]) / 2;
      for (double& v : u.row(o)) v *= weight;
      if (p > 0) sum.together += (n * these.mu0[o] - p) * quadratic(L, u.row(o));
    }
    add(1, multiply(these.p, u), sum.means);
  }

  void enumerate(Affinity& out) {
    constexpr int kOutcomes = 1024;  // at a time
    const int S = finite_->outcomes(), d = shape_.d;
    const auto N = static_cast<std::size_t>(n_), dim = static_cast<std::size_t>(d);
    Buffer state(static_cast<std::size_t>(state_rows_) * kLanes),
        space(static_cast<std::size_t>(2 * d) * kLanes);
    const Out s{state.data(), state_rows_}, y{space.data(), d}, b{space.data() + d * kLanes, d};
    fill_cells(s, b);
    std::vector<Matrix> L;
    std::vector<Sums> sums(N);
    blocks([&](Lanes lanes) {
      const std::vector<double> Abar = mean_matrices(problem_, lanes);
      for (int l = 0; l < lanes.count; ++l) L.push_back(metric(Abar, l, dim));
    });
    for (Sums& sum : sums) sum.own = Vector(dim), sum.means = Matrix(N, dim);
    Matrix D(N, dim * dim);  // E D(s) by agent
    for (int o = 0; o < S; o += kOutcomes) {
      const Outcomes these = outcomes(o, std::min(S, o + kOutcomes), s, y, b, D);
      add_own(these, s, y, b, L, sums);
      for (std::size_t i = 0; i < N; ++i) add_others(these, i, L[i], sums[i]);
    }
    blocks([&](Lanes lanes) {
      const std::vector<double> Abar = mean_matrices(problem_, lanes);
      for (int l = 0; l < lanes.count; ++l) {
        const auto i = static_cast<std::size_t>(lanes.first + l);
        AgentAffinity& a = agent(out, lanes, l);
        Sums& sum = sums[i];
        take_environment(a.delta_cen, exact(sum.tv));
        Matrix Dbar(dim, dim);
        std::copy(D.row(i).begin(), D.row(i).end(), Dbar.all().begin());
        a.nu = exact(nu_of(Dbar, Abar, l));
        std::copy(sum.own.begin(), sum.own.end(), sum.means.row(i).begin());
        for (std::size_t j = 0; j < N; ++j) sum.together -= quadratic(L[i], sum.means.row(j));
        a.prediction = ratio(exact(sum.together / sum.alone), sum.noise, sum.size);
      }
    });
  }

  // ---- other problems: Monte Carlo ----
  void sample(Affinity& out) {
    const int d = shape_.d, R = options_.rounds;
    const auto dim = static_cast<std::size_t>(d);
    const auto N = static_cast<std::size_t>(n_);
    const Densities& densities = *problem_.densities();
    std::vector<std::vector<double>> alone(N), together(N), apart(N);
    std::vector<double> noise(N), size(N);
    std::vector<Matrix> L;
    blocks([&](Lanes lanes) {
      const std::vector<double> Abar = mean_matrices(problem_, lanes);
      for (int l = 0; l < lanes.count; ++l) L.push_back(metric(Abar, l, dim));
    });
    Vector own(dim), all(dim);
    constexpr int kBatches = 10;
    std::vector<std::vector<Matrix>> D(N, std::vector<Matrix>(kBatches, Matrix(dim, dim)));
    Store states(state_rows_, n_), directions(d, n_);
    std::vector<double> M(static_cast<std::size_t>(densities.p()) * static_cast<std::size_t>(d));
    Scratch scratch;
    for (int t = 0; t < R; ++t) {
      std::fill(M.begin(), M.end(), 0.0);
      blocks([&](Lanes lanes) {
        scratch.clear();
        const std::int64_t block = lanes.first / kLanes;
        const Out s = states.block(block)[{0, state_rows_}], gc = directions.block(block)[{0, d}],
                  b = scratch.rows(d);
        problem_.draw({{options_.seed, 0xffffffffu, static_cast<std::uint32_t>(t)}, {}},
                      worlds_.block(block), s);
        problem_.direction(lanes, s, {}, xc(), space_, gc);
        central_objective(lanes, s, b);
        subtract(gc, b, gc);
        densities.accumulate(lanes, s, gc, scratch, M.data());
      });
      for (double& m : M) m /= static_cast<double>(n_);
      blocks([&](Lanes lanes) {
        scratch.clear();
        const std::int64_t block = lanes.first / kLanes;
        const Out s = states.block(block)[{0, state_rows_}], gc = directions.block(block)[{0, d}];
        const Out g = scratch.rows(d), b = scratch.rows(d), rg = scratch.rows(d),
                  rho = scratch.rows(1);
        problem_.direction(lanes, s, {}, solution(lanes), space_, g);
        problem_.objective(lanes, s, b);
        subtract(g, b, g);
        densities.correct(lanes, M.data(), rg);
        densities.own(lanes, s, scratch, rho);
        const std::vector<Matrix> A = matrices(lanes, s);
        for (int l = 0; l < lanes.count; ++l) {
          const auto i = static_cast<std::size_t>(lanes.first + l);
          for (int r = 0; r < d; ++r) {
            const auto q = static_cast<std::size_t>(r);
            own[q] = g.row(r)[l];
            all[q] = g.row(r)[l] + (rg.row(r)[l] - gc.row(r)[l]);
            size[i] += std::pow(b.row(r)[l], 2);
          }
          noise[i] += squared_norm(own);
          alone[i].push_back(quadratic(L[i], own));
          together[i].push_back(quadratic(L[i], all));
          apart[i].push_back(std::max(0.0, 1 - 1 / rho.p[l]));  // E_mu^i of it is TV(mu^i, mu^0)
          add(1, modulus(A[static_cast<std::size_t>(l)]),
              D[i][static_cast<std::size_t>(t * kBatches / R)]);
        }
      });
    }
    blocks([&](Lanes lanes) {
      const std::vector<double> Abar = mean_matrices(problem_, lanes);
      for (int l = 0; l < lanes.count; ++l) {
        const auto i = static_cast<std::size_t>(lanes.first + l);
        AgentAffinity& a = out.agents[i];
        take_environment(a.delta_cen, densities.p() == 1 ? exact(0) : monte_carlo(apart[i]));
        std::vector<double> each;
        Matrix Dbar(dim, dim);
        for (const Matrix& part : D[i]) {
          each.push_back(nu_of(divided(part, R / kBatches), Abar, l));
          add(1, divided(part, R), Dbar);
        }
        a.nu = {nu_of(Dbar, Abar, l), monte_carlo(each).se, ""};
        const Estimate v = ratio_of_means(together[i], alone[i]);
        const double se = (v.hi - v.lo) / 2 / student_quantile((1 + kConfidence) / 2, R - 1);
        a.prediction = ratio({v.mean, se, ""}, noise[i], size[i]);
      }
    });
  }

  const Problem& problem_;
  AffinityOptions options_;
  Shape shape_;
  std::int64_t n_;
  const Means* means_;
  const Finite* finite_;
  const Truth* truth_;
  Store worlds_;
  Scratch space_;
  std::vector<double> cells_;  // sums of the values of a table of objectives, and of their weights
  int state_rows_ = 0;
};

}  // namespace

Affinity affinity(const Problem& problem, const AffinityOptions& options) {
  return Measure(problem, options)();
}

}  // namespace affpcl
