#include "affpcl/table/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/data/later_header.h"
#include "affpcl/data/tables.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/columns-inl.h"
#include "affpcl/table/known.h"
#include "affpcl/table/levels.h"

namespace affpcl {

using namespace columns;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Columns that belong to rows and are no features.
std::vector<std::string> beside_features(const FrameOptions& o) {
  std::vector<std::string> names;
  for (const std::string* name : {&o.row_weight, &o.trials, &o.within, &o.crossed, &o.folds})
    if (!name->empty()) names.push_back(*name);
  for (const std::string& name : names_in(o.offset, "offset")) names.push_back(name);
  return names;
}

}  // namespace

bool is_outcome(const FrameOptions& o, const std::string& name) { return has(outcomes(o), name); }

bool is_feature(const FrameOptions& o, const Encoding& e, const std::string& name) {
  return !is_outcome(o, name) && name != e.agent_column && name != o.time &&
         !has(beside_features(o), name) && !has(o.exclude, name) &&
         (o.features.empty() || has(o.features, name));
}

namespace {

// Which levels the rows in `order` have, over all processes.
std::vector<std::string> levels_used(const Column& c, const std::vector<std::size_t>& order,
                                     Processes& processes) {
  std::vector<double> rows(c.levels.size());
  for (std::size_t r : order)
    if (c.codes[r] >= 0) ++rows[static_cast<std::size_t>(c.codes[r])];
  sum(processes, rows);
  std::set<std::string> found;
  for (std::size_t l = 0; l < rows.size(); ++l)
    if (rows[l] > 0) found.insert(c.levels[l]);
  return sorted_levels(found);
}

// Puts `value` of the rows in `order` behind X.
template <class Value>
void add_column(std::vector<double>& X, const std::vector<std::size_t>& order, Value value) {
  const std::size_t at = X.size();
  X.resize(at + order.size());
  for (std::size_t k = 0; k < order.size(); ++k) X[at + k] = value(order[k]);
}

// The same of all numbers that column `c` becomes; returns how many columns of X these are.
std::size_t encode_column(const Column& c, const std::vector<std::size_t>& order,
                          Processes& processes, Source& source, std::vector<double>& X) {
  if (!is_text(c)) {
    add_column(X, order, [&](std::size_t r) { return c.numbers[r]; });
  } else {
    source.levels = levels_used(c, order, processes);
    for (std::size_t l = 1; l < source.levels.size(); ++l)
      add_column(X, order, [&](std::size_t r) {
        return c.codes[r] < 0 ? kNaN : text(c, r) == source.levels[l] ? 1.0 : 0.0;
      });
  }
  source.dates = c.dates;
  source.indicator = source.missing == Missing::kIndicator && c.missing > 0;
  if (source.indicator)
    add_column(X, order, [&](std::size_t r) { return is_blank(c, r) ? 1.0 : 0.0; });
  const std::size_t own = is_text(c) ? std::max<std::size_t>(source.levels.size(), 1) - 1 : 1;
  return own + (source.indicator ? 1 : 0);
}

}  // namespace

bool by_number(const std::string& a, const std::string& b) {
  const auto x = parse_number(a), y = parse_number(b);
  if (x && y && *x != *y) return *x < *y;
  if (x.has_value() != y.has_value()) return x.has_value();  // numbers first
  return a < b;
}

std::size_t Encoding::dim() const {
  std::size_t d = 1;
  for (const Source& s : sources) d += s.width();
  return d;
}

std::vector<std::string> Encoding::names() const {
  std::vector<std::string> all = {"intercept"};
  for (const Source& s : sources) {
    if (s.levels.empty()) all.push_back(s.name);
    for (std::size_t l = 1; l < s.levels.size(); ++l) all.push_back(s.name + "=" + s.levels[l]);
    if (s.indicator) all.push_back(s.name + "=missing");
  }
  return all;
}

bool Encoding::is_common(std::size_t coefficient) const {
  std::size_t at = 1;
  for (const Source& s : sources) {
    if (coefficient >= at && coefficient < at + s.width()) return has(common, s.name);
    at += s.width();
  }
  return false;
}

