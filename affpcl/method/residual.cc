#include "affpcl/method/residual.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind Residual::kind() {
  return method_kind_of<Residual>(
      "residual", "a common model, and on top of it what each agent's own samples add");
}

void Residual::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  x_ = agent.add("x", setup.problem.shape().d);
  w_ = centre.add("w", x_.rows);
  moved_ = sum.add("moved", x_.rows);
}

void Residual::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(w_), problem.start_xc());
}

void Residual::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                          Message message) const {
  message.add(moved_, local_displacement(round, agents.lanes, batch, centre[w_]));
}

void Residual::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(w_), mean[moved_]);
}

// As w moves, so does w + u_i.
void Residual::update(const Round& round, const Batch& batch, Agents agents, Centre,
                      Mean mean) const {
  add_scaled(agents[x_], 1, mean[moved_]);
  local_steps(round, agents.lanes, batch, agents[x_]);
}

}  // namespace affpcl
