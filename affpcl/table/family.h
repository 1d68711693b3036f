// The distribution of a target given its linear predictors, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace affpcl {

// Links: identity (gaussian, t), logit (binomial, multinomial), log (poisson, negative-binomial,
// gamma), cumulative logit (ordinal).
enum class Family {
  kGaussian,
  kT,
  kBinomial,
  kMultinomial,
  kPoisson,
  kNegativeBinomial,
  kGamma,
  kOrdinal
};
const char* to_text(Family family);
std::optional<Family> family_named(std::string_view name);
std::string family_names();  // all of them, for a sentence

// The target is one of several classes.
constexpr bool has_classes(Family family) {
  return family == Family::kBinomial || family == Family::kMultinomial ||
         family == Family::kOrdinal;
}

}  // namespace affpcl
