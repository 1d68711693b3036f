// What the agents of one block add to the round's sum: those of them that are present. Where
// messages are compressed, each agent's is written apart (runtime/compression.h).
#pragma once

#include <cstddef>

#include "affpcl/math/blocks.h"
#include "affpcl/math/lane_set.h"

namespace affpcl {

class Message {
 public:
  Message(double* sum, Lanes lanes) : Message(sum, lanes, all_lanes(lanes.count)) {}
  Message(double* sum, Lanes lanes, LaneSet present) : Message(sum, lanes, present, 0) {}
  // Lane l's message apart, from l * stride on.
  Message(double* to, Lanes lanes, LaneSet present, std::ptrdiff_t stride)
      : to_(to),
        lanes_(lanes),
        present_(present),
        stride_(stride),
        whole_(stride == 0 && present == all_lanes(lanes.count)) {}

  void add(Field field, In rows, double factor = 1) const;  // each agent's rows, times a number
  void add(Product product, In psi, In g) const;            // each agent's psi g'

  // For agents that add to a product by themselves: where the one in this lane does. Only those
  // present may.
  double* at(Product product, int lane) const { return to_ + lane * stride_ + product.at; }
  bool present(int lane) const { return has_lane(present_, lane); }
  LaneSet present() const { return present_; }
  // For kernels that accumulate many agents at a time: f(which, to) for all who add to one place.
  template <class F>
  void each(Product product, F f) const {
    if (stride_ == 0) return f(present_, to_ + product.at);
    each_lane(present_, [&](int lane) { f(LaneSet{1} << lane, at(product, lane)); });
  }
  Lanes lanes() const { return lanes_; }

 private:
  double* to_;
  Lanes lanes_;
  LaneSet present_;
  std::ptrdiff_t stride_;
  bool whole_;  // all agents of the block, in one sum
};

}  // namespace affpcl
