#include "affpcl/fit/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/field.h"
#include "affpcl/data/tables.h"
#include "affpcl/table/frame.h"

namespace affpcl {
namespace {

constexpr const char* kSource = "arrays";  // messages expect a file's name

void refuse_shape(const Arrays& a, std::size_t targets) {
  if (a.columns.size() != a.X.size())
    throw BadInput(
        fmt::format("X has {} columns, but {} are named or fitted", a.X.size(), a.columns.size()));
  const std::size_t rows = a.X.empty() ? a.rows() : a.X[0].size();
  for (const std::vector<double>& column : a.X)
    if (column.size() != rows)
      throw BadInput(fmt::format("X has columns of {} and of {} rows", rows, column.size()));
  const auto check = [&](const char* what, std::size_t length) {
    if (length != rows)
      throw BadInput(fmt::format("X has {} rows, but {} has {}", rows, what, length));
  };
  check("y", targets), check("groups", a.rows());
  if (!a.row_weight.empty()) check("`row_weight`", a.row_weight.size());
  if (!a.trials.empty()) check("`trials`", a.trials.size());
  for (const std::vector<double>& offset : a.offset) check("`offset`", offset.size());
  if (!a.fold_of.empty()) check("`folds`", a.fold_of.size());
  for (const std::int32_t code : a.agent_of)
    if (code < 0 || static_cast<std::size_t>(code) >= a.agents.size())
      throw BadInput(fmt::format("groups holds the code {} of {} names", code, a.agents.size()));
}

Column number_column(std::string name, std::vector<double> numbers) {
  Column c{.name = std::move(name)};
  c.numbers = std::move(numbers);
  for (const double x : c.numbers) c.missing += x != x;
  return c;
}

Column text_column(std::string name, std::vector<std::int32_t> codes,
                   std::vector<std::string> levels) {
  Column c{.name = std::move(name), .type = Column::Type::kText};
  c.codes = std::move(codes);
  c.levels = std::move(levels);
  return c;
}

std::vector<std::int32_t> codes_of(const ArrayTarget& target) {
  std::vector<std::int32_t> codes;
  for (const double value : target.values) {
    if (!(value >= 0 && value < static_cast<double>(target.labels.size())))
      throw BadInput(fmt::format("y holds the code {} of {} labels", value, target.labels.size()));
    codes.push_back(static_cast<std::int32_t>(value));
  }
  return codes;
}

// The columns of arrays but the target.
DataTable table_of(Arrays a, const FrameOptions& o) {
  DataTable t;
  t.path = kSource, t.rows = static_cast<std::int64_t>(a.rows());
  for (std::size_t c = 0; c < a.X.size(); ++c)
    t.columns.push_back(number_column(a.columns[c], std::move(a.X[c])));
  t.columns.push_back(text_column(o.agent, std::move(a.agent_of), std::move(a.agents)));
  if (!a.row_weight.empty())
    t.columns.push_back(number_column(o.row_weight, std::move(a.row_weight)));
  if (!a.trials.empty()) t.columns.push_back(number_column(o.trials, std::move(a.trials)));
  if (!a.fold_of.empty())
    t.columns.push_back(text_column(o.folds, std::move(a.fold_of), std::move(a.folds)));
  const std::vector<std::string> names = names_in(o.offset, "offset");
  if (!a.offset.empty() && a.offset.size() != names.size())
    throw BadInput(fmt::format("`offset` has {} columns, but {} are named or fitted",
                               a.offset.size(), names.size()));
  for (std::size_t k = 0; k < a.offset.size(); ++k)
    t.columns.push_back(number_column(names[k], std::move(a.offset[k])));
  return t;
}

void refuse_names(const DataTable& table) {
  std::set<std::string> seen;
  for (const Column& c : table.columns)
    if (!seen.insert(c.name).second)
      throw BadInput(fmt::format(
          "two columns of X, y, groups, weights, trials, offset and folds are called '{}'",
          c.name));
}

// The names of columns that arrays have and options do not name.
void name_columns(const Arrays& a, FrameOptions& o) {
  if (o.target.empty()) o.target = "y";
  if (o.agent.empty()) o.agent = "group";
  if (o.row_weight.empty() && !a.row_weight.empty()) o.row_weight = "row_weight";
  if (o.trials.empty() && !a.trials.empty()) o.trials = "trials";
  if (o.folds.empty() && !a.fold_of.empty()) o.folds = "fold";
  if (o.offset.empty() && !a.offset.empty())
    o.offset = a.offset.size() == 1 ? "offset" : joined_names(numbered("offset", a.offset.size()));
}

Tables tables_of(DataTable table) {
  Tables t;
  t.rows = static_cast<std::size_t>(table.rows);
  t.first = {0};
  t.columns = std::exchange(table.columns, {});
  t.parts.push_back(std::move(table));
  return t;
}

// What each column is; those that name things become texts.
Encoding begin(DataTable& table, const FrameOptions& o) {
  const std::vector<std::string> header = table.names();
  Encoding encoding = begin_encoding({table.path}, header, o);
  const TableOptions needed = columns_needed(header, o, encoding);
  for (Column& c : table.columns)
    if (std::find(needed.text.begin(), needed.text.end(), c.name) != needed.text.end())
      make_text(c);
  return encoding;
}

// The values of one source in the rows of a table, as RowPredictor::encode wants them.
class SourceValues {
 public:
  SourceValues(const Source& source, Column& column, const std::string& path) : column_(column) {
    const bool text = column.type == Column::Type::kText;
    if (source.levels.empty() && source.dates == DateOrder::kNone) {
      if (text && !column.levels.empty())
        throw BadInput(
            fmt::format("{}: column '{}' holds texts such as '{}', and the model was fitted "
                        "on numbers",
                        path, column.name, shown(column.levels[0])));
      return;
    }
    make_text(column);
    for (const std::string& level : column.levels) of_code_.push_back(value(source, level, path));
  }