std::vector<std::string> Encoding::offsets() const { return names_in(offset, "offset"); }

std::string Encoding::predicted() const {
  if (outcomes.empty()) return target;
  std::string text;
  for (const std::string& name : outcomes) text += (text.empty() ? "" : " + ") + name;
  return text;
}

std::optional<std::size_t> class_named(const Encoding& e, const std::string& text, char decimal) {
  const std::optional<double> number = parse_number(text, decimal);
  for (std::size_t k = 0; k < e.classes.size(); ++k)
    if (text == e.classes[k] || (number && number == parse_number(e.classes[k]))) return k;
  return {};
}

Encoding begin_encoding(const std::vector<std::string>& files,
                        const std::vector<std::string>& header, const FrameOptions& o) {
  if (o.known) return begin_known(files, header, o);
  Encoding encoding;
  encoding.missing = o.missing.rest;
  encoding.reading = o.reading;
  encoding.target = o.target;
  encoding.outcomes = o.channels;
  encoding.row_weight = o.row_weight, encoding.trials = o.trials, encoding.offset = o.offset;
  encoding.offset_scale = o.offset_scale, encoding.common = o.common;
  encoding.within = o.within, encoding.crossed = o.crossed;
  refuse_levels(o);
  const auto check = [&](const std::string& name) {
    if (!has(header, name))
      throw BadInput(lacks_column(files[0], name, header) +
                     later_header(files[0], name, o.reading));
  };
  if (!o.agent.empty()) check(o.agent);
  const bool whole = !o.site.empty() && o.agent.empty() && !has(header, "agent");
  if (!whole && (files.size() == 1 || !o.agent.empty() || names_agents(files[0])))
    encoding.agent_column = agent_column(files[0], header, o.agent);
  const char* const option = o.channels.empty() ? "target" : "channels";
  const std::vector<std::string> predicted = outcomes(o);
  for (const std::string& name : predicted) {
    check(name);
    if (name == encoding.agent_column)
      throw BadInput(fmt::format("column '{}' cannot be both `agent` and `{}`", name, option));
    if (std::count(predicted.begin(), predicted.end(), name) > 1)
      throw BadInput(fmt::format("`channels` names '{}' twice", name));
  }
  if (!o.time.empty()) check(o.time);
  if (!o.offset.empty() && !o.channels.empty())
    throw BadInput("`offset` needs a `target`; `channels` have none");
  for (const std::string& name : beside_features(o)) {
    check(name);
    if (has(predicted, name) || name == encoding.agent_column)
      throw BadInput(
          fmt::format("column '{}' is {} and cannot be a weight, offset, number of "
                      "trials, second factor or fold too",
                      name, has(predicted, name) ? "the target" : "the agent"));
  }
  for (const auto& [key, list] :
       {std::pair{"common", &o.common}, std::pair{"categorical", &o.categorical}})
    for (const std::string& name : *list) {
      check(name);
      if (has(beside_features(o), name) ||
          (list == &o.common && (has(predicted, name) || name == encoding.agent_column)))
        throw BadInput(fmt::format("`{}` names '{}', which is no feature", key, name));
    }
  for (const std::string& name : o.numeric) check(name);
  for (const std::string& name : o.categorical)
    if (has(o.numeric, name))
      throw BadInput(fmt::format("column '{}' cannot be both `categorical` and `numeric`", name));
  for (const auto& [name, rule] : o.missing.of) check(name);
  if (has(predicted, o.time) || (!o.time.empty() && o.time == encoding.agent_column))
    throw BadInput(fmt::format("`time` names '{}', which is {}", o.time,
                               has(predicted, o.time) ? "what is predicted" : "the agent"));
  const char* const role = o.channels.empty() ? "the target" : "a channel";
  for (const std::string& name : o.features) {
    check(name);
    if (has(predicted, name) || name == encoding.agent_column)
      throw BadInput(fmt::format("`features` names '{}', which is {}", name,
                                 has(predicted, name) ? role : "the agent"));
  }
  for (const std::string& name : o.exclude) {
    check(name);
    if (has(predicted, name))
      throw BadInput(fmt::format("`exclude` names '{}', which is {}", name, role));
  }
  return encoding;
}

