#include "affpcl/runtime/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

using Bytes = Processes::Bytes;
using ConstBytes = Processes::ConstBytes;

// Buffers of bytes come from an allocator or from a span of doubles, so they are aligned for them.
std::span<double> as_doubles(Bytes bytes) {
  return {reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double)};
}
std::span<const double> as_doubles(ConstBytes bytes) {
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}

std::vector<std::size_t> in_bytes(std::span<const std::size_t> numbers) {
  std::vector<std::size_t> bytes;
  for (const std::size_t n : numbers) bytes.push_back(n * sizeof(double));
  return bytes;
}

// Each string as its length and its letters.
std::vector<std::byte> packed(const std::vector<std::string>& strings) {
  std::vector<std::byte> bytes;
  for (const std::string& s : strings) {
    const std::uint64_t size = s.size();
    const auto* number = reinterpret_cast<const std::byte*>(&size);
    const auto* letters = reinterpret_cast<const std::byte*>(s.data());
    bytes.insert(bytes.end(), number, number + sizeof size);
    bytes.insert(bytes.end(), letters, letters + s.size());
  }
  return bytes;
}

std::vector<std::string> unpacked(ConstBytes bytes) {
  std::vector<std::string> strings;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()) + sizeof size, size);
    bytes = bytes.subspan(sizeof size + size);
  }
  return strings;
}

}  // namespace

std::vector<double> all_gather(Processes& processes, std::span<const double> mine) {
  const auto ranks = static_cast<std::size_t>(processes.count());
  std::vector<double> all(ranks * mine.size());
  const std::vector<std::size_t> counts(ranks, mine.size_bytes());
  processes.all_gather(std::as_bytes(mine), counts, std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<double> all_gather_lists(Processes& processes, std::span<const double> mine) {
  const auto size = static_cast<double>(mine.size_bytes());
  const std::vector<double> sizes = all_gather(processes, std::span(&size, 1));
  const std::vector<std::size_t> counts(sizes.begin(), sizes.end());
  std::vector<double> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) /
                          sizeof(double));
  processes.all_gather(std::as_bytes(mine), counts, std::as_writable_bytes(std::span(all)));
  return all;
}

void all_to_all(Processes& processes, std::span<const double> mine, std::span<const std::size_t> to,
                std::span<const std::size_t> from, std::span<double> all) {
  processes.all_to_all(std::as_bytes(mine), in_bytes(to), in_bytes(from),
                       std::as_writable_bytes(all));
}

void broadcast(Processes& processes, std::span<double> numbers) {
  processes.broadcast(std::as_writable_bytes(numbers));
}

std::int64_t broadcast(Processes& processes, std::int64_t number) {
  processes.broadcast(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

void broadcast(Processes& processes, std::vector<double>& numbers) {
  numbers.resize(static_cast<std::size_t>(broadcast(processes, std::ssize(numbers))));
  broadcast(processes, std::span(numbers));
}

void broadcast(Processes& processes, std::vector<std::byte>& bytes) {
  bytes.resize(static_cast<std::size_t>(broadcast(processes, std::ssize(bytes))));
  processes.broadcast(bytes);
}

void gather(Processes& processes, std::span<const double> mine,
            FunctionRef<void(std::span<const double>)> take) {
  processes.gather(std::as_bytes(mine), [&](ConstBytes bytes) { take(as_doubles(bytes)); });
}

void scatter(Processes& processes, std::span<double> mine,
             FunctionRef<void(std::span<double>)> fill) {
  processes.scatter(std::as_writable_bytes(mine), [&](Bytes bytes) { fill(as_doubles(bytes)); });
}

void add_exactly(std::span<const double> numbers, std::span<Fixed> sums) {
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (!(std::abs(numbers[k]) < kLargestFixed))
      throw BadInput(
          "`sum fixed`: a sum over rows is not finite, or beyond 4.5e15, where numbers in fixed "
          "point "
          "end; use smaller units");
    sums[k] += to_fixed(numbers[k]);
  }
}

void sum_exactly(Processes& processes, std::span<Fixed> sums, std::span<double> totals) {
  processes.sum(sums);
  for (std::size_t k = 0; k < sums.size(); ++k) totals[k] = to_double(sums[k]);
}

void sum(Processes& processes, std::span<double> numbers) {
  if (processes.count() == 1) return;
  if (processes.apart()) {
    std::vector<Fixed> sums(numbers.size());
    add_exactly(numbers, sums);
    return sum_exactly(processes, sums, numbers);
  }
  const std::vector<double> all = all_gather(processes, numbers);
  std::fill(numbers.begin(), numbers.end(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) numbers[i % numbers.size()] += all[i];
}

std::size_t sum(Processes& processes, std::size_t count) {
  auto number = static_cast<double>(count);
  sum(processes, std::span(&number, 1));
  return static_cast<std::size_t>(number);
}

std::vector<std::vector<std::string>> all_gather(Processes& processes,
                                                 const std::vector<std::string>& mine) {
  if (processes.count() == 1) return {mine};
  const std::vector<std::byte> bytes = packed(mine);
  const auto size = static_cast<double>(bytes.size());
  const std::vector<double> sizes = all_gather(processes, std::span(&size, 1));
  const std::vector<std::size_t> counts(sizes.begin(), sizes.end());
  std::vector<std::byte> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  processes.all_gather(bytes, counts, all);
  std::vector<std::vector<std::string>> strings;
  ConstBytes rest = all;
  for (const std::size_t c : counts) {
    strings.push_back(unpacked(rest.first(c)));
    rest = rest.subspan(c);
  }
  return strings;
}

void broadcast(Processes& processes, std::vector<std::string>& strings) {
  if (processes.count() == 1) return;
  std::vector<std::byte> bytes = packed(strings);
  broadcast(processes, bytes);
  strings = unpacked(bytes);
}

void on_all_ranks(Processes& processes, FunctionRef<void()> work) {
  // A site that refuses its rows ends the job for all; its sentence stays at home.
  if (processes.count() == 1 || processes.apart()) return work();
  std::vector<std::string> refused;
  try {
    work();
  } catch (const BadInput& e) {
    refused.emplace_back(e.marked());
  }
  if (!processes.any(!refused.empty())) return;
  for (const std::vector<std::string>& theirs : all_gather(processes, refused))
    if (!theirs.empty()) throw BadInput(theirs[0]);
}

}  // namespace affpcl
