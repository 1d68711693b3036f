#include "affpcl/density/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"
#include "affpcl/math/statistics.h"
#include "affpcl/problem/some_agents.h"

namespace affpcl {
namespace {

// Any number that is not likely to be a run's own.
constexpr std::uint64_t kPilotSeed = 0x9e3779b97f4a7c15;

int state_rows(const Problem& problem) {
  Layout world, sample;
  problem.declare(world, sample);
  return sample.rows();
}

class ProblemFeatures final : public Features {
 public:
  explicit ProblemFeatures(int p) : p_(p) {}
  int p() const override { return p_; }
  void operator()(const Problem& problem, Lanes lanes, In s, Out psi) const override {
    problem.facets().features->psi(lanes, s, psi);
  }

 private:
  int p_;
};

class OneHot final : public Features {
 public:
  explicit OneHot(int cells) : cells_(cells) {}
  int p() const override { return cells_; }
  void operator()(const Problem& problem, Lanes lanes, In s, Out psi) const override {
    double cell[kLanes];
    problem.ratio_cells()->cell(lanes, s, {cell, 1});
    fill(psi, 0);
    for (int l = 0; l < lanes.count; ++l)
      if (cell[l] >= 0) psi.row(static_cast<int>(cell[l]))[l] = 1;
  }

 private:
  int cells_;
};

class Polynomial final : public Features {
 public:
  Polynomial(int rows, int degree) : rows_(rows), degree_(degree) {}
  int p() const override { return 1 + rows_ + (degree_ > 1 ? rows_ * (rows_ + 1) / 2 : 0); }
  void operator()(const Problem&, Lanes, In s, Out psi) const override {
    int at = 0;
    std::fill_n(psi.row(at++), kLanes, 1.0);
    for (int a = 0; a < rows_; ++a) std::copy_n(s.row(a), kLanes, psi.row(at++));
    for (int a = 0; a < rows_ && degree_ > 1; ++a)
      for (int b = 0; b <= a; ++b, ++at)
        for (int l = 0; l < kLanes; ++l) psi.row(at)[l] = s.row(a)[l] * s.row(b)[l];
  }

 private:
  int rows_, degree_;
};

class Fourier final : public Features {
 public:
  Fourier(int rows, int p, double width) : rows_(rows), p_(p) {
    const Key key{kPilotSeed, 0, 0};
    for (int k = 0; k < p - 1; ++k) {
      for (int r = 0; r < rows; ++r)
        w_.push_back(normal(key, k, Purpose::kFeatures, static_cast<std::uint32_t>(r)) / width);
      phase_.push_back(2 * std::numbers::pi *
                       uniform({kPilotSeed, 0, 1}, k, Purpose::kFeatures, 0));
    }
  }
  int p() const override { return p_; }
  void operator()(const Problem&, Lanes, In s, Out psi) const override {
    std::fill_n(psi.row(0), kLanes, 1.0);
    const Out waves{psi.row(1), p_ - 1};
    kernels::matvec(w_.data(), p_ - 1, rows_, s, waves);
    for (int k = 0; k < p_ - 1; ++k)
      for (int l = 0; l < kLanes; ++l)
        waves.row(k)[l] = std::cos(waves.row(k)[l] + phase_[static_cast<std::size_t>(k)]);
  }

 private:
  int rows_, p_;
  std::vector<double> w_, phase_;
};

class Bumps final : public Features {
 public:
  // -|s - c|^2 / (2 width^2) up to what all bumps share is s'c / width^2 - |c|^2 / (2 width^2).
  Bumps(int rows, const std::vector<double>& centres, double width)
      : rows_(rows), p_(static_cast<int>(centres.size()) / rows) {
    for (int k = 0; k < p_; ++k) {
      double square = 0;
      for (int r = 0; r < rows; ++r) {
        const double c = centres[static_cast<std::size_t>(k * rows + r)] / width;
        w_.push_back(c / width);
        square += c * c;
      }
      bias_.push_back(-square / 2);
    }
  }
  int p() const override { return p_; }
  void operator()(const Problem&, Lanes, In s, Out psi) const override {
    kernels::matvec(w_.data(), p_, rows_, s, psi);
    kernels::softmax(psi, bias_.data());
  }

