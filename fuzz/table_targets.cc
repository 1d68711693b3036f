// Tables: every format that read_table() knows but Parquet and Arrow, which pyarrow reads.
#include <stdexcept>
#include <string>

#include "affpcl/base/json.h"
#include "affpcl/data/table.h"
#include "fuzz/targets.h"

namespace affpcl::fuzz {
namespace {

void read_as(const char* name, std::string_view bytes) {
  if (bytes.starts_with("PAR1") || bytes.starts_with("ARROW1")) return;
  const std::string path = scratch_file(name, bytes);
  refusable([&] {
    const std::size_t columns = table_header(path).size();
    const DataTable table = read_table(path);
    if (table.names().size() > columns) throw std::logic_error("more columns than names");
  });
}

void read_json(std::string_view bytes) {
  try {
    const Json value = parse_json(std::string(bytes));
    // What was read can be printed and read again.
    if (!(parse_json(print_json(value)) == value)) throw std::logic_error("JSON changes");
  } catch (const BadJson&) {
  }
}

}  // namespace

std::span<const Target> table_targets() {
  static constexpr Target kAll[] = {
      {"csv", [](std::string_view b) { read_as("a.csv", b); }},
      {"npy", [](std::string_view b) { read_as("a.npy", b); }},
      {"npz", [](std::string_view b) { read_as("a.npz", b); }},
      {"svmlight", [](std::string_view b) { read_as("a.svm", b); }},
      {"idx", [](std::string_view b) { read_as("a-idx3-ubyte", b); }},
      {"leaf", [](std::string_view b) { read_as("a.json", b); }},
      {"packed", [](std::string_view b) { read_as("a.csv.gz", b); }},
      {"json", read_json},
  };
  return kAll;
}

}  // namespace affpcl::fuzz
