// Agents that act by softmax policies, many at a time: a lane is an agent.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

// q = stationary(o) pi(a|o) P(o'|o, a): P and q have a row for each (o, a, o'), pi for each (o, a).
// In lanes where P is 0, q is.
void chain_law(In P, In pi, int states, int actions, Scratch& scratch, Out q);

// The action that each agent's uniform u chooses in its state by softmax(x'W). `weights` holds the
// W of every state, [x.rows][actions], rows padded to lanes_to_write(actions) numbers; state, u and
// action are one row each.
inline constexpr int kMostActions = 256;
void choose_actions(const double* weights, int actions, In x, In state, In u, Lanes lanes,
                    double* action);

}  // namespace affpcl