TableOptions columns_needed(const std::vector<std::string>& header, const FrameOptions& o,
                            const Encoding& encoding) {
  if (o.known) return known_needed(o, encoding);
  TableOptions needed{.reading = o.reading};
  if (!encoding.agent_column.empty()) needed.text = {encoding.agent_column};
  if (encoding.leveled()) needed.text.push_back(encoding.level_column());
  if (!o.folds.empty()) needed.text.push_back(o.folds);
  for (const std::string& name : o.categorical)
    if (!has(outcomes(o), name) && name != encoding.agent_column) needed.text.push_back(name);
  if (o.features.empty() && o.exclude.empty()) return needed;
  for (const std::string& name : header) {
    const bool always = has(outcomes(o), name) || name == encoding.agent_column || name == o.time ||
                        has(beside_features(o), name);
    const bool feature = (o.features.empty() || has(o.features, name)) && !has(o.exclude, name);
    if (always || feature) needed.columns.push_back(name);
  }
  std::erase_if(needed.text, [&](const std::string& name) { return !has(needed.columns, name); });
  return needed;
}

void Problems::refuse(Processes& processes) const {
  on_all_ranks(processes, [&] {
    if (!sentences_.empty()) throw BadInput(several(sentences_));
  });
}

MissingRule MissingRule::parse(std::string_view text) {
  MissingRule rule;
  for (const std::string& part : names_in(text, "missing")) {
    const std::size_t equals = part.rfind('=');
    const auto value =
        value_of<Missing>(equals == std::string::npos ? std::string_view(part)
                                                      : std::string_view(part).substr(equals + 1),
                          "missing");
    if (equals == std::string::npos) {
      rule.rest = value;
    } else {
      rule.of[part.substr(0, equals)] = value;
    }
  }
  return rule;
}

Missing MissingRule::at(const std::string& column) const {
  const auto own = of.find(column);
  return own == of.end() ? rest : own->second;
}

