#include "affpcl/data/svmlight.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/base/function_ref.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/field.h"
#include "affpcl/data/lines.h"

namespace affpcl {
namespace {

struct Sample {
  std::int64_t line = 0;
  double label = 0;
  std::optional<double> qid;
  std::vector<std::pair<std::size_t, double>> values;  // by index, increasing
};

[[noreturn]] void refuse(const LineReader& in, std::string_view value, std::string_view what) {
  throw BadInput(fmt::format("{}, line {}: '{}' {}", in.path(), in.number(), shown(value), what));
}

// The next word of `rest`, empty at the end.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

void add_pair(const LineReader& in, std::string_view word, Sample& sample) {
  const std::size_t colon = word.find(':');
  const std::string_view key = word.substr(0, colon);
  const std::optional<double> value =
      colon == std::string_view::npos ? std::nullopt : parse_number(word.substr(colon + 1));
  if (!value) refuse(in, word, "is not index:value with a number");
  if (key == "qid") {
    if (sample.qid || !sample.values.empty()) refuse(in, word, "does not follow the label");
    sample.qid = value;
    return;
  }
  std::size_t index = 0;
  const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || stop != key.data() + key.size())
    refuse(in, word, "has an index that is not a whole number");
  if (index > kMostColumns)
    refuse(in, word, fmt::format("has an index above {}, the most there may be", kMostColumns));
  if (!sample.values.empty() && index <= sample.values.back().first)
    refuse(
        in, word,
        fmt::format("comes after index {}; indices have to increase", sample.values.back().first));
  sample.values.emplace_back(index, *value);
}

void each_sample(const std::string& path, FunctionRef<void(const Sample&)> visit) {
  LineReader in(path);
  Sample sample;
  std::optional<bool> with_qid;
  while (in.next()) {
    std::string_view rest = in.line().substr(0, in.line().find('#'));
    const std::string_view label = take_word(rest);
    if (label.empty()) continue;
    sample.line = in.number();
    sample.qid.reset();
    sample.values.clear();
    const std::optional<double> number = parse_number(label);
    if (!number) refuse(in, label, "is not a number, which a label has to be");
    sample.label = *number;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest))
      add_pair(in, word, sample);
    if (with_qid.value_or(sample.qid.has_value()) != sample.qid.has_value())
      refuse(in, label,
             *with_qid ? "has no qid, and rows before it have"
                       : "has a qid, and rows before it have none");
    with_qid = sample.qid.has_value();
    visit(sample);
  }
}

struct Shape {
  std::size_t rows = 0, first = 1, last = 0;  // first and last index
  bool qid = false;

  std::vector<std::string> names() const {
    std::vector<std::string> all{"y"};
    if (qid) all.emplace_back("qid");
    for (std::size_t i = first; i <= last; ++i) all.push_back(fmt::format("x{}", i));
    return all;
  }
};

Shape shape_of(const std::string& path) {
  Shape shape;
  each_sample(path, [&](const Sample& s) {
    ++shape.rows;
    shape.qid = s.qid.has_value();
    if (s.values.empty()) return;
    shape.first = std::min(shape.first, s.values.front().first);
    shape.last = std::max(shape.last, s.values.back().first);
  });
  if (shape.rows == 0) throw BadInput(fmt::format("{} has no rows", path));
  return shape;
}

}  // namespace

std::vector<std::string> svmlight_header(const std::string& path) { return shape_of(path).names(); }

DataTable read_svmlight(const std::string& path, const TableOptions& options) {
  const Shape shape = shape_of(path);
  const std::vector<std::string> names = shape.names();
  const std::vector<char> chosen = choose_columns(path, names, options.columns);
  DataTable table;
  table.path = path;
  std::vector<double*> column(names.size(), nullptr);
  table.columns.reserve(names.size());
  for (std::size_t c = 0; c < names.size(); ++c)
    if (chosen[c] != 0) {
      table.columns.push_back({.name = names[c]});
      table.columns.back().numbers.resize(shape.rows);
      column[c] = table.columns.back().numbers.data();
    }
  const auto changed = [&] { return BadInput(fmt::format("{} changed while it was read", path)); };
  std::size_t row = 0;
  std::int64_t line = -1;
  each_sample(path, [&](const Sample& s) {
    if (row == shape.rows) throw changed();
    const auto set = [&](std::size_t c, double value) {
      if (c >= column.size()) throw changed();
      if (column[c] != nullptr) column[c][row] = value;
    };
    set(0, s.label);
    if (shape.qid) set(1, s.qid.value_or(0));
    for (const auto& [index, value] : s.values) set(1 + shape.qid + index - shape.first, value);
    if (s.line != ++line) {
      line = s.line;
      table.line_breaks.emplace_back(row, line);
    }
    ++row;
  });
  if (row != shape.rows) throw changed();
  table.rows = static_cast<std::int64_t>(row);
  return table;
}

}  // namespace affpcl
