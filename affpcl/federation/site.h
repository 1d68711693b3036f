// A site of a federation as the processes that a fit runs on: it adds its numbers to sums over all
// sites, and no other process ever sees its rows. The site itself decides what it sends: it runs the
// same program as the others and answers no request but for its part of the sum that is next.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/federation/message.h"
#include "affpcl/runtime/processes.h"

namespace affpcl {

// Messages of the centre, one after another, and the answer to each.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual std::string receive() = 0;
  virtual void send(std::string_view message) = 0;
};

// Another set of sites takes part: the work starts again.
class SiteRestart : public std::runtime_error {
 public:
  SiteRestart() : std::runtime_error("the set of sites has changed") {}
};

struct SiteOptions {
  std::string name;
  std::string job;        // a hash of what all sites agreed to
  bool leave = false;     // the others may go on without this site, and then learn its sums
  bool unmasked = false;  // answers also where sums are not masked
  // A file of what was sent, with which the ledger goes on, and of the rows that it was sent of: sums so
  // far are of no others. Empty: none.
  std::string sent = {};
  std::string rows = {};  // a hash of them
};

// What a site has sent, by purpose, in all attempts of the job.
struct LedgerEntry {
  std::string purpose;
  Collective collective = Collective::kSum;
  bool masked = false;
  std::int64_t messages = 0, numbers = 0, bytes = 0;
};

class SiteProcesses final : public Processes {
 public:
  // Returns once all sites are there. The channel must outlive it.
  SiteProcesses(SiteOptions options, Channel& channel);
  ~SiteProcesses() override;

  int rank() const override { return rank_; }
  int count() const override { return static_cast<int>(sites_.size()); }
  bool apart() const override { return true; }
  std::string name() const override { return options_.name; }
  void set_purpose(std::string_view purpose) override { purpose_ = purpose; }
  void set_progress(double share) { progress_ = share; }

  void sum(std::span<Fixed> numbers) override;
  bool any(bool mine) override;
  void all_gather(ConstBytes mine, Counts counts, Bytes all) override;
  void all_to_all(ConstBytes, Counts, Counts, Bytes) override;
  void broadcast(Bytes) override;
  void scatter(Bytes, FunctionRef<void(Bytes)>) override;
  Traffic traffic() const override { return {.bytes = bytes_, .seconds = seconds_}; }

  // After SiteRestart: the work of the new set of sites begins.
  void restart();
  // The work is done; `centre` is what all sites have in common. Returns once all are done.
  void finish(const std::string& centre);
  // The site cannot go on, which ends the job for all.
  void refuse();

  const std::vector<std::string>& sites() const { return sites_; }
  const std::vector<LedgerEntry>& ledger() const { return ledger_; }

 private:
  struct Secrets;

  std::string collective(Collective what, const std::string& own);
  SiteMessage answer(MessageKind kind) const;
  SiteMessage hello();
  SiteMessage part(Collective what, const std::string& own);
  SiteMessage opened(const SiteMessage& shares);
  void begin(const SiteMessage& message);
  void make_masks(const SiteMessage& message);
  bool knows(std::int64_t round) const;
  SiteMessage receive();
  void send(const SiteMessage& message);
  void account(Collective what, std::size_t numbers, std::size_t bytes);
  void add_entry(Collective what, std::size_t numbers, std::size_t bytes);
  void read_sent();
  void write_sent(const std::string& line) const;
  void check_rows(bool sums_so_far);

  SiteOptions options_;
  Channel& channel_;
  std::unique_ptr<Secrets> secrets_;
  std::vector<std::string> sites_;
  int rank_ = 0;
  std::int64_t attempt_ = 0, round_ = 0, first_known_ = 0;
  std::vector<std::string> known_;  // totals of rounds from first_known_ on
  bool secure_ = false;
  std::string purpose_;
  double progress_ = 0, seconds_ = 0;
  std::int64_t bytes_ = 0;
  std::string rows_sent_;  // SiteOptions::rows of the last attempt
  std::vector<LedgerEntry> ledger_;
};

}  // namespace affpcl
