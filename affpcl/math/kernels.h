// The loops where the time goes, over blocks of 64 agents. Compiled once per instruction set
// (AVX-512, AVX2, SSE4, portable) and chosen at run time; bits depend on the instruction set, never
// on threads or ranks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "affpcl/math/blocks.h"

namespace affpcl {

// The instruction set in use, for manifests: "AVX3", "AVX2", "SSE4", "EMU128", ...
std::string instruction_set();

// Forces one of available_instruction_sets() from now on (tests, comparisons); "" is the best one
// again.
void use_instruction_set(std::string_view name);
std::vector<std::string> available_instruction_sets();

namespace kernels {

// y = A x in every lane; A is rows x cols, row major, the same for all agents. x has its own column
// per agent.
void matvec(const double* A, int rows, int cols, In x, Out y);

// y = A x for one column x.
void matvec(const double* A, int rows, int cols, const double* x, double* y);

// (I + eps s s') y in every lane; y may be shared by all agents.
void rank_one(In s, In y, double eps, Out out);
// The same minus b.
void rank_one(In s, In y, double eps, In b, Out out);

// With u = (I + eps s s') y for two shared columns y: u1 - u2, u1 - b and u2 - b in every lane.
struct Noisy {
  const double* y;
  double eps;
};
void at_centre(In s, In b, const Noisy& one, const Noisy& two, Out difference, Out one_less_b,
               Out two_less_b);

// The sum of the first `count` lanes, in an order fixed by the instruction set.
double lane_sum(const double* x, int count);

// M[p][d] += sum over the first `count` lanes of psi[p] g[d].
void add_product(In psi, In g, int count, double* M);

// The same of psi with itself.
void add_square(In psi, int count, double* M);

// x'A x in every lane; A is symmetric, of which what is left of the diagonal is read, and a little
// more.
void quadratic(const double* A, In x, Out one_row);

// lane_sum of every row times `factor`, added to sums[r].
void add_lane_sums(In rows, int count, double factor, double* sums);

// rows[e] <- exp(rows[e] + bias[e]), divided by their sum over e, in every lane.
void softmax(Out rows, const double* bias);

// to += from, of `count` numbers.
void add(const double* from, std::size_t count, double* to);

// to = factor from, of `count` numbers.
void multiply(const double* from, double factor, std::size_t count, double* to);

}  // namespace kernels
}  // namespace affpcl
