#include "affpcl/federation/masks.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/federation/harness_test.h"

namespace affpcl {
namespace {

using namespace masks_test;

// The sentence of the BadInput that `work` throws; empty where it throws none.
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const BadInput& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Masks, SumsEqualPlainSumsToTheBit) {
  for (std::size_t sites = 3; sites <= 8; ++sites) {
    Fresh fresh(context_of(sites));
    std::uint32_t round = 0;
    for (std::size_t count : {0U, 1U, 30U, 2500U}) {  // the last takes three pieces of the streams
      SCOPED_TRACE(std::to_string(sites) + " sites, " + std::to_string(count) + " numbers");
      const auto plain = plain_numbers(sites, count, count);
      const Round r(fresh.attempt, round, plain);
      Numbers sum = sum_of(r.masked);
      unmask(fresh.attempt.context, round, r.open(fresh.attempt, (1U << sites) - 1), sum);
      EXPECT_EQ(sum, sum_of(plain));
      round += 3;  // some may be left out
    }
  }
}

TEST(Masks, ARoundOpensWithTheSharesOfAnyMajorityAndNoFewer) {
  for (std::size_t sites = 3; sites <= 6; ++sites) {
    const SumContext context = context_of(sites);
    const auto plain = plain_numbers(sites, 3, 1);
    for (unsigned who = 0; who < 1U << sites; ++who) {
      Fresh fresh(context);
      const Round r(fresh.attempt, 2, plain);
      const Shares shares = r.open(fresh.attempt, who);  // the others are gone
      const Numbers masked = sum_of(r.masked);
      Numbers sum = masked;
      const std::string why = refusal([&] { unmask(context, 2, shares, sum); });
      if (std::popcount(who) > static_cast<int>(sites / 2)) {
        EXPECT_EQ(sum, sum_of(plain)) << sites << ' ' << who << ' ' << why;
      } else {
        EXPECT_TRUE(contains(why, "stays closed")) << sites << ' ' << who << ' ' << why;
        EXPECT_EQ(sum, masked);
      }
    }
  }
}

// D dies before its message of round 7 arrives. The others start attempt 2 and finish the round.
// Then D's message arrives.
TEST(Masks, ALateMessageStaysUnreadable) {
  const std::size_t count = 2000;
  const std::vector<SiteKeys> old_keys = make_keys(4);
  std::vector<Openings> openings(4);
  Attempt first(context_of(4, 1), old_keys,
                {&openings[0], &openings[1], &openings[2], &openings[3]});
  const auto plain = plain_numbers(4, count, 1);
  const Numbers sum = sum_of(plain);
  const Round late(first, 7, plain);

  Attempt second(context_of(3, 2), make_keys(3), {&openings[0], &openings[1], &openings[2]});
  const std::vector<Numbers> left(plain.begin(), plain.begin() + 3);
  const Round finished(second, 7, left);
  const Shares opened = finished.open(second, 7);
  Numbers without_d = sum_of(finished.masked);
  unmask(second.context, 7, opened, without_d);
  ASSERT_EQ(without_d, sum_of(left));

  // With D's message the masks between sites cancel ...
  Numbers pairs(count);
  for (const auto& site : first.sites) MasksPeer::add_pair_masks(*site, 7, pairs);
  EXPECT_EQ(pairs, Numbers(count));
  // ... but what is left over the sum is uniform, and so is what is left over D's numbers once the
  // sum of the others is taken off.
  const Numbers received = sum_of(late.masked);
  Numbers over_sum = received, over_d = received;
  for (std::size_t k = 0; k < count; ++k) over_sum[k] += -sum[k], over_d[k] += -without_d[k];
  EXPECT_NE(received, sum);
  EXPECT_TRUE(uniform(over_sum));
  EXPECT_TRUE(uniform(over_d));

  // The sites that went on refuse to open it. D, which knows of no newer attempt, opens its shares,
  // and a majority is missing. What was opened in attempt 2 does not serve.
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_TRUE(contains(refusal([&] { first.sites[k]->open(7, late.sealed_for(k)); }),
                         "attempt 1 of job 'trial' is over: attempt 2 has started"));
  Shares shares = late.open(first, 1U << 3);
  Numbers guess = received;
  EXPECT_TRUE(contains(refusal([&] { unmask(first.context, 7, shares, guess); }), "stays closed"));
  for (std::size_t k = 0; k < 3; ++k) {
    shares[k] = opened[k];
    shares[k].push_back(opened[k][0]);
  }
  EXPECT_TRUE(contains(refusal([&] { unmask(first.context, 7, shares, guess); }), "do not fit"));
  EXPECT_EQ(guess, received);

  // Nothing but the refusal keeps it closed: two sites that forgot it give it away, with D's share.
  Fresh forgetful(context_of(4, 1), old_keys);
  const Round again(forgetful.attempt, 7, plain);  // a site opens what it has masked
  shares = Shares(4);
  for (std::size_t k : {0U, 1U, 3U})
    shares[k] = forgetful.attempt.sites[k]->open(7, late.sealed_for(k));
  unmask(first.context, 7, shares, guess);
  EXPECT_EQ(guess, sum);
}

// The server was killed before it kept the sum: the same sites, with other keys, give it again.
TEST(Masks, TheSameSitesOpenTheLastRoundAgain) {
  const auto plain = plain_numbers(3, 4, 1);
  std::vector<Openings> openings(3);
  const std::vector<Openings*> theirs{&openings[0], &openings[1], &openings[2]};
  Attempt first(context_of(3, 1), make_keys(3), theirs);
  Round(first, 4, plain).open(first, 0b111);
  Attempt second(context_of(3, 2), make_keys(3), theirs);
  const Round again(second, 4, plain);
  Numbers sum = sum_of(again.masked);
  unmask(second.context, 4, again.open(second, 0b111), sum);
  EXPECT_EQ(sum, sum_of(plain));
  Numbers numbers = plain[0];
  Attempt third(context_of(3, 3), make_keys(3), theirs);
  EXPECT_EQ(refusal([&] { third.sites[0]->mask(3, numbers); }),
            "round 3 of job 'trial' is closed: this site has opened round 4");
}

TEST(Masks, ASiteTakesPartInARoundOnceAndInNewerAttemptsOnly) {
  const auto plain = plain_numbers(3, 4, 1);
  std::vector<Openings> openings(3);
  const std::vector<Openings*> theirs{&openings[0], &openings[1], &openings[2]};
  Attempt first(context_of(3, 1), make_keys(3), theirs);
  const Round r(first, 4, plain);
  Numbers numbers = plain[0];
  Masks& site = *first.sites[0];
  EXPECT_EQ(refusal([&] { site.mask(4, numbers); }),
            "round 4 cannot be masked: round 4 is already");
  EXPECT_EQ(refusal([&] { site.mask(3, numbers); }),
            "round 3 cannot be masked: round 4 is already");
  for (std::uint32_t round : {3U, 5U})
    EXPECT_TRUE(contains(refusal([&] { site.open(round, r.sealed_for(0)); }),
                         "is not the one this site masked last"));
  site.open(4, r.sealed_for(0));
  EXPECT_EQ(refusal([&] { site.open(4, r.sealed_for(0)); }),
            "round 4 of job 'trial' is closed: this site has opened round 4");

  // The site that has opened the round neither masks nor opens it for other sites; one that has not,
  // may.
  SumContext other = context_of(3, 2);
  other.sites[1] = "another";
  Attempt second(other, make_keys(3), theirs);
  EXPECT_EQ(refusal([&] { second.sites[0]->mask(4, numbers); }),
            "round 4 of job 'trial' is closed: this site has opened round 4");
  EXPECT_EQ(refusal([&] { second.sites[1]->mask(4, numbers); }), "");
  EXPECT_EQ(numbers == plain[0], false);
  numbers = plain[0];
  EXPECT_EQ(refusal([&] { first.sites[1]->mask(5, numbers); }),
            "attempt 1 of job 'trial' is over: attempt 2 has started");
  EXPECT_EQ(numbers, plain[0]);  // what is refused is left as it was

  for (std::uint32_t attempt : {1U, 2U})  // the same attempt again, an older one
    EXPECT_EQ(refusal([&] { Attempt(context_of(3, attempt), make_keys(3), theirs); }),
              "attempt " + std::to_string(attempt) +
                  " of job 'trial' cannot start: attempt 2 has started");
}

TEST(Masks, AlteredAndForeignSharesAreRefused) {
  const std::vector<SiteKeys> keys = make_keys(4);
  const auto plain = plain_numbers(4, 4, 1);
  Fresh fresh(context_of(4), keys);
  const Round earlier(fresh.attempt, 1, plain), r(fresh.attempt, 2, plain);
  const auto refused = [&](std::vector<Bytes> sealed) {
    return contains(
        refusal([&] { fresh.attempt.sites[0]->open(2, sealed); }),
        "the share that site 'site 1' sealed for 'site 0' is damaged, or not of round 2 "
        "in attempt 1");
  };
  const std::vector<Bytes> sealed = r.sealed_for(0);
  const auto with = [&](Bytes bytes) {
    std::vector<Bytes> all = sealed;
    all[1] = std::move(bytes);
    return all;
  };
  for (std::size_t k = 0; k < sealed[1].size(); ++k) {
    Bytes altered = sealed[1];
    altered[k] ^= std::byte{0x10};
    EXPECT_TRUE(refused(with(altered))) << k;
  }
  for (std::size_t size = 0; size < sealed[1].size(); ++size)
    EXPECT_TRUE(refused(with(Bytes(sealed[1].begin(), sealed[1].begin() + std::ptrdiff_t(size)))));
  Bytes longer = sealed[1];
  longer.push_back({});
  EXPECT_TRUE(refused(with(longer)));
  EXPECT_TRUE(refused(with(earlier.by_sender[1][0])));  // of another round
  EXPECT_TRUE(refused(with(r.by_sender[2][0])));        // from another sender
  EXPECT_TRUE(refused(with(r.by_sender[1][2])));        // for another recipient
  EXPECT_TRUE(refused(with(r.by_sender[0][1])));        // its own, turned round

  // The same keys and round in another job, attempt or set, or an order of the set.
  SumContext job = context_of(4), set = job, order = job;
  job.job = "trial 2";
  set.sites[3] = "site 9";
  std::swap(order.sites[2], order.sites[3]);
  for (const SumContext& other : {job, context_of(4, 2), set, order}) {
    Fresh foreign(other, keys);
    EXPECT_TRUE(refused(with(Round(foreign.attempt, 2, plain).by_sender[1][0])));
  }
  // The same set, where one site's key is another's.
  std::vector<SiteKeys> exchanged = keys;
  exchanged[3] = SiteKeys::make();
  Fresh foreign(context_of(4), exchanged);
  EXPECT_TRUE(refused(with(Round(foreign.attempt, 2, plain).by_sender[1][0])));

  EXPECT_EQ(refusal([&] { fresh.attempt.sites[0]->open(2, std::vector<Bytes>(3, sealed[1])); }),
            "3 sealed shares for 4 sites in round 2");
  // None of this has closed the round.
  EXPECT_EQ(fresh.attempt.sites[0]->open(2, sealed).size(), 4U);
}

TEST(Masks, TheServerRefusesSharesThatDoNotFit) {
  Fresh fresh(context_of(5));
  const auto plain = plain_numbers(5, 4, 1);
  const Round r(fresh.attempt, 2, plain);
  const Shares shares = r.open(fresh.attempt, 0b10110);
  const Numbers masked = sum_of(r.masked);
  Numbers sum = masked;
  const auto refused = [&](const Shares& given, const SumContext& context, std::uint32_t round) {
    return refusal([&] { unmask(context, round, given, sum); });
  };
  for (std::size_t k = 0; k < sizeof(SeedShare); ++k) {
    Shares altered = shares;
    altered[2][3][k] ^= std::byte{1};
    EXPECT_EQ(
        refused(altered, fresh.attempt.context, 2),
        "the shares of site 'site 3' do not fit together, or are not of round 2 in attempt 1");
  }
  EXPECT_TRUE(contains(refused(shares, fresh.attempt.context, 3), "do not fit"));
  EXPECT_TRUE(contains(refused(shares, context_of(5, 2), 2), "do not fit"));
  SumContext other = context_of(5);
  other.job = "other";
  EXPECT_TRUE(contains(refused(shares, other, 2), "do not fit"));
  EXPECT_EQ(refused(shares, context_of(4), 2), "shares of 5 sites where the sum has 4");
  Shares cut = shares;
  cut[2].pop_back();
  EXPECT_EQ(refused(cut, fresh.attempt.context, 2),
            "site 'site 2' opened 4 shares of 5 in round 2");
  EXPECT_EQ(sum, masked);
  EXPECT_EQ(refused(shares, fresh.attempt.context, 2), "");
  EXPECT_EQ(sum, sum_of(plain));
}

TEST(Masks, SetsAndKeysAreChecked) {
  const auto refused = [](const SumContext& context, const std::vector<SiteKeys>& keys) {
    return refusal([&] { Fresh(context, keys); });
  };
  for (std::size_t sites : {1U, 2U, 256U})
    EXPECT_EQ(refused(context_of(sites), make_keys(sites)),
              "a secure sum needs 3 to 255 sites, not " + std::to_string(sites));
  EXPECT_EQ(
      refused(context_of(255), make_keys(254)),
      "the keys of attempt 1 are not one for each of its sites, with this site's in its place");
  SumContext twice = context_of(3);
  twice.sites[2] = "site 0";
  EXPECT_EQ(refused(twice, make_keys(3)), "site 'site 0' is listed twice in a secure sum");
  std::vector<SiteKeys> keys = make_keys(3);
  keys[2] = keys[1];
  EXPECT_EQ(refused(context_of(3), keys), "two sites have the same key in attempt 1");
  keys[2] = SiteKeys{};  // a point of low order
  EXPECT_EQ(refused(context_of(3), keys), "the key of site 'site 2' is not a key of X25519");

  keys = make_keys(3);
  const std::vector<PublicKey> open{keys[0].public_key, keys[1].public_key, keys[2].public_key};
  Openings openings;
  for (std::size_t place : {1U, 3U})  // another's, none
    EXPECT_TRUE(contains(refusal([&] { Masks(keys[0], context_of(3), open, place, openings); }),
                         "with this site's in its place"));
  EXPECT_EQ(openings.next_attempt, 0U);
}

}  // namespace
}  // namespace affpcl
