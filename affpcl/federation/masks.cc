#include "affpcl/federation/masks.h"

#ifndef AFFPCL_SODIUM
#include "affpcl/base/error.h"

namespace affpcl {
namespace {

[[noreturn]] void refuse() {
  throw BadInput("secure sums need libsodium, and this affpcl was built without it");
}

}  // namespace

Secret::~Secret() = default;
SiteKeys SiteKeys::make() { return {}; }  // sums that are not secure need none
Masks::Masks(const SiteKeys&, const SumContext&, const std::vector<PublicKey>&, std::size_t,
             Openings&) {
  refuse();
}
Masks::Masked Masks::mask(std::uint32_t, std::span<Fixed>) { refuse(); }
std::vector<SeedShare> Masks::open(std::uint32_t, std::span<const std::vector<std::byte>>) {
  refuse();
}
void unmask(const SumContext&, std::uint32_t, std::span<const std::vector<SeedShare>>,
            std::span<Fixed>) {
  refuse();
}

}  // namespace affpcl
#else
#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/federation/shamir.h"

namespace affpcl {
namespace {

constexpr std::size_t kNonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kTag = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::size_t kSeed = sizeof(Secret::bytes), kShare = sizeof(SeedShare);
constexpr std::size_t kSealed = kNonce + kShare + kTag;
static_assert(crypto_scalarmult_BYTES == kSeed && crypto_kdf_KEYBYTES == kSeed &&
              crypto_stream_chacha20_ietf_KEYBYTES == kSeed &&
              crypto_aead_xchacha20poly1305_ietf_KEYBYTES == kSeed);

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

void start_sodium() {
  static const bool started = sodium_init() >= 0;
  if (!started) throw Failure("libsodium does not start: the system has no source of random bytes");
}

// Bytes that are wiped at the end.
struct SecretBytes {
  std::vector<std::byte> bytes;

  explicit SecretBytes(std::size_t size) : bytes(size) {}
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes() { sodium_memzero(bytes.data(), bytes.size()); }
  std::byte* data() { return bytes.data(); }
};

// BLAKE2b, with a key or without. Texts are hashed with their lengths, so that no two lists of
// parts give the same bytes.
class Hash {
 public:
  Hash(std::string_view purpose, std::span<const std::byte> key, std::size_t size) : size_(size) {
    crypto_generichash_init(&state_, key.empty() ? nullptr : raw(key.data()), key.size(), size);
    add(purpose);
  }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  ~Hash() { sodium_memzero(&state_, sizeof state_); }

  Hash& add(std::span<const std::byte> bytes) {
    crypto_generichash_update(&state_, raw(bytes.data()), bytes.size());
    return *this;
  }
  Hash& add(std::uint64_t number) {
    std::array<std::byte, 8> bytes;
    for (std::size_t k = 0; k < 8; ++k) bytes[k] = static_cast<std::byte>(number >> (8 * k));
    return add(bytes);
  }
  Hash& add(std::string_view text) {
    add(std::uint64_t{text.size()});
    return add(std::as_bytes(std::span(text)));
  }
  void finish(std::byte* out) { crypto_generichash_final(&state_, raw(out), size_); }
  Secret secret() {
    Secret out;
    finish(out.bytes.data());
    return out;
  }

