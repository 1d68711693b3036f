#include "affpcl/federation/centre.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/federation/journal.h"
#include "affpcl/federation/masks.h"

namespace affpcl {
namespace {

constexpr std::size_t kFewestSecure = 3;  // two sites know each other's part of a sum

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

FederationCentre::FederationCentre(Options options) : options_(std::move(options)) {
  if (options_.sites.size() < 2) throw BadInput("`sites` needs two names or more");
  if (std::set(options_.sites.begin(), options_.sites.end()).size() < options_.sites.size())
    throw BadInput("`sites` names a site twice");
  const std::size_t fewest = options_.secure ? kFewestSecure : 2;
  if (options_.sites.size() < fewest)
    throw BadInput(
        fmt::format("`secure` needs {} sites or more: of two, each can subtract its own "
                    "numbers from the sum",
                    fewest));
  if (options_.min_sites == 0) options_.min_sites = options_.sites.size();
  if (options_.min_sites < fewest || options_.min_sites > options_.sites.size())
    throw BadInput(fmt::format("`min_sites {}` is not between {} and {}", options_.min_sites,
                               fewest, options_.sites.size()));
  if (!options_.journal.empty()) {
    const Journal past = read_journal(options_.journal, options_.job, options_.sites);
    totals_ = past.totals;
    attempt_ = past.attempt;
  }
  open(totals_.empty() ? "waiting for the sites"
                       : fmt::format("resuming after {} sums", totals_.size()));
}

void FederationCentre::send(MessageKind kind) {
  message_ = {};
  message_.kind = kind;
  message_.job = options_.job;
  message_.attempt = attempt_;
  message_.names = options_.sites;
  message_.secure = options_.secure;
  answers_.clear();
}

// Every attempt has keys of its own.
void FederationCentre::open(std::string status) {
  ++attempt_;
  if (!options_.journal.empty() && totals_.empty())
    start_journal(options_.journal, options_.job, options_.sites, attempt_);
  if (!options_.journal.empty()) note_attempt(options_.journal, attempt_);
  send(MessageKind::kOpen);
  status_ = std::move(status);
}

std::vector<std::string> FederationCentre::expected() const {
  std::vector<std::string> names;
  if (state_ != CentreState::kRunning && state_ != CentreState::kWaiting) return names;
  for (const std::string& site : options_.sites)
    if (!answers_.contains(site) && !has(lost_, site)) names.push_back(site);
  return names;
}

void FederationCentre::take(const std::string& site, std::string_view bytes) {
  if (state_ == CentreState::kDone || state_ == CentreState::kFailed) return;
  if (!has(options_.sites, site))
    throw BadInput(fmt::format("the site '{}' does not belong to this job", site));
  SiteMessage m = SiteMessage::decoded(bytes);
  bytes_ += std::ssize(bytes);
  if (m.job != options_.job)
    return fail(fmt::format("the site '{}' runs another job, or with other options", site));
  if (m.kind == MessageKind::kRefused)
    return fail(fmt::format("the site '{}' cannot go on; its own message says why", site));
  // An answer to a message of before: of a site that was thought lost.
  if (m.kind != MessageKind::kHello && m.attempt != attempt_) return;
  const bool fits = message_.kind == MessageKind::kOpen     ? m.kind == MessageKind::kHello
                    : message_.kind == MessageKind::kShares ? m.kind == MessageKind::kOpened
                    : message_.kind == MessageKind::kEnd
                        ? true
                        : m.kind == MessageKind::kPart || m.kind == MessageKind::kFinished;
  if (!fits)
    return fail(fmt::format("the site '{}' answers '{}' with '{}'", site, name_of(message_.kind),
                            name_of(m.kind)));
  answers_[site] = std::move(m);
  if (answers_.size() == options_.sites.size()) advance();
}

void FederationCentre::lost(const std::string& site) {
  if (!has(options_.sites, site) || has(lost_, site) || state_ == CentreState::kDone) return;
  answers_.erase(site);
  lost_.push_back(site);
  // The shares of the others open a sum that all sites have sent.
  if (message_.kind == MessageKind::kShares &&
      options_.sites.size() - lost_.size() > options_.sites.size() / 2 && expected().empty())
    open_shares();
  if (message_.kind == MessageKind::kEnd && expected().empty()) return advance();
  state_ = CentreState::kWaiting;
  status_ = fmt::format("waiting for {}", join(lost_, ", "));
}

void FederationCentre::back(const std::string& site) {
  std::erase(lost_, site);
  if (!lost_.empty() || state_ == CentreState::kFailed || state_ == CentreState::kDone) return;
  state_ = CentreState::kRunning;
  open(fmt::format("'{}' is back", site));
}

void FederationCentre::drop_lost() {
  if (lost_.empty()) return;
  for (const std::string& site : lost_)
    if (const auto found = may_leave_.find(site); found != may_leave_.end() && !found->second)
      return fail(
          fmt::format("the site '{}' is lost, and its settings do not let the others go on without "
                      "it: the sums "
                      "before and after would tell its own apart",
                      site));
  const std::size_t left = options_.sites.size() - lost_.size();
  if (left < options_.min_sites)
    return fail(fmt::format("{} sites are left, and `min_sites` is {}", left, options_.min_sites));
  for (const std::string& site : lost_) std::erase(options_.sites, site);
  const std::string without = join(lost_, ", ");
  lost_.clear();
  totals_.clear();
  ledger_.clear();
  restart_ = true;
  state_ = CentreState::kRunning;
  open(fmt::format("starting again without {}", without));
}

bool FederationCentre::may_drop() const {
  // A site that has not said so is left behind only before there are sums with its numbers.
  const auto stays = [&](const std::string& site) {
    const auto found = may_leave_.find(site);
    return found != may_leave_.end() ? !found->second : !totals_.empty();
  };
  return !lost_.empty() && std::none_of(lost_.begin(), lost_.end(), stays) &&
         options_.sites.size() - lost_.size() >= options_.min_sites;
}

void FederationCentre::fail(const std::string& why) {
  if (state_ == CentreState::kDone) return;
  state_ = CentreState::kFailed;
  status_ = why;
  send(MessageKind::kEnd);
  message_.text = why;
}

void FederationCentre::advance() {
  switch (message_.kind) {
    case MessageKind::kOpen:
      return begin();
    case MessageKind::kBegin:
    case MessageKind::kTotal:
      return take_parts();
    case MessageKind::kShares:
      return open_shares();
    default:
      state_ = CentreState::kDone;
      status_ = "done";
      progress_ = 1;
  }
}

// All sites use the best instruction set that all have.
void FederationCentre::begin() {
  std::vector<std::string> common = answers_.begin()->second.names;
  std::int64_t from = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string> keys;
  std::size_t chosen = 0;
  for (const std::string& site : options_.sites) {
    const SiteMessage& m = answers_.at(site);
    std::erase_if(common, [&](const std::string& set) { return !has(m.names, set); });
    if (common.empty())
      return fail(
          fmt::format("the site '{}' has no instruction set in common with the others", site));
    const auto own = std::find(common.begin(), common.end(), m.text);
    if (own != common.end())
      chosen = std::max<std::size_t>(chosen, static_cast<std::size_t>(own - common.begin()));
    if (m.round > std::ssize(totals_) && !restart_)
      return fail(fmt::format("the site '{}' is ahead of the centre's journal", site));
    from = std::min(from, m.round);
    may_leave_[site] = m.leave;
    keys.push_back(m.keys.empty() ? "" : m.keys[0]);
  }
  instruction_set_ = common[std::min(chosen, common.size() - 1)];
  send(MessageKind::kBegin);
  message_.restart = restart_;
  message_.text = instruction_set_;
  message_.keys = std::move(keys);
  message_.round = restart_ ? 0 : from;
  if (!restart_)
    message_.totals.assign(totals_.begin() + static_cast<std::ptrdiff_t>(from), totals_.end());
}

std::string FederationCentre::disagreement(const SiteMessage& a, const SiteMessage& b,
                                           const std::string& site) const {
  const auto of = [](const SiteMessage& m) {
    return m.kind == MessageKind::kFinished
               ? std::string("is done")
               : fmt::format("is at sum {} ({}, {} bytes)", m.round, m.purpose, m.bytes.size());
  };
  return fmt::format(
      "the sites differ: '{}' {}, '{}' {}; their programs or options are not the same",
      options_.sites[0], of(a), site, of(b));
}

void FederationCentre::take_parts() {
  const SiteMessage& first = answers_.at(options_.sites[0]);
  restart_ = false;
  progress_ = 1;
  for (const std::string& site : options_.sites) {
    const SiteMessage& m = answers_.at(site);
    progress_ = std::min(progress_, m.progress);
    const bool same =
        m.kind == first.kind && m.round == first.round &&
        (m.kind == MessageKind::kFinished
             ? m.text == first.text
             : m.round == std::ssize(totals_) && m.collective == first.collective &&
                   m.purpose == first.purpose &&
                   (m.collective == Collective::kTexts || m.bytes.size() == first.bytes.size()));
    if (!same)
      return fail(m.kind == MessageKind::kFinished && first.kind == m.kind
                      ? fmt::format("the sites '{}' and '{}' end with different models",
                                    options_.sites[0], site)
                      : disagreement(first, m, site));
  }
  if (first.kind == MessageKind::kFinished) {
    model_ = first.text;
    return send(MessageKind::kEnd);
  }
  under_way_ = first;
  status_ = first.purpose;
  if (first.collective == Collective::kTexts) {
    std::string all;
    for (const std::string& site : options_.sites) all += answers_.at(site).bytes;
    return add_total(std::move(all));
  }
  masked_.assign(first.bytes.size() / sizeof(Fixed), Fixed{});
  for (const std::string& site : options_.sites) {
    const std::vector<Fixed> own = fixed_of(answers_.at(site).bytes);
    for (std::size_t k = 0; k < own.size(); ++k) masked_[k] += own[k];
  }
  if (!options_.secure) return add_total(bytes_of(masked_));
  std::vector<std::string> sealed;
  for (const std::string& site : options_.sites) {
    const SiteMessage& m = answers_.at(site);
    if (m.sealed.size() != options_.sites.size())
      return fail(fmt::format("the site '{}' sends a sum without the shares of its mask", site));
    sealed.insert(sealed.end(), m.sealed.begin(), m.sealed.end());
  }
  send(MessageKind::kShares);
  message_.round = std::ssize(totals_);
  message_.sealed = std::move(sealed);
}

void FederationCentre::open_shares() {
  std::vector<std::vector<SeedShare>> shares;
  for (const std::string& site : options_.sites) {
    std::vector<SeedShare>& of = shares.emplace_back();
    const auto answer = answers_.find(site);
    if (answer == answers_.end()) continue;
    for (const std::string& text : answer->second.sealed) {
      SeedShare share;
      if (text.size() != share.size())
        return fail(fmt::format("the site '{}' sends a share of another size", site));
      std::memcpy(share.data(), text.data(), share.size());
      of.push_back(share);
    }
  }
  const SumContext context{.job = options_.job,
                           .attempt = static_cast<std::uint32_t>(attempt_),
                           .sites = options_.sites};
  unmask(context, static_cast<std::uint32_t>(totals_.size()), shares, masked_);
  add_total(bytes_of(masked_));
}

void FederationCentre::add_total(std::string total) {
  if (!options_.journal.empty()) append_total(options_.journal, total);
  auto at = std::find_if(ledger_.begin(), ledger_.end(), [&](const Entry& e) {
    return e.purpose == under_way_.purpose && e.collective == under_way_.collective;
  });
  if (at == ledger_.end())
    at = ledger_.insert(at, {.purpose = under_way_.purpose, .collective = under_way_.collective});
  ++at->totals;
  if (under_way_.collective == Collective::kSum)
    at->numbers += std::ssize(total) / static_cast<std::int64_t>(sizeof(Fixed));
  send(MessageKind::kTotal);
  message_.round = std::ssize(totals_);
  message_.bytes = total;
  totals_.push_back(std::move(total));
}

}  // namespace affpcl
