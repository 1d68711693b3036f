// The second factor of a table: the level that each row has.
#pragma once

#include "affpcl/data/tables.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// Refuses what `within` and `crossed` do not go with, as far as names tell.
void refuse_levels(const FrameOptions& options);

// The name of each row in a column of levels or folds; rows without one are refused, or by the rule
// drop left out. Empty where there is no column.
RowAgents encode_names(const std::string& column, const Tables& tables, const FrameOptions& options,
                       Processes& processes, Marked marked);

// Names in their order, those without a row left out; each row then has the place of its own.
std::vector<std::string> settle_names(RowAgents& levels, const std::vector<char>& keep,
                                      Processes& processes);

// Refuses families without a second factor, and an agent in two levels where it lies within one.
void check_levels(const Frame& frame, Processes& processes);

}  // namespace affpcl