 private:
  crypto_generichash_state state_;
  std::size_t size_;
};

using Digest = std::array<std::byte, 32>;

Digest digest(const SumContext& context) {
  Hash hash("affpcl sum 1", {}, sizeof(Digest));
  hash.add(context.job)
      .add(std::uint64_t{context.attempt})
      .add(std::uint64_t{context.sites.size()});
  for (const std::string& site : context.sites) hash.add(site);
  Digest out;
  hash.finish(out.data());
  return out;
}

// Context and keys of all sites: sites with different lists of keys share no mask.
Digest digest(const SumContext& context, const std::vector<PublicKey>& keys) {
  Hash hash("affpcl keys 1", {}, sizeof(Digest));
  hash.add(digest(context));
  for (const PublicKey& key : keys) hash.add(key);
  Digest out;
  hash.finish(out.data());
  return out;
}

void check(const SumContext& context) {
  const std::vector<std::string>& sites = context.sites;
  if (sites.size() < 3 || sites.size() > 255)
    throw BadInput(fmt::format("a secure sum needs 3 to 255 sites, not {}", sites.size()));
  std::set<std::string_view> seen;
  for (const std::string& site : sites)
    if (!seen.insert(site).second)
      throw BadInput(fmt::format("site '{}' is listed twice in a secure sum", site));
}

std::uint64_t load(const std::byte* bytes) {  // little-endian on every machine
  std::uint64_t word = 0;
  for (std::size_t k = 0; k < 8; ++k)
    word |= std::uint64_t{static_cast<std::uint8_t>(bytes[k])} << (8 * k);
  return word;
}

enum class Sign { kPlus, kMinus };

// Adds the ChaCha20 stream of a key and a round to the numbers, or subtracts it.
void add_stream(const Secret& key, std::uint32_t round, Sign sign, std::span<Fixed> numbers) {
  constexpr std::size_t kBlock = 64, kBytes = 256 * kBlock;
  std::array<std::byte, crypto_stream_chacha20_ietf_NONCEBYTES> nonce{};
  for (std::size_t k = 0; k < 4; ++k) nonce[k] = static_cast<std::byte>(round >> (8 * k));
  SecretBytes stream(std::min(kBytes, numbers.size() * sizeof(Fixed)));
  std::uint32_t block = 0;
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size(), kBytes / sizeof(Fixed));
    std::byte* at = stream.data();
    std::fill_n(at, count * sizeof(Fixed), std::byte{0});
    crypto_stream_chacha20_ietf_xor_ic(raw(at), raw(at), count * sizeof(Fixed), raw(nonce.data()),
                                       block, raw(key.bytes.data()));
    for (std::size_t k = 0; k < count; ++k, at += sizeof(Fixed)) {
      const Fixed v{.low = load(at), .high = load(at + 8)};
      numbers[k] += sign == Sign::kPlus ? v : -v;
    }
    numbers = numbers.subspan(count);
    block += kBytes / kBlock;
  }
}

// The key of a site's own mask in a round.
Secret own_mask(const Secret& seed, const Digest& context, std::uint32_t round, std::size_t site) {
  return Hash("own mask", seed.bytes, kSeed)
      .add(context)
      .add(std::uint64_t{round})
      .add(std::uint64_t{site})
      .secret();
}

void write_check(std::span<const std::byte> seed, const Digest& context, std::uint32_t round,
                 std::size_t site, std::byte* out) {
  Hash("check", seed, kShare - kSeed)
      .add(context)
      .add(std::uint64_t{round})
      .add(std::uint64_t{site})
      .finish(out);
}

// What is sealed beside a share, without being sent.
using Label = std::array<std::byte, 12>;
Label label(std::uint32_t round, std::size_t sender, std::size_t recipient) {
  Label out;
  std::size_t at = 0;
  for (std::uint64_t v : {std::uint64_t{round}, std::uint64_t{sender}, std::uint64_t{recipient}})
    for (std::size_t k = 0; k < 4; ++k) out[at++] = static_cast<std::byte>(v >> (8 * k));
  return out;
}

// XChaCha20-Poly1305 under a random nonce, which stands in front.
std::vector<std::byte> seal(const Secret& key, const Label& beside,
                            std::span<const std::byte> share) {
  std::vector<std::byte> out(kSealed);
  randombytes_buf(out.data(), kNonce);
  crypto_aead_xchacha20poly1305_ietf_encrypt(raw(out.data() + kNonce), nullptr, raw(share.data()),
                                             share.size(), raw(beside.data()), beside.size(),
                                             nullptr, raw(out.data()), raw(key.bytes.data()));
  return out;
}

