// Folds that a column of the table decides: it names them, or says when each row was.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "affpcl/data/tables.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// When each row was, of a column of numbers or dates; of a stream also texts whose order is that of
// time. Empty where there is no column.
std::vector<double> row_times(const Tables& tables, const std::string& column,
                              const std::vector<char>& keep, bool dates_only);

// What the options hold out. `folds` has the name of each row's fold, and then its place among them.
HeldOut settle_folds(const FrameOptions& options, RowAgents& folds, const std::vector<char>& keep,
                     const std::string& file, Processes& processes);

// The block of each of an agent's rows, whose times ascend: as scikit-learn's TimeSeriesSplit cuts
// them, the first block takes what does not divide evenly. Rows of one time are in one block, the
// earliest of theirs. An agent with fewer rows than blocks has one row in each of the last.
std::vector<std::size_t> time_blocks(std::span<const double> times, int blocks);

// Refuses times of which no agent has two.
void refuse_one_time(const Frame& frame, Processes& processes);

}  // namespace affpcl
