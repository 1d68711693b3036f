#include "affpcl/federation/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "affpcl/base/error.h"
#include "affpcl/federation/masks.h"
#include "affpcl/math/kernels.h"

namespace affpcl {

struct SiteProcesses::Secrets {
  SiteKeys keys = SiteKeys::make();
  Openings openings;
  std::unique_ptr<Masks> masks;  // of this attempt, where sums are secure
};

namespace {

[[noreturn]] void refuse_collective() {
  throw BadInput("this is not available in a federation: sites only add");
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

SiteProcesses::SiteProcesses(SiteOptions options, Channel& channel)
    : options_(std::move(options)), channel_(channel), secrets_(std::make_unique<Secrets>()) {
  read_sent();
  for (;;) {
    const SiteMessage m = receive();
    if (m.kind == MessageKind::kBegin) {
      begin(m);
      return;
    }
    if (m.kind != MessageKind::kOpen)
      throw BadInput(
          fmt::format("the federation's first message is '{}', not 'open'", name_of(m.kind)));
    send(hello());
  }
}

SiteProcesses::~SiteProcesses() = default;

SiteMessage SiteProcesses::receive() {
  const auto start = std::chrono::steady_clock::now();
  const std::string bytes = channel_.receive();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  SiteMessage m = SiteMessage::decoded(bytes);
  if (m.job != options_.job)
    throw BadInput("a message of the federation belongs to another job, or to other options");
  if (m.kind == MessageKind::kEnd && !m.text.empty()) throw Failure(m.text);
  return m;
}

void SiteProcesses::send(const SiteMessage& message) {
  const std::string bytes = message.encoded();
  bytes_ += std::ssize(bytes);
  channel_.send(bytes);
}

SiteMessage SiteProcesses::answer(MessageKind kind) const {
  SiteMessage m;
  m.kind = kind, m.job = options_.job, m.attempt = attempt_, m.round = round_;
  m.progress = progress_;
  return m;
}

SiteMessage SiteProcesses::hello() {
  secrets_->keys = SiteKeys::make();  // fresh ones for every attempt
  secrets_->masks.reset();
  SiteMessage m = answer(MessageKind::kHello);
  m.keys = {text_of(secrets_->keys.public_key)};
  m.names = available_instruction_sets();
  m.text = instruction_set();
  m.leave = options_.leave;
  return m;
}

void SiteProcesses::begin(const SiteMessage& m) {
  const auto me = std::find(m.names.begin(), m.names.end(), options_.name);
  if (me == m.names.end())
    throw BadInput(fmt::format("the federation goes on without the site '{}'", options_.name));
  const std::vector<std::string> sets = available_instruction_sets();
  if (std::find(sets.begin(), sets.end(), m.text) == sets.end())
    throw BadInput(
        fmt::format("the federation uses the instruction set {}, which is not available "
                    "on this machine",
                    m.text));
  if (!m.secure && !options_.unmasked)
    throw BadInput(
        "the centre asks for sums without masks, which this site's settings do not allow");
  check_rows(!m.totals.empty());
  if (instruction_set() != m.text) use_instruction_set(m.text);
  sites_ = m.names;
  rank_ = static_cast<int>(me - m.names.begin());
  attempt_ = m.attempt;
  secure_ = m.secure;
  known_ = m.totals, first_known_ = m.round;
  const bool again = m.restart && round_ > 0;
  if (secure_) make_masks(m);
  if (again) throw SiteRestart();
}

void SiteProcesses::restart() { round_ = 0, progress_ = 0; }

void SiteProcesses::make_masks(const SiteMessage& m) {
  if (m.restart) secrets_->openings = {};  // sums of another set begin
  std::vector<PublicKey> keys(m.keys.size());
  for (std::size_t s = 0; s < keys.size(); ++s) {
    if (m.keys[s].size() != keys[s].size()) throw BadInput("a public key has another size");
    std::memcpy(keys[s].data(), m.keys[s].data(), keys[s].size());
  }
  const SumContext context{
      .job = options_.job, .attempt = static_cast<std::uint32_t>(attempt_), .sites = sites_};
  secrets_->masks = std::make_unique<Masks>(secrets_->keys, context, keys,
                                            static_cast<std::size_t>(rank_), secrets_->openings);
}

bool SiteProcesses::knows(std::int64_t round) const {
  return round >= first_known_ && round - first_known_ < std::ssize(known_);
}

// A line for every message: purpose, kind, masked, numbers, bytes; it is there before the message leaves. A line
// without a purpose has the hash of the rows.
void SiteProcesses::read_sent() {
  std::ifstream in(options_.sent);
  for (std::string purpose, rest; std::getline(in, purpose, '\t') && std::getline(in, rest);) {
    if (purpose.empty()) {
      rows_sent_ = rest;
      continue;
    }
    int what = 0, masked = 0;
    std::size_t numbers = 0, bytes = 0;
    std::istringstream fields(rest);  // of a line that was cut off nothing has left
    if (!(fields >> what >> masked >> numbers >> bytes) || what < 0 ||
        what >= static_cast<int>(EnumNames<Collective>::all.size()))
      continue;
    purpose_ = purpose, secure_ = masked != 0;
    add_entry(static_cast<Collective>(what), numbers, bytes);
  }
  purpose_.clear(), secure_ = false;
}

void SiteProcesses::account(Collective what, std::size_t numbers, std::size_t bytes) {
  add_entry(what, numbers, bytes);
  write_sent(fmt::format("{}\t{} {} {} {}", purpose_, static_cast<int>(what), secure_ ? 1 : 0,
                         numbers, bytes));
}

void SiteProcesses::write_sent(const std::string& line) const {
  if (options_.sent.empty()) return;
  std::ofstream out(options_.sent, std::ios::app);
  out << line << '\n';
  if (!out.flush())
    throw Failure(fmt::format("{}: what was sent cannot be written: {}", options_.sent,
                              std::strerror(errno)));
}

// Sums of other rows would be mixed with those of the rows that are here now.
void SiteProcesses::check_rows(bool sums_so_far) {
  if (options_.rows.empty() || options_.rows == rows_sent_) return;
  if (sums_so_far && !rows_sent_.empty())
    throw BadInput(
        "the data of this site have changed since the sums so far: the job cannot go on with them; "
        "take back "
        "the change, or begin a job of another name");
  rows_sent_ = options_.rows;
  write_sent("\t" + rows_sent_);
}

void SiteProcesses::add_entry(Collective what, std::size_t numbers, std::size_t bytes) {
  auto at = std::find_if(ledger_.begin(), ledger_.end(), [&](const LedgerEntry& e) {
    return e.purpose == purpose_ && e.collective == what && e.masked == secure_;
  });
  if (at == ledger_.end())
    at = ledger_.insert(at, {.purpose = purpose_, .collective = what, .masked = secure_});
  ++at->messages;
  at->numbers += static_cast<std::int64_t>(numbers);
  at->bytes += static_cast<std::int64_t>(bytes);
}

SiteMessage SiteProcesses::part(Collective what, const std::string& own) {
  SiteMessage m = answer(MessageKind::kPart);
  m.purpose = purpose_, m.collective = what, m.bytes = own;
  if (what == Collective::kSum && secure_) {
    std::vector<Fixed> numbers = fixed_of(own);
    for (const auto& sealed :
         secrets_->masks->mask(static_cast<std::uint32_t>(round_), numbers).sealed)
      m.sealed.push_back(text_of(sealed));
    m.bytes = bytes_of(numbers);
  }
  account(what, what == Collective::kSum ? own.size() / sizeof(Fixed) : 0, m.bytes.size());
  return m;
}

SiteMessage SiteProcesses::opened(const SiteMessage& shares) {
  if (!secure_ || shares.round != round_ || shares.attempt != attempt_)
    throw BadInput("the centre asks for the shares of another sum");
  const std::size_t n = sites_.size();
  if (shares.sealed.size() != n * n)
    throw BadInput("the centre sends another number of sealed shares than sites need");
  std::vector<std::vector<std::byte>> mine;
  for (std::size_t sender = 0; sender < n; ++sender) {
    const auto bytes = as_bytes(shares.sealed[sender * n + static_cast<std::size_t>(rank_)]);
    mine.emplace_back(bytes.begin(), bytes.end());
  }
  SiteMessage m = answer(MessageKind::kOpened);
  for (const SeedShare& share : secrets_->masks->open(static_cast<std::uint32_t>(round_), mine))
    m.sealed.push_back(text_of(share));
  return m;
}

std::string SiteProcesses::collective(Collective what, const std::string& own) {
  if (!knows(round_)) {
    SiteMessage next = part(what, own);
    for (bool done = false; !done;) {
      send(next);
      const SiteMessage m = receive();
      switch (m.kind) {
        case MessageKind::kOpen:
          next = hello();
          break;
        case MessageKind::kBegin:
          begin(m);
          done = knows(round_);
          if (!done) next = part(what, own);
          break;
        case MessageKind::kShares:
          next = opened(m);
          break;
        case MessageKind::kTotal:
          if (m.round != round_)
            throw BadInput(
                fmt::format("the centre sends the total of round {}, not of {}", m.round, round_));
          known_ = {m.bytes}, first_known_ = round_;
          done = true;
          break;
        default:
          throw BadInput(
              fmt::format("the centre sends '{}' where a total is expected", name_of(m.kind)));
      }
    }
  }
  return known_[static_cast<std::size_t>(round_++ - first_known_)];
}

void SiteProcesses::sum(std::span<Fixed> numbers) {
  const std::vector<Fixed> total = fixed_of(collective(Collective::kSum, bytes_of(numbers)));
  if (total.size() != numbers.size())
    throw BadInput(
        fmt::format("a sum over the sites has {} numbers, not {}: the sites' programs or "
                    "options differ",
                    total.size(), numbers.size()));
  std::copy(total.begin(), total.end(), numbers.begin());
}

bool SiteProcesses::any(bool mine) {
  Fixed count{.low = mine ? 1U : 0U, .high = 0};
  sum(std::span(&count, 1));
  return count != Fixed{};
}

void SiteProcesses::all_gather(ConstBytes mine, Counts counts, Bytes all) {
  const std::string total = collective(Collective::kTexts, text_of(mine));
  std::size_t bytes = 0;
  for (const std::size_t n : counts) bytes += n;
  if (total.size() != bytes || all.size() != bytes)
    throw BadInput("the sites' texts have another size than they announced");
  if (bytes > 0) std::memcpy(all.data(), total.data(), bytes);
}

void SiteProcesses::all_to_all(ConstBytes, Counts, Counts, Bytes) { refuse_collective(); }
void SiteProcesses::broadcast(Bytes) { refuse_collective(); }
void SiteProcesses::scatter(Bytes, FunctionRef<void(Bytes)>) { refuse_collective(); }

void SiteProcesses::finish(const std::string& centre) {
  SiteMessage done = answer(MessageKind::kFinished);
  done.text = centre, done.progress = 1;
  for (SiteMessage next = done;;) {
    send(next);
    const SiteMessage m = receive();
    if (m.kind == MessageKind::kEnd) return send(done);
    if (m.kind == MessageKind::kOpen) {
      next = hello();
    } else if (m.kind == MessageKind::kBegin) {
      begin(m);
      next = done;
      next.attempt = attempt_;
    } else {
      throw BadInput(
          fmt::format("the centre sends '{}' where the end is expected", name_of(m.kind)));
    }
  }
}

void SiteProcesses::refuse() { send(answer(MessageKind::kRefused)); }

}  // namespace affpcl
