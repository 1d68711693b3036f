// What a site and the centre of a federation send each other. Both check every field before they use
// it; a message of another job, another version or with damaged bytes is refused.
//
// The centre sends one message to all sites, and each answers it:
//   kOpen    who takes part                            -> kHello: a public key, the instruction sets
//   kBegin   keys, and the totals that a site lacks    -> its part of the sum that is next
//   kShares  sealed shares of the masks of that sum    -> kOpened: these shares, opened
//   kTotal   the sum                                   -> its part of the next sum, or kFinished
//   kEnd     the job is over                           -> kFinished
// kPart is the answer that has a part of a sum. A site that cannot go on answers kRefused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/fixed.h"

namespace affpcl {

enum class MessageKind {
  kOpen,
  kBegin,
  kShares,
  kTotal,
  kEnd,
  kHello,
  kPart,
  kOpened,
  kFinished,
  kRefused
};
template <>
struct EnumNames<MessageKind> {
  static constexpr std::array<std::string_view, 10> all = {
      "open", "begin", "shares", "total", "end", "hello", "part", "opened", "finished", "refused"};
};

// A sum adds numbers, masked where sums are secure; texts are gathered as they are, in the order of
// the sites.
enum class Collective { kSum, kTexts };
template <>
struct EnumNames<Collective> {
  static constexpr std::array<std::string_view, 2> all = {"sum", "texts"};
};

struct SiteMessage {
  MessageKind kind = MessageKind::kOpen;
  std::string job;           // a hash of what all sites agreed to
  std::int64_t attempt = 0;  // counts the sets of sites and their keys
  std::int64_t round = 0;    // counts sums and texts
  bool secure = false;       // masks are needed
  bool restart = false;      // kBegin: another set of sites, so the work starts again
  bool leave = false;        // kHello: the others may go on without this site
  double progress = 0;       // of a site's work, from 0 to 1
  std::string purpose;       // of a part: what it is for
  Collective collective = Collective::kSum;
  std::string bytes;               // a part or a total: numbers in fixed point, or texts
  std::string text;                // for people; kFinished: the centre's model; kHello: the best
                                   // instruction set; kBegin: the one that all use
  std::vector<std::string> names;  // sites; of kHello: the instruction sets, the best first
  // By site: public keys (kBegin), totals of rounds from `round` on (kBegin), sealed shares by
  // sender and recipient (kShares), those of one sender by recipient (kPart), opened shares (kOpened).
  std::vector<std::string> keys, totals, sealed;

  std::string encoded() const;
  static SiteMessage decoded(std::string_view bytes);  // BadInput where they are no message
};

std::string bytes_of(std::span<const Fixed> numbers);
std::vector<Fixed> fixed_of(std::string_view bytes);  // BadInput unless whole numbers

}  // namespace affpcl
