#include "affpcl/math/blocks.h"

#include <algorithm>
#include <new>

namespace affpcl {
namespace {

// Calls f(r, row of a) with the row spread out if all agents share it, so that every loop below is
// over plain numbers.
template <class F>
void each_row(In a, int lanes, F f) {
  alignas(64) double spread[kLanes];
  for (int r = 0; r < a.rows; ++r) {
    if (a.width == 1) {
      std::fill_n(spread, lanes, a.p[r]);
      f(r, static_cast<const double*>(spread));
    } else {
      f(r, a.row(r));
    }
  }
}

}  // namespace

Field Layout::add(std::string_view name, int rows) {
  const Field f{rows_, rows};
  fields_.push_back({std::string(name), f});
  rows_ += rows;
  return f;
}

void Buffer::Free::operator()(double* p) const { ::operator delete[](p, std::align_val_t{64}); }

Buffer::Buffer(std::size_t size)
    : p_(size == 0
             ? nullptr
             : static_cast<double*>(::operator new[](size * sizeof(double), std::align_val_t{64}))),
      size_(size) {
  std::fill_n(p_.get(), size, 0.0);
}

Store::Store(int rows, std::int64_t agents)
    : rows_(rows),
      agents_(agents),
      data_(static_cast<std::size_t>(blocks_of(agents) * rows * kLanes)) {}

Agents Store::block(std::int64_t b) const {
  return {lanes_of(b, agents_), data_.data() + b * rows_ * kLanes};
}

Out Scratch::rows(int n) { return {numbers(static_cast<std::size_t>(n) * kLanes), n, lanes_}; }

double* Scratch::numbers(std::size_t n) {
  n = (n + 7) / 8 * 8;  // keeps every piece on a 64-byte line
  while (chunk_ < chunks_.size() && used_ + n > chunks_[chunk_].size()) ++chunk_, used_ = 0;
  if (chunk_ == chunks_.size()) chunks_.emplace_back(std::max<std::size_t>(n, 1 << 14));
  double* p = chunks_[chunk_].data() + used_;
  used_ += n;
  return p;
}

void copy(In from, Out to) {
  each_row(from, to.lanes, [&](int r, const double* a) { std::copy_n(a, to.lanes, to.row(r)); });
}

void fill(Out to, double value) {
  for (int r = 0; r < to.rows; ++r) std::fill_n(to.row(r), to.lanes, value);
}

void subtract(In a, In b, Out to) {
  each_row(a, to.lanes, [&](int r, const double* x) {
    double* y = to.row(r);
    if (b.width == 1) {
      const double v = b.p[r];
      for (int l = 0; l < to.lanes; ++l) y[l] = x[l] - v;
    } else {
      const double* v = b.row(r);
      for (int l = 0; l < to.lanes; ++l) y[l] = x[l] - v[l];
    }
  });
}

void add_scaled(Out y, double a, In x) {
  each_row(x, y.lanes, [&](int r, const double* v) {
    double* w = y.row(r);
    for (int l = 0; l < y.lanes; ++l) w[l] += a * v[l];
  });
}

void descend(Out x, In step, In g) {
  each_row(step, x.lanes, [&](int, const double* alpha) {
    for (int r = 0; r < x.rows; ++r) {
      double* w = x.row(r);
      const double* v = g.row(r);
      if (g.width == 1) {
        for (int l = 0; l < x.lanes; ++l) w[l] -= alpha[l] * v[0];
      } else {
        for (int l = 0; l < x.lanes; ++l) w[l] -= alpha[l] * v[l];
      }
    }
  });
}

void squared_distance(In a, In b, Out one_row) {
  double* sum = one_row.row(0);
  std::fill_n(sum, one_row.lanes, 0.0);
  each_row(a, one_row.lanes, [&](int r, const double* x) {
    const double* y = b.row(r);
    if (b.width == 1) {
      for (int l = 0; l < one_row.lanes; ++l) sum[l] += (x[l] - y[0]) * (x[l] - y[0]);
    } else {
      for (int l = 0; l < one_row.lanes; ++l) sum[l] += (x[l] - y[l]) * (x[l] - y[l]);
    }
  });
}

}  // namespace affpcl
