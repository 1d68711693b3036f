#include "affpcl/mixed/joined.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr double kLeastShare = 1e-13;  // of the trace: keeps rounding out of a Cholesky factor

// In units of targets shifted by mean and divided by sd; D has the uncertainty of x_c in it.
CentreForm scaled(CentreForm form, double mean, double sd) {
  const double unit = sd * sd;
  form.x[0] -= mean;
  divide(form.x, sd);
  add(form.cov, form.D);
  divide(form.D, unit);
  divide(form.D_cov, unit * unit);
  form.s2 /= unit;
  return form;
}

}  // namespace

Learnt joined_learnt(const ChannelModel& centre, double mean, double sd, const Moments& moments) {
  const std::size_t d = moments.d;
  Learnt learnt;
  learnt.law = centre.usual.empty() ? AgentLaw::plain() : AgentLaw{centre.usual, centre.outlying};
  learnt.moments = moments;
  learnt.noise.assign(moments.held(), 1.0);
  for (const CentreForm& published : centre.forms) {
    const CentreForm form = scaled(published, mean, sd);
    Decomposition model;
    model.covariance = form.covariance;
    model.variances = {form.D, form.s2};
    model.centre = form.x;
    model.centre_cov.assign(d * d, 0.0);
    model.variance_cov = form.D_cov;
    Matrix root = root_of(as_matrix(form.D, d), is_diagonal(as_matrix(form.D, d)));
    learnt.forms.push_back({std::move(model), std::move(root), form.weight});
  }
  for (const WeightedForm& form : learnt.forms) learnt.tried.push_back(form.model);
  return learnt;
}

Learnt joined_agents(const ChannelModel& centre, double mean, double sd, const Moments& moments,
                     Team& team) {
  Learnt learnt = joined_learnt(centre, mean, sd, moments);
  if (learnt.law.is_plain()) return learnt;
  LearntLaw found = agents_under(learnt.law, moments, learnt.best(), team);
  learnt.moments = divided(moments, found);
  learnt.noise = std::move(found.noise);
  return learnt;
}

std::vector<double> joined_unseen(const ChannelModel& centre, double mean, double sd) {
  std::vector<double> x = centre.centre.x;
  for (std::size_t j = 0; j < x.size(); ++j)
    x[j] += centre.pooled_weight * (centre.pooled[j] - centre.centre.x[j]);
  x[0] -= mean;
  divide(x, sd);
  return x;
}

GlmmLearnt joined_glmm(const Model& centre, double mean, double sd, const GlmmRows& rows,
                       const Likelihood& likelihood, Team& team) {
  const CentreForm form = scaled(centre.forms[0], mean, sd);
  const std::size_t p = form.x.size();
  GlmmLearnt learnt;
  learnt.predictors = likelihood.predictors();
  learnt.columns = rows.d;
  learnt.random.resize(rows.d);
  std::iota(learnt.random.begin(), learnt.random.end(), 0);
  Glmm& best = learnt.best;
  best.covariance = form.covariance;
  best.D = Matrix(as_matrix(form.D, p));
  best.spread_cov = Matrix(as_matrix(form.D_cov, p));
  best.centre_cov = Matrix(p, p);
  best.point.centre = form.x;
  best.point.psi = centre.psi;
  if (centre.encoding.numeric()) best.point.psi[0] -= 2 * std::log(sd);
  Matrix padded = best.D;
  add_to_diagonal(kLeastShare * trace(padded), padded);
  best.point.root = transpose(Cholesky(padded).upper());
  GlmmEvidence evidence(rows, likelihood, {.random = learnt.random, .bound = centre.variational},
                        team);
  evidence(best.point, false);
  learnt.modes = evidence.modes();
  learnt.curvatures = evidence.curvatures();
  return learnt;
}

void take_centre(const Model& centre, Model& model) {
  model.channels = centre.channels;
  model.restricted = centre.restricted;
  model.psi = centre.psi;
  model.log_likelihood = centre.log_likelihood;
  model.parameters = centre.parameters;
  model.forms = centre.forms;
  model.variational = centre.variational;
  model.noise = centre.noise;
  model.centre_agents = centre.centre_agents, model.centre_rows = centre.centre_rows;
  model.joined = true;
}

}  // namespace affpcl