  double operator[](std::size_t row) const {
    if (column_.type == Column::Type::kNumber) return column_.numbers[row];
    const std::int32_t code = column_.codes[row];
    return code < 0 ? std::nan("") : of_code_[static_cast<std::size_t>(code)];
  }

 private:
  static double value(const Source& source, const std::string& level, const std::string& path) {
    if (source.dates != DateOrder::kNone) {
      if (const auto day = parse_date(level, source.dates)) return *day;
      throw BadInput(
          fmt::format("{}: column '{}' holds '{}', which is no date such as the model was "
                      "fitted on ({})",
                      path, source.name, shown(level), name_of(source.dates)));
    }
    const auto known = std::find(source.levels.begin(), source.levels.end(), level);
    return known == source.levels.end() ? RowPredictor::kNewText
                                        : static_cast<double>(known - source.levels.begin());
  }

  const Column& column_;
  std::vector<double> of_code_;  // of a text
};

// The column of the agents of new rows; a model of one file per agent has none of its own.
std::string agents_of(const Encoding& e) {
  return e.agent_column.empty() ? "agent" : e.agent_column;
}

// The row's offsets; those of rows without a prediction are NaN.
void take_offsets(const Encoding& e, const std::vector<const Column*>& columns, std::size_t row,
                  std::vector<double>& to) {
  to.clear();
  for (const Column* c : columns) {
    const double v = c->numbers[row];
    if (std::isnan(v) ? e.missing != Missing::kDrop : !std::isfinite(linked(e, v)))
      throw BadInput(fmt::format("row {} of `offset` is {}, which is no offset", row, v));
    to.push_back(v);
  }
}

}  // namespace

Arrays arrays_of(std::span<const double> X, std::span<const std::string> groups) {
  if (groups.empty() || X.size() % groups.size() != 0)
    throw BadInput(fmt::format("X has {} numbers, which {} rows do not share evenly", X.size(),
                               groups.size()));
  const std::size_t rows = groups.size(), columns = X.size() / rows;
  Arrays a{.columns = numbered("x", columns), .X = {}, .agent_of = {}};
  a.X.assign(columns, std::vector<double>(rows));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) a.X[c][r] = X[r * columns + c];
  std::unordered_map<std::string_view, std::int32_t> codes;
  for (const std::string& group : groups) {
    const auto [at, is_new] = codes.emplace(group, static_cast<std::int32_t>(a.agents.size()));
    if (is_new) a.agents.push_back(group);
    a.agent_of.push_back(at->second);
  }
  return a;
}

FitResult fit(DataTable table, FitOptions options) {
  options = with_centre(std::move(options));
  const Encoding encoding = begin(table, options.frame);
  return fit(tables_of(std::move(table)), encoding, options);
}

Frame build_frame(DataTable table, const FrameOptions& options) {
  const Encoding encoding = begin(table, options);
  return build_frame(tables_of(std::move(table)), encoding, options);
}

FitResult fit(Arrays arrays, ArrayTarget target, FitOptions options) {
  FrameOptions& frame = options.frame;
  refuse_shape(arrays, target.values.size());
  name_columns(arrays, frame);
  DataTable table = table_of(std::move(arrays), frame);
  if (target.labels.empty()) {
    table.columns.push_back(number_column(frame.target, std::move(target.values)));
  } else {
    std::vector<std::int32_t> codes = codes_of(target);
    table.columns.push_back(text_column(frame.target, std::move(codes), std::move(target.labels)));
  }
  refuse_names(table);
  return fit(std::move(table), std::move(options));
}