bool unseal(const Secret& key, const Label& beside, std::span<const std::byte> sealed,
            SeedShare& share) {
  return sealed.size() == kSealed &&
         crypto_aead_xchacha20poly1305_ietf_decrypt(
             raw(share.data()), nullptr, nullptr, raw(sealed.data() + kNonce),
             sealed.size() - kNonce, raw(beside.data()), beside.size(), raw(sealed.data()),
             raw(key.bytes.data())) == 0;
}

}  // namespace

Secret::~Secret() { sodium_memzero(bytes.data(), bytes.size()); }

SiteKeys SiteKeys::make() {
  start_sodium();
  SiteKeys keys;
  randombytes_buf(keys.secret.bytes.data(), kSeed);
  crypto_scalarmult_base(raw(keys.public_key.data()), raw(keys.secret.bytes.data()));
  return keys;
}

Masks::Masks(const SiteKeys& own, const SumContext& context, const std::vector<PublicKey>& keys,
             std::size_t me, Openings& openings)
    : context_(context), me_(me), openings_(&openings) {
  start_sodium();
  check(context);
  const std::vector<std::string>& sites = context.sites;
  if (keys.size() != sites.size() || me >= keys.size() || keys[me] != own.public_key)
    throw BadInput(fmt::format(
        "the keys of attempt {} are not one for each of its sites, with this site's in its place",
        context.attempt));
  if (std::set(keys.begin(), keys.end()).size() < keys.size())
    throw BadInput(fmt::format("two sites have the same key in attempt {}", context.attempt));
  if (context.attempt < openings.next_attempt)
    throw BadInput(fmt::format("attempt {} of job '{}' cannot start: attempt {} has started",
                               context.attempt, context.job, openings.next_attempt - 1));
  const Digest all = digest(context, keys);
  for (std::size_t site = 0; site < keys.size(); ++site) {
    Secret shared;
    if (crypto_scalarmult(raw(shared.bytes.data()), raw(own.secret.bytes.data()),
                          raw(keys[site].data())) != 0)
      throw BadInput(fmt::format("the key of site '{}' is not a key of X25519", sites[site]));
    const Secret base = Hash("pair", shared.bytes, kSeed)
                            .add(all)
                            .add(std::uint64_t{std::min(me, site)})
                            .add(std::uint64_t{std::max(me, site)})
                            .secret();
    const auto derive = [&](std::uint64_t id, Secret& out) {
      crypto_kdf_derive_from_key(raw(out.bytes.data()), kSeed, id, "affpclSM",
                                 raw(base.bytes.data()));
    };
    Pair& pair = pairs_.emplace_back();
    derive(1, pair.mask);
    derive(me <= site ? 2 : 3, pair.to);    // 2: to the later site of the two
    derive(site <= me ? 2 : 3, pair.from);  // 3: to the earlier
  }
  openings.next_attempt = std::uint64_t{context.attempt} + 1;
}

void Masks::refuse_closed(std::uint32_t round) const {
  if (openings_->next_attempt != std::uint64_t{context_.attempt} + 1)
    throw BadInput(fmt::format("attempt {} of job '{}' is over: attempt {} has started",
                               context_.attempt, context_.job, openings_->next_attempt - 1));
  const bool again = std::uint64_t{round} + 1 == openings_->next_round &&
                     openings_->attempt < context_.attempt && openings_->sites == context_.sites;
  if (round < openings_->next_round && !again)
    throw BadInput(fmt::format("round {} of job '{}' is closed: this site has opened round {}",
                               round, context_.job, openings_->next_round - 1));
}

void Masks::add_pair_masks(std::uint32_t round, std::span<Fixed> numbers) const {
  for (std::size_t site = 0; site < pairs_.size(); ++site)
    if (site != me_)
      add_stream(pairs_[site].mask, round, me_ < site ? Sign::kPlus : Sign::kMinus, numbers);
}

