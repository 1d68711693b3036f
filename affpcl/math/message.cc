#include "affpcl/math/message.h"

#include "affpcl/math/kernels.h"

namespace affpcl {

void Message::add(Field field, In rows, double factor) const {
  if (rows.width == kLanes)
    return kernels::add_lane_sums({rows.p, field.rows}, lanes_.count, factor, leaf_ + field.at);
  for (int r = 0; r < field.rows; ++r) leaf_[field.at + r] += factor * rows.p[r] * lanes_.count;
}

void Message::add(Product product, In psi, In g) const {
  if (psi.p == g.p && psi.rows == g.rows && psi.width == kLanes)
    return kernels::add_square(psi, lanes_.count, at(product));
  kernels::add_product(psi, g, lanes_.count, at(product));
}

}  // namespace affpcl
