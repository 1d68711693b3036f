#include "affpcl/problem/present.h"

#include "affpcl/problem/problem.h"

namespace affpcl {

const Densities* Present::densities(const Problem& problem) const {
  const Densities* of_all = problem.densities();
  if (of_all == nullptr) return nullptr;
  std::call_once(made_->once, [&] { made_->densities = of_all->among(*this); });
  return made_->densities.get();
}

void Present::begin() { made_ = std::make_shared<Made>(); }

}  // namespace affpcl
