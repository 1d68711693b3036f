#include "affpcl/method/common_model.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

void CommonModel::declare(const Setup& setup, Layout& centre, SumLayout& sum,
                          std::string_view name) {
  w_ = centre.add(name, setup.problem.shape().d);
  moved_ = sum.add("moved", w_.rows);
}

void CommonModel::start(const Problem& problem, Centre centre) const {
  set(centre.mutate(w_), central_start(problem).x);
}

void CommonModel::contribute(const Block& block, Message message, double pull) const {
  message.add(moved_, local_displacement(block, w(block.centre), pull));
}

void CommonModel::centre(Mean mean, Centre centre) const { shift(centre.mutate(w_), mean[moved_]); }

}  // namespace affpcl
