// Some of n things without replacement, as a pure function of a key (random/streams.h).
#pragma once

#include <cstdint>
#include <span>

#include "affpcl/random/streams.h"

namespace affpcl {

// Sets the bits of m different numbers below n; every set of m is as likely (Floyd's algorithm,
// Bentley and Floyd 1987: m uniforms). Bit i is bit i % 64 of word i / 64, and all of `bits` is
// cleared first. Several sets of one key have streams of their own.
void choose(const Key& key, Purpose purpose, std::int64_t n, std::int64_t m,
            std::span<std::uint64_t> bits, std::int64_t stream = 0);

}  // namespace affpcl
