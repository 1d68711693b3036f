#include "affpcl/math/blocks.h"

#include <algorithm>
#include <new>
#include <utility>

namespace affpcl {
Field Layout::add(std::string_view name, int rows, int below) {
  const Field f{rows_, rows};
  fields_.push_back({std::string(name), f, below});
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

Store::Store(int rows, std::int64_t agents) : Store(rows, agents, 0, blocks_of(agents)) {}
Store::Store(int rows, std::int64_t agents, std::int64_t first_block, std::int64_t last_block)
    : rows_(rows),
      agents_(agents),
      first_(first_block),
      data_(static_cast<std::size_t>((last_block - first_block) * rows * kLanes)) {}

void Store::keep(std::int64_t first_block, std::int64_t last_block) {
  Store kept(rows_, agents_, first_block, last_block);
  const std::span<double> to = kept.all();
  if (!to.empty()) std::copy_n(block(first_block).p, to.size(), to.begin());
  *this = std::move(kept);
}

void Scratch::next_chunk(std::size_t n) {
  while (chunk_ < chunks_.size() && used_ + n > chunks_[chunk_].size()) ++chunk_, used_ = 0;
  if (chunk_ == chunks_.size()) chunks_.emplace_back(std::max<std::size_t>(n, 1 << 13));
}

}  // namespace affpcl
