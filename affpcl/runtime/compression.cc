#include "affpcl/runtime/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "affpcl/random/choose.h"

namespace affpcl {

const Params<Compression>& Compression::params() {
  static const Params<Compression> kParams = {
      {"kind", &Compression::kind,
       "what an agent sends in place of its message: all of it, the largest numbers of each part, "
       "numbers drawn for all agents alike, or numbers rounded at random"},
      {"share", &Compression::share, "top-k, rand-k: share of the numbers of each part",
       above(0, 1)},
      {"bits", &Compression::bits, "quantise: bits of a number, its sign among them",
       between(2, 32)},
      {"feedback", &Compression::feedback,
       "whether what was left out is added to the agent's next message (error feedback); auto: "
       "with top-k"},
  };
  return kParams;
}

std::string to_text(const Compression& c) {
  std::string text(name_of(c.kind));
  if (c.kind == Compression::Kind::kQuantise) {
    text += fmt::format(" {}", c.bits);
  } else if (c.on()) {
    text += fmt::format(" {}", c.share);
  }
  if (c.on() && c.feedback != Compression::Feedback::kAuto)
    text += fmt::format(" feedback {}", name_of(c.feedback));
  return text;
}

Compressor::Compressor(const Compression& compression, const SumLayout& sum,
                       std::span<const std::string_view> uncompressed)
    : how_(compression) {
  for (const Layout::Named& part : sum.layout().fields()) {
    const int rows = part.field.rows;
    if (rows == 0) continue;
    Part p{part.field.at, rows, rows, false};
    if (how_.kind == Compression::Kind::kTopK || how_.kind == Compression::Kind::kRandK)
      p.kept = std::clamp(static_cast<int>(std::lround(how_.share * rows)), 1, rows);
    p.whole =
        std::find(uncompressed.begin(), uncompressed.end(), part.name) != uncompressed.end() ||
        length(p) >= rows;
    if (p.whole) p.kept = rows;
    parts_.push_back(p);
  }
}

double Compressor::length(const Part& part) const {
  if (part.whole) return part.rows;
  switch (how_.kind) {
    case Compression::Kind::kTopK: {
      const int position = std::bit_width(static_cast<unsigned>(part.rows - 1));
      return part.kept * (1 + position / 64.0);
    }
    case Compression::Kind::kRandK:
      return part.kept;
    case Compression::Kind::kQuantise:
      return part.rows * how_.bits / 64.0 + 1;
    case Compression::Kind::kNone:
      break;
  }
  return part.rows;
}

double Compressor::up() const {
  double numbers = 0;
  for (const Part& part : parts_) numbers += length(part);
  return numbers;
}

double Compressor::down() const {
  double numbers = 0;
  for (const Part& part : parts_)
    numbers += how_.kind == Compression::Kind::kRandK ? part.kept : part.rows;
  return numbers;
}

void Compressor::operator()(const Key& key, std::int64_t agent, std::span<double> message,
                            double* unsent, Scratch& scratch) const {
  const bool remembers = how_.remembers();
  const Scratch::Frame frame(scratch);
  double* const before = scratch.numbers(message.size());
  double* const uniforms = scratch.numbers(message.size());
  if (how_.kind == Compression::Kind::kQuantise)
    uniforms_of(key, agent, Purpose::kCompress, {uniforms, message.size()});
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Part& p = parts_[part];
    if (p.whole) continue;
    double* const x = message.data() + p.at;
    if (remembers)
      for (int r = 0; r < p.rows; ++r) {
        before[r] = x[r] += unsent[std::ptrdiff_t{p.at + r} * kLanes];
      }
    if (how_.kind == Compression::Kind::kTopK) keep_largest(p, x, scratch);
    if (how_.kind == Compression::Kind::kRandK) keep_drawn(key, part, x, scratch);
    if (how_.kind == Compression::Kind::kQuantise) round(p, uniforms + p.at, x);
    if (remembers)
      for (int r = 0; r < p.rows; ++r) unsent[std::ptrdiff_t{p.at + r} * kLanes] = before[r] - x[r];
  }
}

// Of numbers of the same size the first is kept. What is no number counts as the largest, so that a
// run that diverges is seen to.
void Compressor::keep_largest(const Part& part, double* x, Scratch& scratch) const {
  if (part.kept == part.rows) return;
  const Scratch::Frame frame(scratch);
  const auto rows = static_cast<std::size_t>(part.rows);
  double* const size = scratch.numbers(rows);
  double* const sorted = scratch.numbers(rows);
  for (std::size_t r = 0; r < rows; ++r)
    size[r] = std::isnan(x[r]) ? std::numeric_limits<double>::infinity() : std::abs(x[r]);
  std::copy_n(size, rows, sorted);
  std::nth_element(sorted, sorted + part.kept - 1, sorted + rows, std::greater<>());
  const double least = sorted[part.kept - 1];
  std::ptrdiff_t ties =
      part.kept - std::count_if(size, size + rows, [&](double s) { return s > least; });
  for (std::size_t r = 0; r < rows; ++r)
    if (size[r] < least || (size[r] == least && --ties < 0)) x[r] = 0;
}

void Compressor::keep_drawn(const Key& key, std::size_t part, double* x, Scratch& scratch) const {
  const Part& p = parts_[part];
  if (p.kept == p.rows) return;
  const Scratch::Frame frame(scratch);
  const auto words = static_cast<std::size_t>((p.rows + 63) / 64);
  auto* const drawn = reinterpret_cast<std::uint64_t*>(scratch.numbers(words));
  choose(key, Purpose::kCompress, p.rows, p.kept, {drawn, words}, static_cast<std::int64_t>(part));
  const double factor = how_.remembers() ? 1 : static_cast<double>(p.rows) / p.kept;
  for (int r = 0; r < p.rows; ++r) x[r] *= (drawn[r / 64] >> (r % 64) & 1) != 0 ? factor : 0;
}

// s k / L for k of -L to L: the one below or above, with the probability that makes the mean right.
void Compressor::round(const Part& part, const double* uniforms, double* x) const {
  double s = 0;
  for (int r = 0; r < part.rows; ++r) s = std::max(s, std::abs(x[r]));
  if (!(s > 0) || !std::isfinite(s)) return;
  const double levels = std::ldexp(1, how_.bits - 1) - 1;
  for (int r = 0; r < part.rows; ++r)
    x[r] = s * (std::floor(x[r] / s * levels + uniforms[r]) / levels);
}

}  // namespace affpcl
