// A federation on one machine: the centre in this process, every site a process of its own, which
// reads its rows and writes its folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/job_file.h"

namespace affpcl::cli {

struct FederateOptions {
  std::string out;      // folder of the results: one for every site, and `centre`
  std::string journal;  // of the totals so far, from which the job goes on
  bool report = false;
  std::function<void(double share)> progress = [](double) {};
  std::function<void(const std::string& text)> note = [](const std::string&) {};
};

struct Federated {
  std::vector<std::string> sites;  // that were there at the end
  std::int64_t rounds = 0, bytes_received = 0;
  double seconds = 0;
};

// BadInput or Failure names the site that cannot go on, and says why. Interrupted on Ctrl-C: what
// was done is in the journal, and no site's process is left.
Federated federate_local(const JobFile& job, const FederateOptions& options);

}  // namespace affpcl::cli
