// Density ratios of the importance correction. Every kind has the form rho^i(s) = psi(s)' eta^i, so
// the corrected direction of every agent is one product with one summed matrix (sec:k-het-pcl,
// apx:dre):
//
//     rg^i = (1/n) sum_j rho^i(s_j) g_j = M' eta^i,     M = (1/n) sum_j psi(s_j) g_j'     (p x d)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/blocks.h"
#include "affpcl/math/message.h"
#include "affpcl/problem/round.h"

namespace affpcl {

class Ratio {
 public:
  virtual ~Ratio() = default;
  // Declares what it keeps and sends; throws BadInput if the problem lacks what this kind needs.
  virtual void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) = 0;
  // M += psi(s_j) g_j' for the agents of a block; `first` of the round's samples or a later one.
  virtual void contribute(const Block& block, In s, In g, bool first, Message message) const = 0;
  // All of the block's samples are in; x are the iterates that drew them.
  virtual void end(const Block& block, In x, Message message) const {
    (void)block, (void)x, (void)message;
  }
  virtual void centre(const Round& round, Mean mean, Centre centre) const {
    (void)round, (void)mean, (void)centre;
  }
  // rg^i = M' eta^i.
  virtual void correct(const Block& block, Mean mean, Out rg) const = 0;
  // rho^i at the agent's own sample.
  virtual void own(const Block& block, In s, Out rho) const = 0;
  // Learnt from the sums of contribute; without them there is nothing to learn from.
  virtual bool learns() const { return false; }
  // Where agents are absent: whether rho^i is the ratio to the mixture of all agents, and not to
  // that of those present. Then the mean over those present needs weights (method/correction.h).
  virtual bool against_all() const { return false; }
  // Parts of the sum that must not be compressed (method/method.h).
  virtual std::vector<std::string_view> uncompressed() const { return {}; }
  virtual bool needs_densities() const { return false; }  // of the problem
};

struct RatioKind {
  std::string_view name, doc;
  std::vector<Param> params;
  std::unique_ptr<Ratio> (*make)(const Values&);
};
const std::vector<RatioKind>& ratio_kinds();
// `ratio` and the parameters of every kind, each once, for the table of the method that uses them.
const std::vector<Param>& ratio_params();
// The kind that `values` names; refuses a parameter that this kind does not read.
std::unique_ptr<Ratio> make_ratio(const Values& values);

}  // namespace affpcl