const Params<TableChoices>& TableChoices::params() {
  static const Params<TableChoices> kParams =
      Params<TableChoices>{
          {"missing", &TableChoices::missing,
           "missing values: error, mean (filled with the column's mean), drop (the row is left "
           "out) "
           "or indicator (mean, and a column that says so); age=drop is for one column"},
          {"categorical", &TableChoices::categorical,
           "columns that are categories, whatever they hold"},
          {"numeric", &TableChoices::numeric, "columns that must be numbers, and are no ids"},
          {"levels", &TableChoices::levels, "most levels of a column of texts", between(2, 10'000)},
          {"level_rows", &TableChoices::level_rows,
           "levels of a column of texts with fewer rows become one, called other",
           between(1, 1'000'000)},
      }
          .add(&TableChoices::reading, ReadOptions::params());
  return kParams;
}

TableChoices TableChoices::of(const FrameOptions& o) {
  std::vector<std::string> rules = {std::string(name_of(o.missing.rest))};
  for (const auto& [column, rule] : o.missing.of)
    rules.push_back(fmt::format("{}={}", column, name_of(rule)));
  return {.missing = joined_names(rules),
          .categorical = joined_names(o.categorical),
          .numeric = joined_names(o.numeric),
          .levels = static_cast<std::int64_t>(o.levels),
          .level_rows = static_cast<std::int64_t>(o.level_rows),
          .reading = o.reading};
}

void TableChoices::put(FrameOptions& o) const {
  o.missing = MissingRule::parse(missing);
  o.categorical = names_in(categorical, "categorical");
  o.numeric = names_in(numeric, "numeric");
  o.levels = static_cast<std::size_t>(levels);
  o.level_rows = static_cast<std::size_t>(level_rows);
  o.reading = reading;
}

std::vector<double> encode_features(const std::vector<Column*>& features,
                                    const std::vector<std::size_t>& order, const AgentRows& rows,
                                    const MissingRule& missing, Team& team, Encoding& encoding,
                                    std::vector<std::string>& notes) {
  std::size_t widest = 1;
  for (const Column* c : features)
    widest += 1 + (is_text(*c) ? std::max<std::size_t>(c->levels.size(), 1) - 1 : 1);
  std::vector<double> X;
  X.reserve(widest * order.size());
  X.assign(order.size(), 1.0);
  std::vector<Source> sources;
  std::vector<std::size_t> widths;  // columns of X that each becomes
  std::vector<std::string> constant;
  for (Column* c : features) {
    sources.push_back(
        {.name = c->name, .levels = {}, .mean = {}, .sd = {}, .missing = missing.at(c->name)});
    widths.push_back(encode_column(*c, order, team.processes(), sources.back(), X));
    std::vector<double>().swap(c->numbers);
    std::vector<std::int32_t>().swap(c->codes);
  }
  const std::size_t width = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const std::vector<Scale> scales =
      standardise({X.data() + order.size(), width * order.size()}, width, rows, team);
  std::size_t kept = 1, at = 0;  // columns of X: what is constant is closed up
  for (std::size_t s = 0; s < sources.size(); at += widths[s++]) {
    const Scale* const scale = scales.data() + at;
    if (std::none_of(scale, scale + widths[s], [](const Scale& c) { return c.varies(); })) {
      constant.push_back(sources[s].name);
      continue;
    }
    for (std::size_t c = 0; c < widths[s]; ++c) {
      sources[s].mean.push_back(scale[c].mean);
      sources[s].sd.push_back(scale[c].sd);
    }
    const auto column = [&](std::size_t c) {
      return X.begin() + static_cast<std::ptrdiff_t>(c * order.size());
    };
    if (kept != at + 1) std::copy(column(at + 1), column(at + 1 + widths[s]), column(kept));
    kept += widths[s];
    encoding.sources.push_back(std::move(sources[s]));
  }
  X.resize(kept * order.size());
  if (!constant.empty())
    notes.push_back(fmt::format("left out, since constant: {}", listed(constant)));
  return X;
}

bool Scale::varies() const { return sd > 1e-12 * std::abs(mean) && std::isfinite(sd); }

std::vector<Scale> standardise(std::span<double> values, std::size_t columns, const AgentRows& rows,
                               Team& team) {
  std::vector<double> known(columns);
  std::vector<Scale> scales(columns);
  const auto weight = [&](std::size_t k) { return rows.weight.empty() ? 1 : rows.weight[k]; };
  AgentSum sum("means and deviations of columns", 2 * columns, rows.agents(), team);
  const double* totals = sum([&](std::size_t i, double* out) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double* const column = values.data() + c * rows.count();
      double total = 0, count = 0;
      for (std::size_t k = rows.first[i]; k < rows.first[i + 1]; ++k)
        if (!std::isnan(column[k])) total += weight(k) * column[k], count += weight(k);
      out[2 * c] += total;
      out[2 * c + 1] += count;
    }
  });
  for (std::size_t c = 0; c < columns; ++c) {
    known[c] = totals[2 * c + 1];
    if (known[c] > 0) scales[c].mean = totals[2 * c] / known[c];
  }
  totals = sum([&](std::size_t i, double* out) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double* const column = values.data() + c * rows.count();
      const double mean = scales[c].mean;
      double square = 0;
      for (std::size_t k = rows.first[i]; k < rows.first[i + 1]; ++k)
        if (!std::isnan(column[k])) square += weight(k) * (column[k] - mean) * (column[k] - mean);
      out[c] += square;
    }
  });
  for (std::size_t c = 0; c < columns; ++c)
    if (known[c] > 0) scales[c].sd = std::sqrt(totals[c] / known[c]);
  team.each(Leaves{0, static_cast<std::int64_t>(columns)}, [&](std::int64_t at, int) {
    const Scale& scale = scales[static_cast<std::size_t>(at)];
    double* const column = values.data() + static_cast<std::size_t>(at) * rows.count();
    if (scale.varies())
      for (std::size_t k = 0; k < rows.count(); ++k)
        column[k] = std::isnan(column[k]) ? 0 : (column[k] - scale.mean) / scale.sd;
  });
  return scales;
}

}  // namespace affpcl
