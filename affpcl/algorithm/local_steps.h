// Pieces that several methods are made of.
#pragma once

#include <span>
#include <vector>

#include "affpcl/math/blocks.h"
#include "affpcl/problem/round.h"

namespace affpcl {

// Where `batch.steps` local steps x -= alpha^c g_i(x) from `start` lead, minus `start`. The step is
// the central one: it is the shared model that moves, by the mean of this.
In local_displacement(const Round& round, Lanes lanes, const Batch& batch, In start);

// x -= alpha g with one alpha for all agents.
void descend(Out x, double alpha, In g);

void set(std::span<double> to, const std::vector<double>& from);
void shift(std::span<double> x, In by);  // x += by (one column)

}  // namespace affpcl
