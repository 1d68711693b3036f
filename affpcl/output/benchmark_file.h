// The benchmark's result as benchmark.json, as its page, and as a table for people.
#pragma once

#include <string>

#include "affpcl/study/benchmark.h"

namespace affpcl {

std::string benchmark_json(const BenchmarkResult& result, const std::string& command);
// One HTML file with the table, to be sorted. BadInput where there is no template (page.h).
std::string benchmark_page(const BenchmarkResult& result, const std::string& command);
// Default parameters, then tuned ones: a line for each method, best mean rank first.
std::string benchmark_table(const BenchmarkResult& result);

}  // namespace affpcl
