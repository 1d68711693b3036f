// The collectives of Processes for numbers, strings and errors. Every rank calls them in the same
// order; a process alone keeps what it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/runtime/processes.h"

namespace affpcl {

// ---- numbers ----

// The numbers of every rank, in the order of the ranks; every rank has as many.
std::vector<double> all_gather(Processes& processes, std::span<const double> mine);
// The same where ranks may have more or fewer.
std::vector<double> all_gather_lists(Processes& processes, std::span<const double> mine);

void all_to_all(Processes& processes, std::span<const double> mine, std::span<const std::size_t> to,
                std::span<const std::size_t> from, std::span<double> all);

void broadcast(Processes& processes, std::span<double> numbers);
std::int64_t broadcast(Processes& processes, std::int64_t number);
void broadcast(Processes& processes, std::vector<double>& numbers);   // its size too
void broadcast(Processes& processes, std::vector<std::byte>& bytes);  // its size too

void gather(Processes& processes, std::span<const double> mine,
            FunctionRef<void(std::span<const double>)> take);
void scatter(Processes& processes, std::span<double> mine,
             FunctionRef<void(std::span<double>)> fill);

// Sums in fixed point, which no order or partition changes: numbers are brought to fixed point and
// added to `sums`; those of all ranks are added to `totals`. BadInput where a number is not finite or
// too large.
void add_exactly(std::span<const double> numbers, std::span<Fixed> sums);
void sum_exactly(Processes& processes, std::span<Fixed> sums, std::span<double> totals);

// Sums over the ranks, number by number, added in the order of the ranks; in fixed point where the
// ranks are apart.
void sum(Processes& processes, std::span<double> numbers);
std::size_t sum(Processes& processes, std::size_t count);

// ---- strings ----

// The strings of every rank, by rank; their number may differ.
std::vector<std::vector<std::string>> all_gather(Processes& processes,
                                                 const std::vector<std::string>& mine);
void broadcast(Processes& processes, std::vector<std::string>& strings);

// ---- errors ----

// Runs `work`, which may throw BadInput, on every rank. Where any rank throws, all do, with the
// sentence of the lowest such rank: no rank is left waiting in the next collective.
void on_all_ranks(Processes& processes, FunctionRef<void()> work);

}  // namespace affpcl
