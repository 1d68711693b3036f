// A study at one site of a federation: every site runs the same rounds on the rows of its own agents,
// and sums over all sites take the place of sums over all agents. The agents of the sites follow one
// another in the order of the sites, so one process that has all rows in that order runs the same study
// to the bit where its sums are in fixed point.
#pragma once

#include <string>
#include <vector>

#include "affpcl/study/study.h"

namespace affpcl {

// What all sites have in common of a method.
struct CommonResult {
  std::vector<double> x,
      theta;  // x^c and theta^c, mean over the replicates used; empty: it has none
};

struct SiteStudy {
  StudyResult result;                             // agents are those of this site
  std::vector<std::vector<CommonResult>> common;  // by setting and method
  std::vector<std::int64_t> agents;               // of every site
};

// `options.processes` is the site; of the others threads, stop and progress count. BadInput where the
// study needs what sites do not offer.
SiteStudy run_study_at_site(const Study& study, const StudyOptions& options);

}  // namespace affpcl
