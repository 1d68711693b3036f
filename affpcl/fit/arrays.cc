#include "affpcl/fit/arrays.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/tables.h"

namespace affpcl {
namespace {

constexpr const char* kSource = "arrays";  // messages expect a file's name

void refuse_shape(const Arrays& a, std::size_t targets) {
  if (a.columns.size() != a.X.size())
    throw BadInput(fmt::format("X has {} columns, but {} are named or fitted", a.X.size(),
                               a.columns.size()));
  const std::size_t rows = a.X.empty() ? a.rows() : a.X[0].size();
  for (const std::vector<double>& column : a.X)
    if (column.size() != rows)
      throw BadInput(fmt::format("X has columns of {} and of {} rows", rows, column.size()));
  for (const auto& [what, length] : {std::pair{"y", targets}, std::pair{"groups", a.rows()}})
    if (length != rows)
      throw BadInput(fmt::format("X has {} rows, but {} has {}", rows, what, length));
  for (const std::int32_t code : a.agent_of)
    if (code < 0 || static_cast<std::size_t>(code) >= a.agents.size())
      throw BadInput(fmt::format("groups holds the code {} of {} names", code, a.agents.size()));
}

void refuse_names(const std::vector<std::string>& columns, const FrameOptions& o) {
  std::set<std::string> seen = {o.target};
  if (!seen.insert(o.agent).second)
    throw BadInput(fmt::format("target and groups are both called '{}'", o.agent));
  for (const std::string& name : columns)
    if (!seen.insert(name).second)
      throw BadInput(fmt::format(
          "two columns (or a column and the target or the groups) are called '{}'", name));
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

// The arrays as the table that a file with these columns would be.
Tables tables_of(Arrays a, ArrayTarget target, const FrameOptions& o) {
  Tables t;
  t.rows = a.rows();
  t.first = {0};
  t.parts.resize(1);
  t.parts[0].path = kSource;
  t.parts[0].rows = static_cast<std::int64_t>(t.rows);
  for (std::size_t c = 0; c < a.X.size(); ++c)
    t.columns.push_back(number_column(a.columns[c], std::move(a.X[c])));
  if (target.labels.empty()) {
    t.columns.push_back(number_column(o.target, std::move(target.values)));
  } else {
    std::vector<std::int32_t> codes = codes_of(target);
    t.columns.push_back(text_column(o.target, std::move(codes), std::move(target.labels)));
  }
  t.columns.push_back(text_column(o.agent, std::move(a.agent_of), std::move(a.agents)));
  return t;
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

FitResult fit(Arrays arrays, ArrayTarget target, FitOptions options) {
  FrameOptions& frame = options.frame;
  if (frame.target.empty()) frame.target = "y";
  if (frame.agent.empty()) frame.agent = "group";
  refuse_shape(arrays, target.values.size());
  refuse_names(arrays.columns, frame);
  Encoding encoding;
  encoding.missing = frame.missing.rest;
  encoding.reading = frame.reading;
  encoding.target = frame.target;
  encoding.agent_column = frame.agent;
  return fit(tables_of(std::move(arrays), std::move(target), frame), encoding, options);
}

FitResult fit(std::span<const double> X, std::span<const double> y,
              std::span<const std::string> groups, FitOptions options) {
  return fit(arrays_of(X, groups), {.values = {y.begin(), y.end()}}, std::move(options));
}

void each_row(const Model& model, const Arrays& arrays,
              FunctionRef<void(const RowPredictor&, std::size_t, const AgentModel*,
                               const std::vector<double>&)>
                  use) {
  const std::vector<Source>& sources = model.encoding.sources;
  refuse_shape(arrays, arrays.rows());
  if (arrays.columns.size() != sources.size())
    throw BadInput(fmt::format("X has {} columns, but {} are named or fitted",
                               arrays.columns.size(), sources.size()));
  for (const Source& s : sources)
    if (!s.levels.empty())
      throw BadInput(
          fmt::format("the model's column '{}' holds strings, which arrays of numbers lack; "
                      "predict files with it",
                      s.name));
  const RowPredictor rows(model);
  std::vector<const AgentModel*> agents;
  for (const std::string& name : arrays.agents) agents.push_back(rows.agent(name));
  std::vector<double> row(sources.size()), x;
  for (std::size_t r = 0; r < arrays.rows(); ++r) {
    for (std::size_t c = 0; c < sources.size(); ++c) row[c] = arrays.X[c][r];
    rows.encode(row, x, [&](const Source& source) {
      throw BadInput(
          fmt::format("row {} of X lacks column '{}', and the model was fitted with `missing error`",
                      r, source.name));
    });
    use(rows, r, agents[static_cast<std::size_t>(arrays.agent_of[r])], x);
  }
}

std::vector<double> predict(const Model& model, const Arrays& arrays) {
  std::vector<double> y(arrays.rows());
  each_row(model, arrays, [&](const RowPredictor& rows, std::size_t r, const AgentModel* agent,
                              const std::vector<double>& x) { y[r] = rows.number(agent, x); });
  return y;
}

std::vector<double> predict(const Model& model, std::span<const double> X,
                            std::span<const std::string> groups) {
  return predict(model, arrays_of(X, groups));
}

}  // namespace affpcl
