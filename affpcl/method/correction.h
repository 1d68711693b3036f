// The importance correction rg^i - g^{c->i} of AffPCL (eq:ker-het-pcl-alg, second and third term).
//
//   server   rg^i = (1/n) sum_j rho^i(s^j) g^{c->j}: the sum carries M = (1/n) sum_j psi(s^j)
//            g^{c->j}', and each agent makes rg^i of it (density/ratio.h)
//   client   rg^i = (1/n) sum_j g^{c->j}, and g^{c->i} / rho^i(s^i) takes the place of g^{c->i}:
//            unbiased, unbounded variance, for studies only
// Where only m of the n agents are present, means are over these. A ratio to their own mixture
// leaves rg^i unbiased. A ratio to the mixture of all (Ratio::against_all) does not: given that
// agent i is present, its own sample is in the sum for certain and another's with probability
// (m - 1)/(n - 1). Then
//
//     rg^i = 1/n rho^i(s^i) g^{c->i} + (n - 1)/(n (m - 1)) sum_{j != i} rho^i(s^j) g^{c->j}
//
// is unbiased over uniform participation; with m = 1 it is the mean of the agent's own g^{c->i}.
// docs/explain/participation.md derives it.
#pragma once

#include <memory>

#include "affpcl/base/params.h"
#include "affpcl/density/ratio.h"
#include "affpcl/method/method.h"

namespace affpcl {

class ImportanceCorrection {
 public:
  enum class Side { kServer, kClient };
  ImportanceCorrection(Side side, std::unique_ptr<Ratio> ratio)
      : side_(side), ratio_(std::move(ratio)) {}
  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum);

  // Begins local step k; returns where g^{c->j} of its samples is to be written: `space` (d rows),
  // or straight to its place.
  Out begin(const Block& block, int k, Out space) const;
  // Takes g^{c->j} of sample m of step k into the agent's own g^{c->i}, and `sent`, which is g or
  // what stands for it in the mean, into the round's sum. It is scaled on the way.
  void contribute(const Block& block, int k, int m, Out g, Out sent, Message message) const;
  // All samples are in; x are the iterates that drew them.
  void end(const Block& block, In x, Message message) const;
  void centre(const Round& round, Mean mean, Centre centre) const;

  void corrected(const Block& block, Mean mean, Out rg) const;        // rg^i
  In own(const Block& block, int k) const { return step(block, k); }  // g^{c->i} of local step k
  const Ratio& ratio() const { return *ratio_; }

 private:
  void reweigh(const Block& block, Out rg) const;
  bool at_server() const { return side_ == Side::kServer; }
  // With one sample in the round, g^{c->i} is the g^{c->j} that was sent, and one place holds both.
  bool in_place(const Batch& batch) const { return at_server() && batch.all_samples() == 1; }
  Out step(const Block& block, int k) const {
    const Out all = block.agents[gc_];
    return {all.row(k * d_), d_, all.lanes};
  }

  // g^{c->i} of one sample of this round.
  Out sample(const Block& block, int k, int m) const {
    if (each_.rows == 0) return step(block, k);
    const Out all = block.agents[each_];
    return {all.row((k * batch_ + m) * d_), d_, all.lanes};
  }

  Side side_;
  std::unique_ptr<Ratio> ratio_;
  int d_ = 0;
  Field gc_;    // agent: g^{c->i} of the round's steps, period x d rows
  Field each_;  // agent: the same of each sample, where agents are absent and steps have several
  int batch_ = 1;
  Field gbar_;  // sum, client: the plain mean of g^{c->j}
};

template <>
struct EnumNames<ImportanceCorrection::Side> {
  static constexpr std::string_view all[] = {"server", "client"};
};

}  // namespace affpcl
