// The one collective: a sum over agents whose bits do not depend on who computes which part.
//
// A leaf holds 256 agents in fixed order. node(0, i) is leaf i, node(l, i) = node(l-1, 2i) +
// node(l-1, 2i+1), and where the right child does not exist the left one goes up unchanged. Whoever
// holds a contiguous run of leaves adds them to the largest nodes that lie wholly inside the run;
// the pieces of all runs, put in order, finish to the same root.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/math/blocks.h"

namespace affpcl {

struct Leaves {  // a contiguous run
  std::int64_t first = 0, last = 0;
  std::int64_t count() const { return last - first; }
};
// The run of one of `parts` that share all leaves as evenly as can be.
inline Leaves share_of(std::int64_t leaves, int part, int parts) {
  return {leaves * part / parts, leaves * (part + 1) / parts};
}

class SumTree {
 public:
  SumTree() = default;
  explicit SumTree(std::size_t width) : width_(width) {}

  // The next leaf's numbers, zeroed, to be filled; then push(leaf) takes them. Leaves come in
  // ascending order.
  double* open();
  void push(std::int64_t leaf) {
    push(0, leaf);
    ++taken_;
  }

  // Takes over the nodes of the run that follows this one, and leaves nothing there.
  void append(SumTree&& other);
  // The same for a run that another process has written; returns where its numbers end.
  const double* append(Leaves run, const double* numbers);
  void write(std::span<double> numbers) const;  // of all nodes, in order

  // The root, after all leaves of [0, leaves) have come in.
  const double* finish(std::int64_t leaves);

  void clear() {
    nodes_.clear();
    taken_ = 0;
  }
  std::size_t width() const { return width_; }

  struct Node {
    int level;
    std::int64_t index;
  };

 private:
  Buffer& next();  // where the node after those here goes
  void push(int level, std::int64_t index);

  std::size_t width_ = 0;
  std::int64_t taken_ = 0;     // leaves so far
  std::vector<Node> nodes_;    // ascending; never more than about 2 log2(leaves)
  std::vector<Buffer> slots_;  // slots_[i] holds nodes_[i]; the one beyond is being filled
};

// The nodes to which a run adds up, in order.
std::vector<SumTree::Node> largest_nodes(Leaves run);

}  // namespace affpcl