 private:
  int rows_, p_;
  std::vector<double> w_, bias_;
};

// `count` samples, one after the other, of agents taken in turn.
std::vector<double> pilot_samples(const Problem& problem, int count) {
  need_all_agents(problem, "a ratio with features from a sample of all agents needs");
  const int rows = state_rows(problem);
  const std::int64_t n = problem.shape().agents;
  Layout world, sample;
  problem.declare(world, sample);
  std::vector<double> out;
  Buffer s(static_cast<std::size_t>(rows) * kLanes);
  // Many agents: blocks from evenly spaced places of the list, so that all kinds of agents appear.
  const std::int64_t blocks = std::min<std::int64_t>(blocks_of(n), 16);
  Store worlds(world.rows(), n);
  for (std::uint32_t step = 0; static_cast<int>(out.size()) < count * rows; ++step)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Agents block = worlds.block(b * blocks_of(n) / blocks);
      problem.draw({{kPilotSeed, 0,
                     step % static_cast<std::uint32_t>(
                                std::min<std::int64_t>(most_samples(problem), UINT32_MAX))},
                    {}},
                   block, {s.data(), rows});
      for (int l = 0; l < block.lanes.count && static_cast<int>(out.size()) < count * rows; ++l)
        for (int r = 0; r < rows; ++r) out.push_back(s.data()[r * kLanes + l]);
    }
  return out;
}

// The median distance between pilot samples; 1 where they are all the same.
double median_distance(const std::vector<double>& samples, int rows) {
  const int count = std::min(static_cast<int>(samples.size()) / rows, 200);
  std::vector<double> distances;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j) {
      double square = 0;
      for (int r = 0; r < rows; ++r) {
        const double gap = samples[static_cast<std::size_t>(i * rows + r)] -
                           samples[static_cast<std::size_t>(j * rows + r)];
        square += gap * gap;
      }
      distances.push_back(std::sqrt(square));
    }
  const double m = median(std::move(distances));
  return m > 0 ? m : 1;
}

// Farthest-point order would favour outliers; the first samples are spread as the samples are.
std::unique_ptr<Features> made_of_samples(const FeatureConfig& config, const Problem& problem) {
  if (problem.shape().acts)
    throw BadInput(fmt::format(
        "features = \"{}\" needs samples before the run, but here they depend on the iterate",
        name_of(config.kind)));
  const int rows = state_rows(problem);
  std::vector<double> pilot = pilot_samples(problem, std::max(config.p, 200));
  const double width = config.width > 0 ? config.width : median_distance(pilot, rows);
  if (config.kind == FeatureConfig::Kind::kFourier)
    return std::make_unique<Fourier>(rows, config.p, width);
  pilot.resize(static_cast<std::size_t>(config.p * rows));
  return std::make_unique<Bumps>(rows, pilot, width);
}

void refuse_what_is_not_finite(const Features& features, const Problem& problem) {
  const int rows = state_rows(problem);
  Buffer s(static_cast<std::size_t>(rows) * kLanes),
      psi(static_cast<std::size_t>(features.p()) * kLanes);
  const Finite* finite = problem.finite();
  for (int outcome = 0; finite != nullptr && outcome < finite->outcomes(); ++outcome) {
    finite->outcome({0, 1}, outcome, {s.data(), rows});
    features(problem, {0, 1}, {s.data(), rows}, {psi.data(), features.p()});
    for (int k = 0; k < features.p(); ++k)
      if (!std::isfinite(psi.data()[k * kLanes]))
        throw BadInput(fmt::format("feature {} of the ratio is {} at state {}", k,
                                   psi.data()[k * kLanes], outcome));
  }
}

}  // namespace

const Params<FeatureConfig>& FeatureConfig::params() {
  using Config = FeatureConfig;
  static const Params<Config> kParams = {
      {"features", &Config::kind,
       "linear ratios: psi; auto takes the problem's, else one-hot, else bumps"},
      {"p", &Config::p, "linear ratios: number of fourier features or bumps", between(2, 4096)},
      {"degree", &Config::degree, "linear ratios: degree of polynomial features", between(1, 2)},
      {"width", &Config::width,
       "linear ratios: width of fourier features and bumps; 0 is the samples' median distance",
       at_least(0)},
  };
  return kParams;
}

std::unique_ptr<Features> make_features(const FeatureConfig& config, const Problem& problem) {
  using Kind = FeatureConfig::Kind;
  FeatureConfig c = config;
  const int offered = problem.shape().p,
            cells = problem.ratio_cells() != nullptr ? problem.ratio_cells()->cells() : 0;
  if (c.kind == Kind::kAuto)
    c.kind = offered > 0 ? Kind::kProblem : cells > 0 ? Kind::kOneHot : Kind::kBumps;
  std::unique_ptr<Features> features;
  if (c.kind == Kind::kProblem) {
    if (offered == 0)
      throw BadInput("features = \"problem\" needs a problem that offers psi; this one does not");
    features = std::make_unique<ProblemFeatures>(offered);
  } else if (c.kind == Kind::kOneHot) {
    if (cells == 0)
      throw BadInput("features = \"one-hot\" needs a problem with finitely many states");
    features = std::make_unique<OneHot>(cells);
  } else if (c.kind == Kind::kPolynomial) {
    features = std::make_unique<Polynomial>(state_rows(problem), c.degree);
  } else {
    features = made_of_samples(c, problem);
  }
  refuse_what_is_not_finite(*features, problem);
  return features;
}

}  // namespace affpcl
