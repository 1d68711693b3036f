#include "affpcl/affinity/join_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/affinity/new_rows.h"
#include "affpcl/base/error.h"
#include "affpcl/mixed/glmm_solver.h"
#include "affpcl/mixed/joined.h"
#include "affpcl/mixed/penalised.h"

namespace affpcl {
namespace {

constexpr std::size_t kDraws = 200;    // of coefficients
constexpr std::size_t kNewRows = 200;  // the same for all of them

class JoinFamilies {
 public:
  JoinFamilies(const Frame& frame, const PilotOptions& options, Team& team)
      : frame_(frame),
        options_(options),
        team_(team),
        likelihood_(frame.encoding.family, frame.encoding.classes.size()),
        rows_(glmm_rows(frame, kAllRows, team)),
        learnt_(joined_glmm(*options.centre, frame.y_mean[0], frame.y_sd[0], rows_, likelihood_,
                            team)) {}

  PilotResult result() const {
    PilotResult r = begin_join(frame_, *options_.centre);
    r.covariance.assign(likelihood_.basis().rows(), learnt_.best.covariance);
    team_.each(static_cast<std::int64_t>(r.agents.size()), [&](std::int64_t i, int) {
      if (options_.stop != nullptr && *options_.stop) throw Interrupted();
      forecast(static_cast<std::size_t>(i), r.agents[static_cast<std::size_t>(i)]);
    });
    count_prospects(r);
    return r;
  }

 private:
  std::span<const double> psi() const { return learnt_.best.point.psi; }

  // Linear predictors of a row.
  Vector eta_of(const Vector& z, std::span<const double> x, std::size_t known_row) const {
    Vector eta(likelihood_.predictors());
    for (std::size_t a = 0; a < eta.size(); ++a) {
      eta[a] = dot(x.subspan(a * frame_.d, frame_.d), z);
      if (!frame_.offset.empty()) eta[a] += frame_.offset[a * frame_.rows + known_row];
    }
    return eta;
  }

  // What a model predicts: its coefficients' uncertainty is integrated out, as predict does.
  Vector predicted(const Vector& z, std::span<const double> x, MatrixView cov,
                   std::size_t known_row) const {
    const Matrix& basis = likelihood_.basis();
    const std::size_t d = frame_.d, m = likelihood_.predictors();
    Matrix V(m, m);
    for (std::size_t a = 0; a < m; ++a)
      for (std::size_t b = 0; b < m; ++b)
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t k = 0; k < d; ++k) {
            const std::size_t r = a * d + j, s = b * d + k;
            V(a, b) += z[j] * cov(std::max(r, s), std::min(r, s)) * z[k];
          }
    Vector variances;
    for (std::size_t c = 0; c < basis.rows(); ++c)
      variances.push_back(dot(basis.row(c), multiply(V, basis.row(c))));
    return expected_mean(likelihood_, psi(), multiply(basis, eta_of(z, x, known_row)), variances);
  }

  // The expected loss of predictions where these are true; of a deviance, beyond that of the truth.
  double expected_loss(const Vector& truth, const Vector& prediction) const {
    const Family family = frame_.encoding.family;
    if (family == Family::kBinomial) return likelihood_.loss(psi(), truth[1], 1, prediction.data());
    double sum = 0;
    for (std::size_t k = 0; k < truth.size() && has_classes(family); ++k)
      sum += truth[k] * likelihood_.loss(psi(), static_cast<double>(k), 1, prediction.data());
    return has_classes(family) ? sum : likelihood_.loss(psi(), truth[0], 1, prediction.data());
  }
  // That of the truth itself: of a deviance about 1.
  double least_loss(const Vector& truth) const {
    if (has_classes(frame_.encoding.family)) return expected_loss(truth, truth);
    return frame_.encoding.numeric() ? likelihood_.variance(psi(), truth[0]) : 1;
  }

  void forecast(std::size_t i, AgentPilot& agent) const {
    const std::size_t held = rows_.at(i), from = frame_.begin(i, 0), count = frame_.agent_rows(i);
    agent.rows = agent.used = count;
    std::vector<std::size_t> known(count);
    for (std::size_t r = 0; r < count; ++r) known[r] = from + r;
    const NewRows law(frame_, known);
    const Posterior own = glmm_posterior(learnt_, held);
    const Penalised alone = fit_penalised(rows_, likelihood_, psi(), held);
    const std::size_t p = own.x.size();
    const MatrixView cov(own.cov.data(), p, p);
    const Matrix root = semidefinite_root(cov);
    const double unit = frame_.encoding.numeric() ? frame_.y_sd[0] * frame_.y_sd[0] : 1;
    const auto id = static_cast<std::int64_t>(i);

    Matrix truths(kDraws, p);
    Vector z(p);
    for (std::size_t s = 0; s < kDraws; ++s) {
      const Key key{.seed = options_.seed, .replicate = static_cast<std::uint32_t>(s), .step = 0};
      for (std::size_t j = 0; j < p; ++j)
        z[j] = normal(key, id, Purpose::kMethod, static_cast<std::uint32_t>(j));
      std::copy(own.x.begin(), own.x.end(), truths.row(s).begin());
      add_product(1, transposed(root), z, truths.row(s));
    }
    std::vector<double> own_loss(kDraws), alone_loss(kDraws), noise(kDraws);
    Vector numbers(frame_.d), truth(likelihood_.outputs());
    for (std::size_t r = 0; r < kNewRows; ++r) {
      const Key key{.seed = options_.seed, .replicate = static_cast<std::uint32_t>(r), .step = 1};
      for (std::size_t j = 0; j < numbers.size(); ++j)
        numbers[j] = normal(key, id, Purpose::kSample, static_cast<std::uint32_t>(j));
      const Vector row = law.row(law.draw_mean(key, id), numbers);
      const std::size_t like = from + r % count;  // its offset is that of a row of the agent
      const Vector by_own = predicted(row, own.x, cov, like);
      const Vector by_alone = predicted(row, alone.x, alone.inverse, like);
      for (std::size_t s = 0; s < kDraws; ++s) {
        likelihood_.mean(psi(), eta_of(row, truths.row(s), like).data(), truth.data());
        const double least = least_loss(truth), share = unit / kNewRows;
        const double beyond = has_classes(frame_.encoding.family) ? least : 0;
        own_loss[s] += share * (expected_loss(truth, by_own) - beyond);
        alone_loss[s] += share * (expected_loss(truth, by_alone) - beyond);
        noise[s] += share * least;
      }
    }
    compare(own_loss, alone_loss, noise, agent);
  }

  const Frame& frame_;
  const PilotOptions& options_;
  Team& team_;
  Likelihood likelihood_;
  GlmmRows rows_;
  GlmmLearnt learnt_;
};

}  // namespace

PilotResult join_families(const Frame& frame, const PilotOptions& options, Team& team) {
  if (options.share < 1)
    throw BadInput(
        fmt::format("`pilot {}` needs a gaussian `centre`: with family {} all rows are used",
                    options.share, to_text(frame.encoding.family)));
  return JoinFamilies(frame, options, team).result();
}

}  // namespace affpcl
