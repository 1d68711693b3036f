#include "affpcl/table/moments.h"

namespace affpcl {

void Moments::add(std::size_t i, std::span<const double> x, double y) {
  double* const a = A.data() + at(i) * d * d;
  double* const v = b.data() + at(i) * d;
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) a[j * d + k] += x[j] * x[k];
    v[j] += x[j] * y;
  }
  yy[at(i)] += y * y;
  rows[at(i)] += 1;
}

double Moments::total_rows() const {
  double sum = 0;
  for (double r : rows) sum += r;
  return sum;
}

}  // namespace affpcl
