// A verb as one site of a federation: the centre's messages come on standard input, the answers go to
// standard output, each after its length (8 bytes, the lowest first). What the verb prints goes to
// standard error.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "affpcl/federation/site.h"
#include "cli/options.h"

namespace affpcl::cli {

struct SiteOfJob {
  std::string name, job;
  bool may_leave = false, unmasked = false;
  std::string sent = {}, rows = {};  // as SiteOptions has them
};

// --site, --job, --may-leave and --unmasked of the verbs that a site runs.
void add_site(Verb& verb, SiteOfJob& site);

// A file that outlives an attempt of the job, beside the site's folder.
std::string kept_beside(const std::string& out, const SiteOfJob& site, std::string_view what);

// Runs work(site), again where another set of sites begins, says that it is done, and runs done(site).
// work returns what all sites have in common. What it throws ends the job for all sites.
void at_site(const SiteOfJob& of, const std::function<std::string(SiteProcesses&)>& work,
             const std::function<void(const SiteProcesses&)>& done);

}  // namespace affpcl::cli
