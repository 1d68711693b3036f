#include "affpcl/federation/shamir.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

namespace affpcl {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Every value of one byte, `times` times over.
Bytes all_values(std::size_t times) {
  Bytes bytes;
  for (std::size_t k = 0; k < times; ++k)
    for (int v = 0; v < 256; ++v) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

// Whether the shares whose numbers are set in `who` (bit k: number k + 1) give the secret.
bool give(const std::vector<Bytes>& shares, unsigned who, const Bytes& secret) {
  std::vector<std::uint8_t> x;
  Bytes joined, found(secret.size());
  for (std::size_t k = 0; k < shares.size(); ++k)
    if ((who >> k & 1U) != 0) {
      x.push_back(static_cast<std::uint8_t>(k + 1));
      joined.insert(joined.end(), shares[k].begin(), shares[k].end());
    }
  shamir_secret(x, joined, found);
  return found == secret;
}

TEST(Shamir, ExactlyTheSubsetsOfThresholdAndMoreGiveTheSecret) {
  for (std::size_t sites = 1; sites <= 8; ++sites)
    for (std::size_t threshold = 1; threshold <= sites; ++threshold) {
      const Bytes secret = random_bytes(48, 5);
      const Bytes random = random_bytes((threshold - 1) * secret.size(), 9);
      std::vector<Bytes> shares(sites, Bytes(secret.size()));
      for (std::size_t k = 0; k < sites; ++k)
        shamir_share(secret, random, static_cast<std::uint8_t>(k + 1), shares[k]);
      for (unsigned who = 1; who < 1U << sites; ++who)
        EXPECT_EQ(give(shares, who, secret), std::popcount(who) >= static_cast<int>(threshold))
            << sites << ' ' << threshold << ' ' << who;
    }
}

TEST(Shamir, NumbersGoUpTo255) {
  const Bytes secret = random_bytes(3, 1), random = random_bytes(3 * 127, 2);  // threshold 128
  std::vector<std::uint8_t> x;
  Bytes shares, share(3), found(3);
  for (int number = 128; number <= 255; ++number) {
    x.push_back(static_cast<std::uint8_t>(number));
    shamir_share(secret, random, x.back(), share);
    shares.insert(shares.end(), share.begin(), share.end());
  }
  shamir_secret(x, shares, found);
  EXPECT_EQ(found, secret);
}

// Threshold 2. Over all random bytes, the share of any number takes each value once, whatever the
// secret: one share fits every secret equally well.
TEST(Shamir, OneShareOfTwoSaysNothing) {
  const Bytes random = all_values(1);
  Bytes share(256);
  for (int x = 1; x < 256; ++x)
    for (int secret = 0; secret < 256; ++secret) {
      shamir_share(Bytes(256, static_cast<std::byte>(secret)), random, static_cast<std::uint8_t>(x),
                   share);
      std::vector<int> seen(256);
      for (std::byte b : share) ++seen[static_cast<std::size_t>(b)];
      ASSERT_EQ(seen, std::vector<int>(256, 1)) << x << ' ' << secret;
    }
}

// Threshold 3. Over all pairs of random bytes, any two of four shares take each pair of values
// once, whatever the secret.
TEST(Shamir, TwoSharesOfThreeSayNothing) {
  Bytes random;  // the first coefficient of all pairs, then the second
  for (int v = 0; v < 256; ++v) random.insert(random.end(), 256, static_cast<std::byte>(v));
  const Bytes second = all_values(256);
  random.insert(random.end(), second.begin(), second.end());
  std::vector<Bytes> shares(4, Bytes(65536));
  for (int secret = 0; secret < 256; ++secret) {
    const Bytes secrets(65536, static_cast<std::byte>(secret));
    for (std::size_t k = 0; k < 4; ++k)
      shamir_share(secrets, random, static_cast<std::uint8_t>(k + 1), shares[k]);
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = a + 1; b < 4; ++b) {
        std::vector<bool> seen(65536);
        std::size_t pairs = 0;
        for (std::size_t i = 0; i < 65536; ++i) {
          const std::size_t pair =
              static_cast<std::size_t>(shares[a][i]) << 8 | static_cast<std::size_t>(shares[b][i]);
          if (!seen[pair]) seen[pair] = true, ++pairs;
        }
        ASSERT_EQ(pairs, 65536U) << secret << ' ' << a << ' ' << b;
      }
  }
}

}  // namespace
}  // namespace affpcl
