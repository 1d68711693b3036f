// The centre of a federation: it adds what the sites send and sends the totals to all. It computes
// nothing else; every site draws the same conclusions from the same totals. Where sums are secure it
// sees no part of a single site.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/federation/message.h"

namespace affpcl {

enum class CentreState { kRunning, kWaiting, kDone, kFailed };
template <>
struct EnumNames<CentreState> {
  static constexpr std::array<std::string_view, 4> all = {"running", "waiting", "done", "failed"};
};

class FederationCentre {
 public:
  struct Options {
    std::string job;  // a hash of what all sites agreed to
    std::vector<std::string> sites;
    std::size_t min_sites = 0;  // fewer cannot go on; 0: all
    bool secure = true;
    std::string journal =
        {};  // a file of the totals so far, from which a centre resumes; empty: none
  };
  // BadInput where the options do not fit, or the journal belongs to another job.
  explicit FederationCentre(Options options);

  // What every site is to be sent now.
  std::string message() const { return message_.encoded(); }
  // Sites whose answer to this message is still missing, without lost ones.
  std::vector<std::string> expected() const;
  // The answer of a site. Once all have answered there is another message.
  void take(const std::string& site, std::string_view answer);
  // The site does not answer. The centre waits until it is back, or is dropped.
  void lost(const std::string& site);
  // The site answers again; all sites start a new attempt with new keys, and lose nothing.
  void back(const std::string& site);
  // The others go on without the lost sites and start again: failed where too few are left, or where
  // a lost site did not agree to be left behind.
  void drop_lost();
  bool may_drop() const;
  void fail(const std::string& why);

  CentreState state() const { return state_; }
  const std::string& status() const { return status_; }  // one line for people
  double progress() const { return progress_; }
  const std::vector<std::string>& sites() const { return options_.sites; }
  const std::string& instruction_set() const { return instruction_set_; }
  // Once it is done: the model that all sites have in common, as they wrote it.
  const std::string& model() const { return model_; }

  struct Entry {  // of the ledger: totals by purpose
    std::string purpose;
    Collective collective = Collective::kSum;
    std::int64_t totals = 0, numbers = 0;
  };
  const std::vector<Entry>& ledger() const { return ledger_; }
  std::int64_t rounds() const { return static_cast<std::int64_t>(totals_.size()); }
  std::int64_t bytes_received() const { return bytes_; }

 private:
  void open(std::string status);
  void advance();
  void begin();
  void take_parts();
  void open_shares();
  void add_total(std::string total);
  void send(MessageKind kind);
  std::string disagreement(const SiteMessage& a, const SiteMessage& b,
                           const std::string& site) const;

  Options options_;
  SiteMessage message_;
  std::map<std::string, SiteMessage> answers_;
  std::vector<std::string> lost_;
  std::map<std::string, bool> may_leave_;
  std::vector<std::string> totals_;  // by round
  std::vector<Fixed> masked_;        // the sum under way, with the sites' own masks
  SiteMessage under_way_;            // a part of it: its purpose and size
  std::int64_t attempt_ = 0;
  bool restart_ = false;
  CentreState state_ = CentreState::kRunning;
  std::string status_, instruction_set_, model_;
  double progress_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<Entry> ledger_;
};

}  // namespace affpcl
