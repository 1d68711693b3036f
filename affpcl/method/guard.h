// The collaborative iterate of a guarded agent. AffPCL steps along g + h with the correction
// h = rg^i - g^{c->i}; guarded, an agent steps along
//
//     g + c (h - s hbar)
//
//   c     the weight that h deserves as a control variate, -<g, h> / <h, h> in [0, 1]: 1 while it
//         cancels the noise of g, 0 where it only adds noise.
//   hbar  the mean of h. It is 0 if the ratio is right, and then s is 0. The evidence of all agents
//         is pooled, for a ratio is rarely wrong for one alone: with v the variance of an agent's
//         hbar, B^2 = mean_j |hbar_j|^2 - (1 + 3.2 sqrt(2/(n d))) mean_j v_j is what is left when
//         chance is taken off (about three standard deviations of it), and s = B^2 / (B^2 + v / 5).
//
// All means are over past steps, step tau weighted by tau^2, so that they follow a transient and
// still settle. c uses nothing of the present step, so with a right ratio a step of mode `weight`
// is unbiased, as AffPCL's is. docs/explain/guard.md derives this, docs/decisions/010 has the study.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "affpcl/method/method.h"

namespace affpcl {

class Guard {
 public:
  enum class Mode { kNone, kWeight, kFull };  // weight: c alone; full: c and s
  explicit Guard(Mode mode) : mode_(mode) {}

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum);
  void contribute(const Block& block, Message message) const;
  void centre(const Round& round, Mean mean, Centre centre) const;
  // Turns the h of a local step into c (h - s hbar), then takes g and h into the means.
  void apply(const Block& block, In g, Out h) const;

  std::vector<Tally> tallies() const;
  void report(Agents agents, Out rows) const;
  std::vector<std::string> columns() const;
  static void conclude(std::span<const double> tallies, std::span<double> columns);

 private:
  bool on() const { return mode_ != Mode::kNone; }
  Mode mode_;
  // Mode full. Not on rows that are drawn again: there the mean of h is not 0 by chance.
  bool debias_ = false;
  Field hbar_;   // agent: the mean of h
  Field means_;  // agent: GuardRow; c and s as they were last
  Field pool_;   // centre: B^2
  Field sum_;    // sum: |hbar|^2, v
};

template <>
struct EnumNames<Guard::Mode> {
  static constexpr std::string_view all[] = {"none", "weight", "full"};
};

}  // namespace affpcl
