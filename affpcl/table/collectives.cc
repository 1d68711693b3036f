#include "affpcl/table/collectives.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

// Each text as its length and its bytes, eight to a number.
std::vector<double> packed(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  for (const std::string& t : texts) {
    const std::size_t at = numbers.size();
    numbers.resize(at + 1 + (t.size() + sizeof(double) - 1) / sizeof(double));
    numbers[at] = static_cast<double>(t.size());
    if (!t.empty()) std::memcpy(&numbers[at + 1], t.data(), t.size());
  }
  return numbers;
}

std::vector<std::string> unpacked(std::span<const double> numbers) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < numbers.size();) {
    std::string& t = texts.emplace_back(static_cast<std::size_t>(numbers[at]), '\0');
    if (!t.empty()) std::memcpy(t.data(), &numbers[at + 1], t.size());
    at += 1 + (t.size() + sizeof(double) - 1) / sizeof(double);
  }
  return texts;
}

std::vector<double> all_of(Processes& all, const std::vector<double>& mine,
                           std::vector<std::size_t>& counts) {
  const auto ranks = static_cast<std::size_t>(all.count());
  std::vector<double> sizes(ranks);
  const auto size = static_cast<double>(mine.size());
  all.share({&size, 1}, std::vector<std::size_t>(ranks, 1), sizes);
  counts.assign(sizes.begin(), sizes.end());
  std::size_t total = 0;
  for (std::size_t c : counts) total += c;
  std::vector<double> theirs(total);
  all.share(mine, counts, theirs);
  return theirs;
}

}  // namespace

void together(Processes& all, FunctionRef<void()> work) {
  if (all.count() == 1) return work();
  std::vector<std::string> refused;
  try {
    work();
  } catch (const BadInput& e) {
    refused.emplace_back(e.marked());
  }
  if (!all.any(!refused.empty())) return;
  for (const std::vector<std::string>& theirs : everybodys(all, refused))
    if (!theirs.empty()) throw BadInput(theirs[0]);
}

void add_up(Processes& all, std::vector<double>& counts) {
  if (all.count() == 1) return;
  const auto ranks = static_cast<std::size_t>(all.count());
  std::vector<double> theirs(ranks * counts.size());
  all.share(counts, std::vector<std::size_t>(ranks, counts.size()), theirs);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    counts[k] = 0;
    for (std::size_t r = 0; r < ranks; ++r) counts[k] += theirs[r * counts.size() + k];
  }
}

std::size_t added_up(Processes& all, std::size_t count) {
  std::vector<double> one = {static_cast<double>(count)};
  add_up(all, one);
  return static_cast<std::size_t>(one[0]);
}

std::vector<std::vector<std::string>> everybodys(Processes& all,
                                                 const std::vector<std::string>& mine) {
  if (all.count() == 1) return {mine};
  std::vector<std::size_t> counts;
  const std::vector<double> numbers = all_of(all, packed(mine), counts);
  std::vector<std::vector<std::string>> texts;
  std::size_t at = 0;
  for (std::size_t c : counts) {
    texts.push_back(unpacked(std::span(numbers).subspan(at, c)));
    at += c;
  }
  return texts;
}

void from_the_first(Processes& all, std::vector<std::string>& texts) {
  if (all.count() == 1) return;
  texts = everybodys(all, all.first() ? texts : std::vector<std::string>{})[0];
}

}  // namespace affpcl
