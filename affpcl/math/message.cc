#include "affpcl/math/message.h"

#include "affpcl/math/kernels.h"

namespace affpcl {

void Message::add(Field field, In rows) const {
  for (int r = 0; r < field.rows; ++r)
    leaf_[field.at + r] +=
        rows.width == 1 ? rows.p[r] * lanes_.count : kernels::lane_sum(rows.row(r), lanes_.count);
}

void Message::add(Product product, In psi, In g) const {
  kernels::add_product(psi, g, lanes_.count, at(product));
}

}  // namespace affpcl
