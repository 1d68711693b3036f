#include "affpcl/method/central_path.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

void CentralPath::declare(Field x, Field theta, SumLayout& sum) {
  x_ = x, theta_ = theta;
  dx_ = sum.add("dx", x.rows);
  if (theta.rows > 0) dtheta_ = sum.add("dtheta", theta.rows);
}

void CentralPath::centre(Mean mean, Centre centre) const {
  shift(centre.mutate(x_), mean[dx_]);
  shift(centre.mutate(theta_), mean[dtheta_]);
}

CentralPath::Walk::Walk(const CentralPath& path, const Block& block, Message message)
    : path_(path), block_(block), message_(message), several_(block.batch.steps > 1) {
  if (!several_) return;
  Scratch& scratch = block.scratch();
  dx_ = scratch.rows(path.x_.rows), dtheta_ = scratch.rows(path.theta_.rows);
  x_ = scratch.rows(path.x_.rows), theta_ = scratch.rows(path.theta_.rows);
  fill(dx_, 0);
  fill(dtheta_, 0);
}

void CentralPath::Walk::begin(int k) {
  k_ = k;
  const Round& round = block_.round;
  alpha_x_ = round.step.central.at(round.first + k) / block_.batch.samples(k);
  alpha_theta_ = round.step.objective.at(round.first + k) / block_.batch.samples(k);
  if (k == 0) return;
  copy(block_.centre[path_.x_], x_), add_scaled(x_, 1, dx_);
  copy(block_.centre[path_.theta_], theta_), add_scaled(theta_, 1, dtheta_);
}

void CentralPath::Walk::move(Field sum, Out by, double alpha, In g) {
  if (several_) return descend(by, alpha, g);
  message_.add(sum, g, -alpha);
}
void CentralPath::Walk::move_x(In g) { move(path_.dx_, dx_, alpha_x_, g); }
void CentralPath::Walk::move_theta(In g) {
  if (path_.theta_.rows > 0) move(path_.dtheta_, dtheta_, alpha_theta_, g);
}

void CentralPath::Walk::end() {
  if (!several_) return;
  message_.add(path_.dx_, dx_);
  message_.add(path_.dtheta_, dtheta_);
}

}  // namespace affpcl
