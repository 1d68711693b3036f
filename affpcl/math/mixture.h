// A mixture of unit normals N(m_e, I) with weights w_e, and what its density ratios
//
//     rho_e(s) = exp(l_e) / sum_f w_f exp(l_f),     l_e = m_e's - |m_e|^2/2
//
// make of a block's samples: all of them against all components, the loop where the time of an
// exact importance correction goes. It is softmax attention, and computed like it: in tiles that
// stay in the cache, with logits taken relative to a component `own` of each sample, so that the
// sum is at least its weight and no pass for the maximum is needed.
#pragma once

#include <memory>
#include <vector>

#include "affpcl/math/blocks.h"

namespace affpcl {

enum class Precision { kDouble, kSingle };  // of logits, exponentials and products

class Mixture {
 public:
  Mixture();
  // `means` is [components][dim].
  Mixture(int dim, const std::vector<double>& means, const std::vector<double>& weights);
  ~Mixture();
  Mixture(Mixture&&) noexcept;
  Mixture& operator=(Mixture&&) noexcept;

  int components() const;

  // M (g.rows x components) += sum over the first `count` lanes of g_j rho(s_j)'. own: each lane's
  // m of the component that it was drawn from. Memory: a part of `components` x 64.
  void accumulate(In s, In own, In g, int count, Precision precision, Scratch& scratch,
                  double* M) const;
  // rho of each lane's own component, one row.
  void own_ratio(In s, In own, int count, Scratch& scratch, Out rho) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace affpcl