FitResult fit(std::span<const double> X, std::span<const double> y,
              std::span<const std::string> groups, FitOptions options, const RowColumns& more) {
  Arrays arrays = arrays_of(X, groups);
  arrays.row_weight.assign(more.row_weight.begin(), more.row_weight.end());
  arrays.trials.assign(more.trials.begin(), more.trials.end());
  if (!more.offset.empty()) arrays.offset.emplace_back(more.offset.begin(), more.offset.end());
  return fit(std::move(arrays), {.values = {y.begin(), y.end()}}, std::move(options));
}

void each_row(const Model& model, DataTable table, UseRow use, double level) {
  const Encoding& e = model.encoding;
  const std::vector<std::string> header = table.names();
  const auto column = [&](const std::string& name) -> Column& {
    for (Column& c : table.columns)
      if (c.name == name) return c;
    throw BadInput(lacks_column(table.path, name, header));
  };
  std::vector<SourceValues> values;
  for (const Source& s : e.sources) values.emplace_back(s, column(s.name), table.path);
  std::vector<const Column*> offset_columns;
  for (const std::string& name : e.offsets()) {
    table.numbers(name);
    offset_columns.push_back(&column(name));
  }
  // A centre alone has no agents, and rows of a model of one agent need not name it.
  const bool named = std::find(header.begin(), header.end(), agents_of(e)) != header.end() ||
                     model.agents.size() > 1 || (!e.agent_column.empty() && !model.agents.empty());
  Column* const names = named ? &column(agents_of(e)) : nullptr;
  if (names != nullptr) make_text(*names);
  const RowPredictor rows(model, level);
  std::vector<const AgentModel*> agents;
  for (std::size_t a = 0; names != nullptr && a < names->levels.size(); ++a)
    agents.push_back(rows.agent(names->levels[a]));
  const AgentModel* const only = model.agents.empty() ? nullptr : &model.agents[0];
  Column* const factor = e.leveled() ? &column(e.level_column()) : nullptr;
  std::vector<int> levels;
  if (factor != nullptr) make_text(*factor);
  for (std::size_t g = 0; factor != nullptr && g < factor->levels.size(); ++g)
    levels.push_back(rows.level(factor->levels[g]));
  std::vector<double> row(values.size()), x, offsets;
  for (std::size_t r = 0; r < static_cast<std::size_t>(table.rows); ++r) {
    for (std::size_t s = 0; s < values.size(); ++s) row[s] = values[s][r];
    rows.encode(row, x, [&](const Source& source) {
      throw BadInput(fmt::format(
          "row {} of X lacks column '{}', and the model was fitted with `missing error`", r,
          source.name));
    });
    take_offsets(e, offset_columns, r, offsets);
    const std::int32_t agent = names == nullptr ? -1 : names->codes[r];
    use(rows, {.row = r,
               .agent = names == nullptr ? only
                        : agent < 0      ? nullptr
                                         : agents[static_cast<std::size_t>(agent)],
               .x = x,
               .offsets = offsets,
               .level = factor == nullptr || factor->codes[r] < 0
                            ? RowPredictor::kNewLevel
                            : levels[static_cast<std::size_t>(factor->codes[r])]});
  }
}

void each_row(const Model& model, Arrays arrays, UseRow use, double level) {
  const Encoding& e = model.encoding;
  refuse_shape(arrays, arrays.rows());
  if (arrays.columns.size() != e.sources.size())
    throw BadInput(fmt::format("X has {} columns, but {} are named or fitted",
                               arrays.columns.size(), e.sources.size()));
  for (const Source& s : e.sources)
    if (!s.levels.empty())
      throw BadInput(
          fmt::format("the model's column '{}' holds strings, which arrays of numbers lack; "
                      "predict files with it",
                      s.name));
  if (arrays.offset.empty() && !e.offset.empty())
    throw BadInput(
        fmt::format("the model was fitted with an offset, '{}', and needs `offset` of the "
                    "rows to predict",
                    e.offset));
  FrameOptions names{.paths = {}, .target = {}, .agent = agents_of(e)};
  names.offset = e.offset;
  for (std::size_t s = 0; s < e.sources.size(); ++s) arrays.columns[s] = e.sources[s].name;
  each_row(model, table_of(std::move(arrays), names), use, level);
}

std::vector<double> predict(const Model& model, Arrays arrays) {
  std::vector<double> y(arrays.rows());
  each_row(model, std::move(arrays), [&](const RowPredictor& rows, const EncodedRow& at) {
    y[at.row] = rows.number(at.agent, at.x, at.offsets, at.level);
  });
  return y;
}

std::vector<double> predict(const Model& model, std::span<const double> X,
                            std::span<const std::string> groups, std::span<const double> offset) {
  Arrays arrays = arrays_of(X, groups);
  if (!offset.empty()) arrays.offset.emplace_back(offset.begin(), offset.end());
  return predict(model, std::move(arrays));
}

}  // namespace affpcl
