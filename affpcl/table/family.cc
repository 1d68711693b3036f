#include "affpcl/table/family.h"

#include <array>
#include <utility>

namespace affpcl {
namespace {

constexpr std::array<std::pair<Family, const char*>, 8> kNames{
    {{Family::kGaussian, "gaussian"},
     {Family::kT, "t"},
     {Family::kBinomial, "binomial"},
     {Family::kMultinomial, "multinomial"},
     {Family::kPoisson, "poisson"},
     {Family::kNegativeBinomial, "negative-binomial"},
     {Family::kGamma, "gamma"},
     {Family::kOrdinal, "ordinal"}}};

}  // namespace

const char* to_text(Family family) {
  for (const auto& [value, name] : kNames)
    if (value == family) return name;
  return "";
}

std::optional<Family> family_named(std::string_view name) {
  for (const auto& [value, text] : kNames)
    if (name == text) return value;
  return std::nullopt;
}

std::string family_names() {
  std::string all;
  for (const auto& [value, name] : kNames) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

}  // namespace affpcl
