// What processes that hold different rows of one table have to tell each other. All of them call
// these functions in the same order; for a process alone they do nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/runtime/processes.h"

namespace affpcl {

// `work` may refuse its rows by BadInput. What the first of those who do says is then thrown by
// all, so nobody waits for one who is gone, and the sentence is that of a process alone.
void together(Processes& all, FunctionRef<void()> work);

// Whole numbers, added up over the processes, one by one.
void add_up(Processes& all, std::vector<double>& counts);
std::size_t added_up(Processes& all, std::size_t count);

// Every process's texts, by rank.
std::vector<std::vector<std::string>> everybodys(Processes& all,
                                                 const std::vector<std::string>& mine);
// The first process's texts, to everybody.
void from_the_first(Processes& all, std::vector<std::string>& texts);

}  // namespace affpcl
