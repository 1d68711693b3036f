// What a federation writes: what all sites have in common, and a site's ledger.
#pragma once

#include <string>
#include <vector>

#include "affpcl/federation/centre.h"
#include "affpcl/federation/site.h"
#include "affpcl/study/site_study.h"
#include "affpcl/table/model.h"

namespace affpcl {

// centre.json: model.json without agents, names of files and how the table is written. Of several
// sites, each of which may have its own, it lacks the name of the agents' column too. Predictions are
// those for an agent never seen, and agents may join it later (FitOptions::centre).
std::string centre_json(const Model& model, bool of_sites);

// Of a study: the curves of the mean over all agents, and the centres of the methods.
std::string centre_json(const SiteStudy& study);

// ledger.json: what this site has sent, and what it says of its rows.
std::string ledger_json(const SiteProcesses& site, const Model& model = {});
// Of the centre: which totals it has added.
std::string ledger_json(const FederationCentre& centre);

}  // namespace affpcl
