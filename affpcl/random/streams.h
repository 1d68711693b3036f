// Randomness is an argument: a uniform is a pure function of (seed, replicate, agent, step,
// purpose, index), by Philox (Salmon et al. 2011, Random123). No generator object, no hidden state,
// nothing that depends on who computes.
#pragma once

#include <cstdint>
#include <span>

#include "affpcl/math/blocks.h"

namespace affpcl {

struct Key {
  std::uint64_t seed = 1;
  std::uint32_t replicate = 0;
  std::uint32_t step = 0;
};

// What a number is for. Never renumber: known answers and published results depend on it.
enum class Purpose : std::uint8_t {
  kSample = 0,   // an agent's observation
  kSystemA = 1,  // a problem's matrices: `agent` is then a row
  kSystemPhi = 2,
  kTheta = 3,        // theta_base
  kEnvironment = 4,  // an agent's own environment
  kObjective = 5,    // an agent's own objective
  kMethod = 6,       // a method's own draws (random starts)
  kSupport = 7,      // which states an agent can see
  kFeatures = 8,     // features psi of a learnt ratio
  kPair = 9,         // a coupled pair of samples
  kPresence = 10,    // which agents take part in a round: `step` is the round's number
  kCompress = 11,    // what of a message is sent: `step` is the round's number
};

// In (0, 1). Two 52-bit uniforms come from one Philox block: index 2b and 2b + 1 from block b.
// index < 2^25.
double uniform(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index);

// Standard normal by Box-Muller: normals 2b and 2b + 1 are made of exactly the uniforms 2b and 2b
// + 1.
double normal(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index);

// One agent's numbers at index 0, 1, ..., equal to the functions above to the bit.
void uniforms_of(const Key& key, std::int64_t agent, Purpose purpose, std::span<double> numbers);
void normals_of(const Key& key, std::int64_t agent, Purpose purpose, std::span<double> numbers);

// The least state whose cumulative probability exceeds u.
int categorical(std::span<const double> cumulative, double u);

// Whole blocks: row r holds index `first_index + r` of every agent of the block, equal to the
// functions above to the bit. first_index is even.
void uniforms(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows);
void normals(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows);
// The same plus `mean` in the first of the rows, as many as it has; each agent has its own.
void normals_about(In mean, const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index,
                   Out rows);

}  // namespace affpcl
