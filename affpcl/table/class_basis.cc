#include "affpcl/table/class_basis.h"

#include <cmath>

namespace affpcl {

Matrix class_basis(std::size_t classes) {  // Helmert's contrasts
  Matrix B(classes, classes - 1);
  for (std::size_t a = 0; a + 1 < classes; ++a) {
    const auto before = static_cast<double>(a + 1);
    const double length = std::sqrt(before * (before + 1));
    for (std::size_t k = 0; k <= a; ++k) B(k, a) = 1 / length;
    B(a + 1, a) = -before / length;
  }
  return B;
}

}  // namespace affpcl
