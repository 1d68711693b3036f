// What is seen of secure sums, bit by bit: masked numbers and shares.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <new>
#include <set>
#include <vector>

#include "affpcl/federation/harness_test.h"

namespace affpcl {
namespace {

using namespace masks_test;

// Opening a round takes off the masks of single sites. What every two sites share stays on, so it
// is the sum alone that can be read: where two sites differ in their mask, not even that.
TEST(MaskBits, AnOpenedRoundKeepsTheMasksBetweenSites) {
  const auto plain = plain_numbers(4, 2000, 1);
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b) {
      if (a == b) continue;
      Fresh fresh(context_of(4));
      MasksPeer::pair_mask(*fresh.attempt.sites[a], b).bytes[0] ^= std::byte{1};
      const Round r(fresh.attempt, 2, plain);
      Numbers rest = sum_of(r.masked);
      unmask(fresh.attempt.context, 2, r.open(fresh.attempt, 15), rest);
      const Numbers sum = sum_of(plain);
      for (std::size_t k = 0; k < rest.size(); ++k) rest[k] += -sum[k];
      EXPECT_TRUE(uniform(rest)) << a << ' ' << b;
    }
}

// Shares of a seed differ by what is drawn for them. By chance two words are equal with probability
// below 1e-16.
TEST(MaskBits, SharesAreDrawnAnewForEverySeed) {
  Fresh fresh(context_of(3));
  std::set<std::uint64_t> words{0};
  for (std::uint32_t round = 0; round < 5; ++round) {
    const Shares shares =
        Round(fresh.attempt, round, plain_numbers(3, 1, 1)).open(fresh.attempt, 7);
    for (std::size_t sender = 0; sender < 3; ++sender)
      for (std::size_t at = 0; at < sizeof(SeedShare); at += 8) {
        std::uint64_t one = 0, two = 0;
        std::memcpy(&one, shares[0][sender].data() + at, sizeof one);
        std::memcpy(&two, shares[1][sender].data() + at, sizeof two);
        words.insert(one ^ two);
      }
  }
  EXPECT_EQ(words.size(), 1U + 5 * 3 * 6);
}

TEST(MaskBits, WhatIsSentLooksUniform) {
  Fresh fresh(context_of(5));
  const std::vector<Numbers> zeros(5, Numbers(4096));
  const Round r(fresh.attempt, 0, zeros);
  for (const Numbers& masked : r.masked) EXPECT_TRUE(uniform(masked));
  Numbers some = r.masked[0];
  add(some, r.masked[1]);
  EXPECT_TRUE(uniform(some));  // masks of two sites do not cancel
  EXPECT_TRUE(uniform(sum_of(r.masked)));
  EXPECT_FALSE(uniform(zeros[0]));  // and the statistic sees what is not uniform
  Numbers partly = r.masked[0];  // nor where one byte of sixteen is 0: the statistic is near 66,000
  for (Fixed& v : partly) v.high >>= 8;
  EXPECT_FALSE(uniform(partly));
}

// By chance two of these words are equal with probability below 2e-10.
TEST(MaskBits, TwoRunsOfTheSameNumbersShareNoWord) {
  const std::vector<Numbers> plain(4, random_numbers(2000, 1));
  const std::vector<SiteKeys> keys = make_keys(4);
  std::set<std::uint64_t> words;
  for (int run = 0; run < 3; ++run) {
    Fresh fresh(context_of(4), keys);  // even with the same keys
    const Round r(fresh.attempt, 0, plain);
    for (const Numbers& masked : r.masked)
      for (const Fixed& v : masked) words.insert({v.low, v.high});
    for (const std::vector<Bytes>& sealed : r.by_sender)
      for (const Bytes& bytes : sealed)
        for (std::size_t at : {0U, 24U}) {  // in the nonce, in the share
          std::uint64_t word = 0;
          std::memcpy(&word, bytes.data() + at, sizeof word);
          words.insert(word);
        }
  }
  EXPECT_EQ(words.size(), 3U * 4 * (2000 * 2 + 4 * 2));
}

// The masks between sites alone, from the same keys. By chance two words are equal with probability
// below 2e-13.
TEST(MaskBits, MasksOfRoundsAttemptsJobsAndSetsShareNoWord) {
  const std::vector<SiteKeys> keys = make_keys(3);
  const auto words = [&](const SumContext& context, std::uint32_t round,
                         const std::vector<SiteKeys>& its_keys) {
    Fresh fresh(context, its_keys);
    Numbers masks(100);
    MasksPeer::add_pair_masks(*fresh.attempt.sites[0], round, masks);
    std::vector<std::uint64_t> all;
    for (const Fixed& v : masks) all.insert(all.end(), {v.low, v.high});
    return all;
  };
  const SumContext context = context_of(3);
  const auto once = words(context, 1, keys);
  EXPECT_EQ(words(context, 1, keys), once);  // it depends on nothing else

  SumContext job = context, set = context, order = context, joined = context, split = context;
  job.job = "trial 2";
  set.sites[2] = "site 3";
  std::swap(order.sites[1], order.sites[2]);
  joined.sites = {"a", "bc", "d"};  // texts are not run together
  split.sites = {"ab", "c", "d"};
  std::vector<SiteKeys> exchanged = keys;
  exchanged[2] = SiteKeys::make();
  std::set<std::uint64_t> seen(once.begin(), once.end());
  std::size_t count = once.size();
  const auto take = [&](const std::vector<std::uint64_t>& all) {
    seen.insert(all.begin(), all.end());
    count += all.size();
    EXPECT_EQ(seen.size(), count);
  };
  for (std::uint32_t round : {0U, 2U, 1U << 8, 1U << 24}) take(words(context, round, keys));
  for (const SumContext& other : {context_of(3, 2), job, set, order, joined, split})
    take(words(other, 1, keys));
  take(words(context, 1, exchanged));
}

TEST(MaskBits, SecretsAreWiped) {
  alignas(Secret) std::array<unsigned char, sizeof(Secret)> memory;
  Secret* secret = new (memory.data()) Secret;
  secret->bytes.fill(std::byte{7});
  secret->~Secret();
  EXPECT_EQ(memory, (std::array<unsigned char, sizeof(Secret)>{}));
}

}  // namespace
}  // namespace affpcl
