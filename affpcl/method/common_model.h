// A common model w that is learnt by FedAvg beside an agent's own: Ditto, fine-tuning, residual.
//
//   w += mean_i (where K local steps of agent i lead from w, minus w)     eq:fl
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class CommonModel {
 public:
  void declare(const Setup& setup, Layout& centre, SumLayout& sum, std::string_view name = "w");
  void start(const Problem& problem, Centre centre) const;
  // pull: of the local steps towards w (local_steps.h).
  void contribute(const Block& block, Message message, double pull = 0) const;
  void centre(Mean mean, Centre centre) const;

  In w(Centre centre) const { return centre[w_]; }
  In moved(Mean mean) const { return mean[moved_]; }  // by how much, in this round

 private:
  Field w_;      // centre
  Field moved_;  // sum: displacements
};

}  // namespace affpcl