Masks::Masked Masks::mask(std::uint32_t round, std::span<Fixed> numbers) {
  refuse_closed(round);
  if (round < next_mask_)
    throw BadInput(
        fmt::format("round {} cannot be masked: round {} is already", round, next_mask_ - 1));
  next_mask_ = std::uint64_t{round} + 1;

  Secret seed;
  randombytes_buf(seed.bytes.data(), kSeed);
  const Digest context = digest(context_);
  SecretBytes secret(kShare), random((context_.threshold() - 1) * kShare), share(kShare);
  std::copy(seed.bytes.begin(), seed.bytes.end(), secret.data());
  write_check(seed.bytes, context, round, me_, secret.data() + kSeed);
  randombytes_buf(random.data(), random.bytes.size());
  Masked out;
  for (std::size_t site = 0; site < pairs_.size(); ++site) {
    shamir_share(secret.bytes, random.bytes, static_cast<std::uint8_t>(site + 1), share.bytes);
    out.sealed.push_back(seal(pairs_[site].to, label(round, me_, site), share.bytes));
  }
  add_pair_masks(round, numbers);
  add_stream(own_mask(seed, context, round, me_), round, Sign::kPlus, numbers);
  return out;
}

std::vector<SeedShare> Masks::open(std::uint32_t round,
                                   std::span<const std::vector<std::byte>> sealed) {
  refuse_closed(round);
  if (std::uint64_t{round} + 1 != next_mask_)
    throw BadInput(
        fmt::format("round {} cannot be opened: it is not the one this site masked last", round));
  if (sealed.size() != pairs_.size())
    throw BadInput(fmt::format("{} sealed shares for {} sites in round {}", sealed.size(),
                               pairs_.size(), round));
  std::vector<SeedShare> shares(sealed.size());
  for (std::size_t site = 0; site < sealed.size(); ++site)
    if (!unseal(pairs_[site].from, label(round, site, me_), sealed[site], shares[site]))
      throw BadInput(fmt::format(
          "the share that site '{}' sealed for '{}' is damaged, or not of round {} in attempt {}",
          context_.sites[site], context_.sites[me_], round, context_.attempt));
  openings_->next_round = std::uint64_t{round} + 1;
  openings_->attempt = context_.attempt;
  openings_->sites = context_.sites;
  return shares;
}

void unmask(const SumContext& context, std::uint32_t round,
            std::span<const std::vector<SeedShare>> shares, std::span<Fixed> sum) {
  start_sodium();
  check(context);
  const std::size_t sites = context.sites.size();
  if (shares.size() != sites)
    throw BadInput(fmt::format("shares of {} sites where the sum has {}", shares.size(), sites));
  std::vector<std::uint8_t> openers;
  for (std::size_t site = 0; site < sites; ++site) {
    if (shares[site].empty()) continue;
    if (shares[site].size() != sites)
      throw BadInput(fmt::format("site '{}' opened {} shares of {} in round {}",
                                 context.sites[site], shares[site].size(), sites, round));
    openers.push_back(static_cast<std::uint8_t>(site + 1));
  }
  if (openers.size() < context.threshold())
    throw BadInput(fmt::format("round {} stays closed: {} sites opened their shares, {} are needed",
                               round, openers.size(), context.threshold()));
  openers.resize(context.threshold());

  const Digest all = digest(context);
  std::vector<Secret> masks;
  SecretBytes joined(openers.size() * kShare), secret(kShare), expected(kShare - kSeed);
  for (std::size_t site = 0; site < sites; ++site) {
    std::byte* at = joined.data();
    for (std::uint8_t opener : openers)
      at = std::copy_n(shares[opener - 1U][site].begin(), kShare, at);
    shamir_secret(openers, joined.bytes, secret.bytes);
    Secret seed;
    std::copy_n(secret.data(), kSeed, seed.bytes.begin());
    write_check(seed.bytes, all, round, site, expected.data());
    if (sodium_memcmp(expected.data(), secret.data() + kSeed, kShare - kSeed) != 0)
      throw BadInput(fmt::format(
          "the shares of site '{}' do not fit together, or are not of round {} in attempt {}",
          context.sites[site], round, context.attempt));
    masks.push_back(own_mask(seed, all, round, site));
  }
  for (const Secret& mask : masks) add_stream(mask, round, Sign::kMinus, sum);
}

}  // namespace affpcl
#endif
