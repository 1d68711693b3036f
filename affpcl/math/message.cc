#include "affpcl/math/message.h"

#include "affpcl/math/kernels.h"

namespace affpcl {

void Message::add(Field field, In rows, double factor) const {
  if (whole_ && rows.width == kLanes)
    return kernels::add_lane_sums({rows.p, field.rows}, lanes_.count, factor, to_ + field.at);
  if (whole_) {
    for (int r = 0; r < field.rows; ++r) to_[field.at + r] += factor * rows.p[r] * lanes_.count;
    return;
  }
  each_lane(present_, [&](int l) {
    double* to = to_ + l * stride_ + field.at;
    for (int r = 0; r < field.rows; ++r) to[r] += factor * rows.at(r, l);
  });
}

void Message::add(Product product, In psi, In g) const {
  if (whole_ && psi.p == g.p && psi.rows == g.rows && psi.width == kLanes)
    return kernels::add_square(psi, lanes_.count, at(product, 0));
  if (whole_) return kernels::add_product(psi, g, lanes_.count, at(product, 0));
  each_lane(present_, [&](int l) {
    double* to = at(product, l);
    for (int a = 0; a < product.p; ++a) {
      const double weight = psi.at(a, l);
      for (int b = 0; b < product.d; ++b) *to++ += weight * g.at(b, l);
    }
  });
}

}  // namespace affpcl
