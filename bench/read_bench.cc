// Reading one file into a table: the file named by AFFPCL_READ (bench/read_csv.py sets it), or a
// small one of numbers.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "affpcl/data/table.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

std::string small_file() {
  const std::string path = std::filesystem::temp_directory_path() / "affpcl_read_bench.csv";
  std::FILE* const out = std::fopen(path.c_str(), "w");
  fmt::print(out, "agent");
  for (int j = 0; j < 50; ++j) fmt::print(out, ",x{}", j);
  for (std::uint32_t r = 0; r < 10'000; ++r) {
    fmt::print(out, "\n{}", r % 100);
    for (std::uint32_t j = 0; j < 50; ++j)
      fmt::print(out, ",{:.6g}",
                 normal({.seed = 1, .replicate = 0, .step = r}, 0, Purpose::kSample, j));
  }
  fmt::print(out, "\n");
  std::fclose(out);
  return path;
}

void ReadTable(benchmark::State& state) {
  const char* const given = std::getenv("AFFPCL_READ");
  const std::string path = given != nullptr ? given : small_file();
  std::int64_t rows = 0;
  for (auto _ : state) rows = read_table(path).rows;
  state.counters["rows"] = static_cast<double>(rows);
  state.SetBytesProcessed(static_cast<std::int64_t>(std::filesystem::file_size(path)) *
                          static_cast<std::int64_t>(state.iterations()));
  if (given == nullptr) std::filesystem::remove(path);
}
BENCHMARK(ReadTable)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace affpcl
