#include "affpcl/problem/rank_one.h"

#include <algorithm>

namespace affpcl {

void dot(In w, In x, int lanes, double* sum) {
  std::fill_n(sum, lanes, 0.0);
  for (int r = 0; r < w.rows; ++r) {
    const double* a = w.row(r);
    if (x.width == 1) {
      const double b = x.p[r];
      for (int l = 0; l < lanes; ++l) sum[l] += a[l] * b;
    } else {
      const double* b = x.row(r);
      for (int l = 0; l < lanes; ++l) sum[l] += a[l] * b[l];
    }
  }
}

void scale(In v, const double* factor, Out out) {
  for (int r = 0; r < v.rows; ++r)
    for (int l = 0; l < out.lanes; ++l) out.row(r)[l] = v.row(r)[l] * factor[l];
}

void outer(In v, In w, In x, Out out) {
  alignas(64) double sum[kLanes];
  dot(w, x, out.lanes, sum);
  scale(v, sum, out);
}

}  // namespace affpcl
