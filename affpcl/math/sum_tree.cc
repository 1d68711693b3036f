#include "affpcl/math/sum_tree.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "affpcl/math/kernels.h"

namespace affpcl {

Buffer& SumTree::next() {
  if (slots_.size() == nodes_.size()) slots_.emplace_back(width_);
  return slots_[nodes_.size()];
}

double* SumTree::open() {
  double* p = next().data();
  std::fill_n(p, width_, 0.0);
  return p;
}

void SumTree::push(int level, std::int64_t index) {
  nodes_.push_back({level, index});
  // A right child whose left sibling is here: add, go up, look again.
  while (nodes_.size() >= 2) {
    const Node right = nodes_.back();
    Node& left = nodes_[nodes_.size() - 2];
    if (right.index % 2 == 0 || left.level != right.level || left.index + 1 != right.index) break;
    kernels::add(slots_[nodes_.size() - 1].data(), width_, slots_[nodes_.size() - 2].data());
    nodes_.pop_back();
    ++left.level;
    left.index /= 2;
  }
}

void SumTree::append(SumTree&& other) {
  taken_ += other.taken_;
  for (std::size_t i = 0; i < other.nodes_.size(); ++i) {
    std::swap(other.slots_[i], next());
    push(other.nodes_[i].level, other.nodes_[i].index);
  }
  other.clear();
}

const double* SumTree::append(Leaves run, const double* numbers) {
  taken_ += run.count();
  for (const Node& node : largest_nodes(run)) {
    std::copy_n(numbers, width_, next().data());
    numbers += width_;
    push(node.level, node.index);
  }
  return numbers;
}

void SumTree::write(std::span<double> numbers) const {
  if (numbers.size() != nodes_.size() * width_)
    throw std::logic_error("nodes of a sum that nobody expects");
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    std::copy_n(slots_[i].data(), width_, numbers.data() + i * width_);
}

std::vector<SumTree::Node> largest_nodes(Leaves run) {
  std::vector<SumTree::Node> nodes;
  while (run.first < run.last) {
    int level = 0;  // the largest that begins here and ends within the run
    while (run.first % (std::int64_t{2} << level) == 0 &&
           run.first + (std::int64_t{2} << level) <= run.last)
      ++level;
    nodes.push_back({level, run.first >> level});
    run.first += std::int64_t{1} << level;
  }
  return nodes;
}

const double* SumTree::finish(std::int64_t leaves) {
  if (nodes_.empty()) throw std::logic_error("a sum without leaves");
  // The ragged right edge: the last node has no right sibling, so it goes up until it is one.
  while (nodes_.size() > 1) {
    const Node last = nodes_.back();
    if (last.index % 2 != 0) break;  // its left sibling never came
    nodes_.pop_back();
    push(last.level + 1, last.index / 2);
  }
  if (nodes_.size() != 1 || nodes_.front().index != 0 || taken_ != leaves)
    throw std::logic_error("leaves are missing from a sum");
  return slots_.front().data();
}

}  // namespace affpcl
