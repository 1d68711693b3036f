// The second factor of a table: the level that each row has.
#pragma once

#include "affpcl/data/tables.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// Refuses what `within` and `crossed` do not go with, as far as names tell.
void refuse_levels(const FrameOptions& options);

// The level of each row; rows without one are refused, or by the rule drop left out. Empty where
// there is no second factor.
RowAgents encode_levels(const Tables& tables, const FrameOptions& options, Processes& processes,
                        const Encoding& encoding, Marked marked);

// Levels in the order of their names, those without a row left out.
std::vector<std::string> settle_levels(RowAgents& levels, const std::vector<char>& keep,
                                       Processes& processes);

// Refuses families without a second factor, and an agent in two levels where it lies within one.
void check_levels(const Frame& frame, Processes& processes);

}  // namespace affpcl
