// What the agents of one block add to the round's sum.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

class Message {
 public:
  Message(double* leaf, Lanes lanes) : leaf_(leaf), lanes_(lanes) {}
  void add(Field field, In rows, double factor = 1) const;  // each agent's rows, times a number
  void add(Product product, In psi, In g) const;            // each agent's psi g'
  double* at(Product product) const {
    return leaf_ + product.at;
  }  // for kernels that accumulate by themselves
  Lanes lanes() const { return lanes_; }

 private:
  double* leaf_;
  Lanes lanes_;
};

}  // namespace affpcl
