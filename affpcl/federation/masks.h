// Sums over sites that no one can read apart (Bonawitz et al. 2017), in two messages a round. A
// site adds two kinds of masks to its numbers: one for every other site, which cancel in the sum,
// and one of its own. The seed of its own mask goes to the sites in sealed shares. Once all masked
// numbers of a round have arrived, each site opens the shares it holds; from those of a majority
// the server finds the masks that are left in the sum, even where a site has gone in the meantime.
// docs/federation.md says what the server and colluding sites learn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/math/fixed.h"

namespace affpcl {

// 32 bytes that are wiped at the end.
struct Secret {
  std::array<std::byte, 32> bytes{};

  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();
};

using PublicKey = std::array<std::byte, 32>;

// X25519. A site makes new ones for every attempt.
struct SiteKeys {
  Secret secret;
  PublicKey public_key{};

  static SiteKeys make();
};

// A set of sites, fixed for an attempt. When a site leaves or comes back, the next attempt starts.
// All sites list them in the same order. Every key depends on all of this.
struct SumContext {
  std::string job;
  std::uint32_t attempt = 0;
  std::vector<std::string> sites;  // 3 to 255 different names

  std::size_t threshold() const { return sites.size() / 2 + 1; }  // shares that give a seed
};

// How far one site has come in a job, over all attempts. Saved with the site, before the shares
// that it opened are sent: a site that forgot could open two sums of one round over different sets,
// whose difference is the numbers of few sites.
struct Openings {
  std::uint64_t next_attempt = 0;  // attempts below this have started; only the last is not over
  std::uint64_t next_round = 0;    // rounds below this are closed: opened, or passed over
  // Of the round opened last. The same sites may add the same numbers again, with other keys, where
  // the server lost their sum.
  std::uint64_t attempt = 0;
  std::vector<std::string> sites = {};
};

// A share of a seed (32 bytes) and of its check (16), which tells a wrong seed.
using SeedShare = std::array<std::byte, 48>;

// One site in one attempt. BadInput where keys, bytes or rounds are not those of this attempt.
class Masks {
 public:
  // `keys` are those of all sites, in their order; `me` is this site's place. Earlier attempts mask
  // and open nothing any more. `openings` must outlive this.
  Masks(const SiteKeys& own, const SumContext& context, const std::vector<PublicKey>& keys,
        std::size_t me, Openings& openings);
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;

  struct Masked {
    std::vector<std::vector<std::byte>> sealed;  // shares of the seed, by the site that may open it
  };
  // Masks the numbers in place. Each round once, in rising order.
  Masked mask(std::uint32_t round, std::span<Fixed> numbers);

  // Opens the shares that the sites sealed for this one, by sender, in the round masked last. Each
  // round once, in one attempt only.
  std::vector<SeedShare> open(std::uint32_t round, std::span<const std::vector<std::byte>> sealed);

 private:
  friend struct MasksPeer;  // of the tests

  struct Pair {
    Secret mask, to, from;  // the common mask; what is sealed for that site, and by it
  };
  void refuse_closed(std::uint32_t round) const;
  void add_pair_masks(std::uint32_t round, std::span<Fixed> numbers) const;

  SumContext context_;
  std::size_t me_;
  Openings* openings_;
  std::vector<Pair> pairs_;      // by site; for its own share also one with itself
  std::uint64_t next_mask_ = 0;  // rounds below this are masked
};

// The server's side. `sum` is the sum of all sites' masked numbers of a round; takes off the masks
// that are left in it. `shares` are what open() gave, by the site that opened; empty where it has
// gone. BadInput, and no change, where they are too few, or not of this round.
void unmask(const SumContext& context, std::uint32_t round,
            std::span<const std::vector<SeedShare>> shares, std::span<Fixed> sum);

}  // namespace affpcl
