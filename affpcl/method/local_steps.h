// Pieces that several methods are made of.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "affpcl/math/blocks.h"
#include "affpcl/problem/round.h"

namespace affpcl {

// Where the round's local steps x -= alpha^c (g_i(x) + pull (x - start)) from `start` lead, minus
// `start`. The step is the central one: it is a shared model that moves, by the mean of this.
In local_displacement(const Block& block, In start, double pull = 0);

// A pull lambda (x - to) added to a direction; none by default.
struct Pull {
  double lambda = 0;
  In to = {};
};
void add_pull(Out g, const Pull& pull, In x);

// The round's local steps x -= alpha^i (g_i(x) + pull), each agent with its own step size.
void local_steps(const Block& block, Out x, const Pull& pull = {});

// x -= alpha g with one alpha for all agents.
void descend(Out x, double alpha, In g);

void set(std::span<double> to, const std::vector<double>& from);
void shift(std::span<double> x, In by);  // x += by (one column)

// Parameters that several methods share.
inline constexpr char kPullDoc[] = "strength of the pull towards the common model";
inline constexpr std::array<std::string_view, 2> kForms = {"figure", "published"};
inline constexpr char kFormDoc[] =
    "the simplified form of our figures, or as the method's authors published it";

}  // namespace affpcl
