// What `affpcl federate` shows of a study over sites.
#pragma once

#include <string>

#include "affpcl/base/json.h"
#include "cli/federate_local.h"
#include "cli/job_file.h"

namespace affpcl::cli {

// From the folders of the sites and of the centre.
Json study_summary(const JobFile& job, const Federated& done, const std::string& out);
void print_study(const Json& summary);

}  // namespace affpcl::cli
