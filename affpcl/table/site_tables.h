// Levels of string columns that may be named, and the table of a site whose rows no other may read.
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/tables.h"
#include "affpcl/runtime/processes.h"
#include "affpcl/table/encode.h"

namespace affpcl {

inline constexpr const char* kOtherLevel = "other";

// The rows of this site. All sites agree on the names, types and levels of the columns that models
// use: what they learn of each other are the names of columns, of levels with at least
// `level_rows` rows at a site, and counts over all sites. Agents' names stay where they are.
Tables read_site(const std::vector<std::string>& files, const std::vector<std::string>& header,
                 const FrameOptions& options, const Encoding& encoding, Processes& processes);

// Levels of the columns that models use become "other" where they have fewer than `level_rows` rows
// in the whole table.
void merge_rare_levels(Tables& tables, const FrameOptions& options, const Encoding& encoding,
                       Processes& processes);

}  // namespace affpcl
