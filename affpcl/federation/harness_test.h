// Sites, attempts and rounds of secure sums, for the tests of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/federation/masks.h"

namespace affpcl {

struct MasksPeer {
  static void add_pair_masks(const Masks& masks, std::uint32_t round, std::span<Fixed> numbers) {
    masks.add_pair_masks(round, numbers);
  }
  // The mask that this site shares with another.
  static Secret& pair_mask(Masks& masks, std::size_t other) { return masks.pairs_[other].mask; }
};

namespace masks_test {

using Numbers = std::vector<Fixed>;
using Bytes = std::vector<std::byte>;
using Shares = std::vector<std::vector<SeedShare>>;  // by opener, by sender

inline Numbers random_numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Numbers numbers(count);
  for (Fixed& v : numbers) v = {.low = random(), .high = random()};
  return numbers;
}

inline void add(Numbers& sum, const Numbers& numbers) {
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += numbers[k];
}

inline Numbers sum_of(const std::vector<Numbers>& all) {
  Numbers sum(all.front().size());
  for (const Numbers& numbers : all) add(sum, numbers);
  return sum;
}

inline SumContext context_of(std::size_t sites, std::uint32_t attempt = 1) {
  SumContext context{.job = "trial", .attempt = attempt, .sites = {}};
  for (std::size_t k = 0; k < sites; ++k) context.sites.push_back("site " + std::to_string(k));
  return context;
}

inline std::vector<SiteKeys> make_keys(std::size_t sites) {
  std::vector<SiteKeys> keys;
  for (std::size_t k = 0; k < sites; ++k) keys.push_back(SiteKeys::make());
  return keys;
}

// All sites of an attempt. They keep their openings outside, as sites do over attempts.
struct Attempt {
  SumContext context;
  std::vector<std::unique_ptr<Masks>> sites;

  Attempt(SumContext its_context, const std::vector<SiteKeys>& keys,
          const std::vector<Openings*>& openings)
      : context(std::move(its_context)) {
    std::vector<PublicKey> open;
    for (const SiteKeys& key : keys) open.push_back(key.public_key);
    for (std::size_t k = 0; k < keys.size(); ++k)
      sites.push_back(std::make_unique<Masks>(keys[k], context, open, k, *openings[k]));
  }
};

// The same with openings of its own.
struct Fresh {
  std::vector<Openings> openings;
  Attempt attempt;

  explicit Fresh(const SumContext& context) : Fresh(context, make_keys(context.sites.size())) {}
  Fresh(const SumContext& context, const std::vector<SiteKeys>& keys)
      : openings(keys.size()), attempt(context, keys, pointers()) {}
  std::vector<Openings*> pointers() {
    std::vector<Openings*> all;
    for (Openings& o : openings) all.push_back(&o);
    return all;
  }
};

// What the server holds of a round after the first messages.
struct Round {
  std::uint32_t number;
  std::vector<Numbers> masked;                // by site
  std::vector<std::vector<Bytes>> by_sender;  // then by recipient

  Round(Attempt& attempt, std::uint32_t round, std::vector<Numbers> plain)
      : number(round), masked(std::move(plain)) {
    for (std::size_t k = 0; k < attempt.sites.size(); ++k)
      by_sender.push_back(attempt.sites[k]->mask(round, masked[k]).sealed);
  }
  std::vector<Bytes> sealed_for(std::size_t recipient) const {
    std::vector<Bytes> all;
    for (const auto& sealed : by_sender) all.push_back(sealed[recipient]);
    return all;
  }
  // The shares that the sites set in `who` open.
  Shares open(Attempt& attempt, unsigned who) const {
    Shares shares(masked.size());
    for (std::size_t k = 0; k < masked.size(); ++k)
      if ((who >> k & 1U) != 0) shares[k] = attempt.sites[k]->open(number, sealed_for(k));
    return shares;
  }
};

inline std::vector<Numbers> plain_numbers(std::size_t sites, std::size_t count,
                                          std::uint64_t seed) {
  std::vector<Numbers> all;
  for (std::size_t k = 0; k < sites; ++k) all.push_back(random_numbers(count, seed + k));
  return all;
}

// Pearson's statistic of the bytes of numbers against the uniform law. 255 degrees of freedom;
// where bytes are uniform it lies outside [141, 417] with probability below 2e-9.
inline bool uniform(const Numbers& numbers) {
  std::vector<double> count(256);
  for (const Fixed& v : numbers)
    for (std::uint64_t word : {v.low, v.high})
      for (int k = 0; k < 64; k += 8) ++count[word >> k & 0xff];
  const double expected = 16.0 * static_cast<double>(numbers.size()) / 256;
  double statistic = 0;
  for (double c : count) statistic += (c - expected) * (c - expected) / expected;
  return statistic > 141 && statistic < 417;
}

}  // namespace masks_test
}  // namespace affpcl
