// psi(s), the functions a learnt ratio is a combination of (apx:dre). All kinds contain the
// constant in their span, so that a ratio can have mean one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

class Features {
 public:
  virtual ~Features() = default;
  virtual int p() const = 0;
  virtual void operator()(const Problem& problem, Lanes lanes, In s, Out psi) const = 0;
};

// problem      what the problem offers
// one-hot      one per state of a finite problem
// polynomial   1, s, and with degree 2 also s_a s_b
// fourier      1 and cos(w's + c), w ~ N(0, 1/width^2) (Rahimi & Recht 2007)
// bumps        exp(-|s - c|^2 / (2 width^2)) over their sum, centres c among pilot samples: they
//              are not negative and sum to one
// auto         the first of problem, one-hot and bumps that the problem allows
//
// Where a width is needed it is the median distance of pilot samples. Those are drawn with a seed
// of their own, so features depend on the problem alone and not on the run.
struct FeatureConfig {
  enum class Kind { kAuto, kProblem, kOneHot, kPolynomial, kFourier, kBumps };
  Kind kind = Kind::kAuto;
  int p = 32;      // fourier, bumps
  int degree = 2;  // polynomial
  double width = 0;
  static const Params<FeatureConfig>& params();
};
template <>
struct EnumNames<FeatureConfig::Kind> {
  static constexpr std::string_view all[] = {"auto",       "problem", "one-hot",
                                             "polynomial", "fourier", "bumps"};
};
// Throws BadInput if the problem cannot have them, or if they are not finite.
std::unique_ptr<Features> make_features(const FeatureConfig& config, const Problem& problem);

}  // namespace affpcl
