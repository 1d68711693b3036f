#define XXH_INLINE_ALL

#include "affpcl/table/release.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/json.h"
#include "affpcl/math/gaussian_mechanism.h"

namespace affpcl {
namespace {

constexpr double kOfDelta = 0.001;                       // what privacy.cc leaves
constexpr std::size_t kMostRows = std::size_t{1} << 29;  // of an agent: sums stay below 2^62

std::int64_t whole(double z) { return std::llround(std::clamp(z, -1.0, 1.0) * (1 << kUnitBits)); }

std::string hash_of(const PrivacyTerms& terms, const Release& exact) {
  std::string text =
      fmt::format("{} {} {} {}", terms.epsilon, terms.delta, terms.sigma, exact.width);
  for (const Bound& b : terms.bounds) {
    text += fmt::format(" {} {} {}", b.column, b.low, b.high);
    for (const std::string& level : b.levels) text += "|" + level;
  }
  for (const std::string& name : exact.agents) text += fmt::format(" {} {}", name.size(), name);
  for (const std::int64_t number : exact.numbers) text += fmt::format(" {}", number);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Json read_release(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    return parse_json(text);
  } catch (const BadInput& e) {
    throw BadInput(fmt::format(
        "{} is damaged ({}): it is the one release of this site's rows, and another would cost "
        "privacy again",
        file, e.what()));
  }
}

}  // namespace

double Release::moment(std::size_t agent, std::size_t j, std::size_t k) const {
  if (j < k) std::swap(j, k);
  return static_cast<double>(numbers[agent * moments() + j * (j + 1) / 2 + k]) * (kUnit * kUnit);
}

Release exact_moments(const Frame& frame) {
  Release release{.agents = frame.agents, .width = frame.d + 1};
  const std::size_t w = release.width;
  release.numbers.assign(frame.agents.size() * release.moments(), 0);
  std::vector<std::int64_t> z(w);
  for (std::size_t i = 0; i < frame.agents.size(); ++i) {
    if (frame.agent_rows(i) > kMostRows)
      throw BadInput(
          fmt::format("agent '{}' has more rows than `privacy` can add", frame.agents[i]));
    std::int64_t* const sums = release.numbers.data() + i * release.moments();
    for (std::size_t r = frame.begin(i, 0); r < frame.begin(i + 1, 0); ++r) {
      for (std::size_t j = 0; j + 1 < w; ++j) z[j] = whole(frame.X[j * frame.rows + r]);
      z[w - 1] = whole(frame.Y[r]);
      for (std::size_t j = 0, at = 0; j < w; ++j)
        for (std::size_t k = 0; k <= j; ++k) sums[at++] += z[j] * z[k];
    }
  }
  return release;
}

void add_noise(const PrivacyTerms& terms, RandomBits& bits, Release& release) {
  const auto numbers = static_cast<double>(release.numbers.size());
  if (discrete_delta(terms.epsilon, static_cast<double>(terms.sigma), numbers) >
      kOfDelta * terms.delta)
    throw BadInput(
        fmt::format("`privacy` with epsilon {:g} and delta {:g} is not exact for {} moments; take "
                    "a smaller epsilon "
                    "or a larger delta",
                    terms.epsilon, terms.delta, numbers));
  for (std::int64_t& number : release.numbers) number += discrete_gaussian(terms.sigma, bits);
}

Release released_once(const std::string& file, const std::string& job, const PrivacyTerms& terms,
                      const Frame& frame, RandomBits& bits) {
  Release release = exact_moments(frame);
  const std::string of = file.empty() ? "" : hash_of(terms, release);
  if (!file.empty() && std::filesystem::exists(file)) {
    const Json kept = read_release(file);
    if (kept.get_or<std::string>("job", "") == job) {
      if (kept.get<std::string>("of") != of)
        throw BadInput(
            fmt::format("the rows or the bounds have changed since this site made its release in "
                        "this job ({}): "
                        "another release would cost privacy again",
                        file));
      release.numbers = kept.get<std::vector<std::int64_t>>("numbers");
      return release;
    }
  }
  add_noise(terms, bits, release);
  if (!file.empty())
    write_file(
        file,
        print_json(
            Json{{"format", "affpcl-release"},
                 {"about", "stays at the site, as its rows do: `of` depends on them without noise"},
                 {"job", job},
                 {"of", of},
                 {"epsilon", terms.epsilon},
                 {"delta", terms.delta},
                 {"numbers", release.numbers}}) +
            "\n");
  return release;
}

}  // namespace affpcl
