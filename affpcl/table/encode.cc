#include "affpcl/table/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/data/tables.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/known.h"
#include "affpcl/table/levels.h"

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostOfMultinomial = 300;  // coefficients, where the family is not stated

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Columns that belong to rows and are no features.
std::vector<std::string> beside_features(const FrameOptions& o) {
  std::vector<std::string> names;
  for (const std::string* name : {&o.row_weight, &o.trials, &o.within, &o.crossed, &o.folds})
    if (!name->empty()) names.push_back(*name);
  for (const std::string& name : names_in(o.offset, "offset")) names.push_back(name);
  return names;
}

std::vector<std::string> outcomes(const FrameOptions& o) {
  return o.channels.empty() ? std::vector{o.target} : o.channels;
}

}  // namespace

bool is_outcome(const FrameOptions& o, const std::string& name) { return has(outcomes(o), name); }

bool is_feature(const FrameOptions& o, const Encoding& e, const std::string& name) {
  return !is_outcome(o, name) && name != e.agent_column && name != o.time &&
         !has(beside_features(o), name) && !has(o.exclude, name) &&
         (o.features.empty() || has(o.features, name));
}

namespace {

bool is_text(const Column& c) { return c.type == Column::Type::kText; }

bool is_blank(const Column& c, std::size_t row) {
  return is_text(c) ? c.codes[row] < 0 : std::isnan(c.numbers[row]);
}

const std::string& text(const Column& c, std::size_t row) {
  return c.levels[static_cast<std::size_t>(c.codes[row])];
}

std::vector<std::string> sorted_levels(const std::set<std::string>& found) {
  std::vector<std::string> levels(found.begin(), found.end());
  std::sort(levels.begin(), levels.end(), by_number);
  return levels;
}

std::string plural(std::size_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i)
    all += (i > 0 ? ", " : "") + names[i];
  if (names.size() > 5) all += fmt::format(" and {} more", names.size() - 5);
  return all;
}

// A code such as 3+, <1 or 5-9: no number, but made of numbers.
bool is_code(const std::string& level) {
  return level.find_first_of("0123456789") != std::string::npos &&
         level.find_first_not_of("0123456789+-<>= .%") == std::string::npos;
}

}  // namespace

bool note_slip(const Tables& tables, const Column& c, std::size_t most_levels,
               Processes& processes, Problems& problems) {
  if (!is_text(c)) return false;
  std::vector<char> number(c.levels.size());
  bool codes = c.levels.size() <= most_levels;
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    number[l] = parse_number(c.levels[l], c.decimal).has_value() && !beyond_double(c.levels[l]);
    codes = codes && (number[l] != 0 || is_code(c.levels[l]));
  }
  std::size_t numbers = 0, texts = 0, first = 0;
  for (std::size_t r = 0; r < c.codes.size(); ++r) {
    if (c.codes[r] < 0) continue;
    if (number[static_cast<std::size_t>(c.codes[r])] != 0) {
      ++numbers;
    } else if (texts++ == 0) {
      first = r;
    }
  }
  const std::size_t all_numbers = sum(processes, numbers),
                    all_texts = sum(processes, texts);
  if (all_numbers <= all_texts || codes) return false;
  if (texts > 0)
    problems.add(tables.complaint(
        first, c.name, text(c, first),
        fmt::format("{}, and the column has {} numbers; correct it, blank it, name it in `na`, or "
                    "leave it out with `exclude {}`",
                    no_number(text(c, first), c.decimal), all_numbers,
                    joined_names(std::span(&c.name, 1)))));
  return true;
}

namespace {

// A column of texts where numbers are needed; `why` says by what.
bool note_text(const Tables& tables, const Column& c, std::string_view why, Processes& processes,
               Problems& problems) {
  if (!is_text(c)) return false;
  std::size_t found = 0;
  for (std::size_t r = 0; r < tables.rows && found == 0; ++r)
    if (c.codes[r] >= 0 && !parse_number(text(c, r), c.decimal)) {
      problems.add(tables.complaint(
          r, c.name, text(c, r), fmt::format("{}, which {}", no_number(text(c, r), c.decimal), why)));
      ++found;
    }
  if (sum(processes, found) == 0)
    problems.add(fmt::format("{}: column '{}' holds texts and no numbers, which {}",
                             tables.parts[0].path, c.name, why));
  return true;
}

// Numbers all of them, if the other mark were the decimal one.
bool other_decimal(const Column& c) {
  const char other = c.decimal == '.' ? ',' : '.';
  return !c.levels.empty() &&
         std::all_of(c.levels.begin(), c.levels.end(), [&](const std::string& level) {
           return !beyond_double(level) && (parse_number(level, other).has_value() ||
                                            parse_number(level, c.decimal).has_value());
         });
}

// What writes an index of rows calls it nothing, or one of these.
bool is_index_name(const std::string& name) {
  return name.starts_with("column ") || name.starts_with("Unnamed: ") || name == "...1" ||
         name == "__index_level_0__";
}

bool is_id_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "id" || name.ends_with("_id") || name.ends_with(" id") || name == "uuid" ||
         name == "guid" || name == "rowid" || name == "row_number";
}

// Whole numbers, no two alike, as far as this process sees.
bool all_different(const Column& c) {
  std::vector<double> sorted;
  for (double v : c.numbers)
    if (!std::isnan(v)) sorted.push_back(v);
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::all_of(sorted.begin(), sorted.end(), [](double v) { return v == std::floor(v); });
}

constexpr std::size_t kFewRows = 20;  // where all values of a column may well be different

// Why a column says nothing about new rows; empty: it may.
std::string no_feature(const Column& c, std::size_t rows, std::size_t most_levels,
                       Processes& processes) {
  const std::size_t known = rows - static_cast<std::size_t>(c.missing);
  if (is_text(c)) {
    if (is_index_name(c.name) && c.levels.size() == known) return "names of rows";
    if (c.levels.size() <= std::max(most_levels, std::size_t{1})) return "";
    if (std::any_of(c.levels.begin(), c.levels.end(), beyond_double))
      return "integers beyond 2^53, which are ids and not quantities";
    return c.levels.size() == known ? "every value is different, as of an id" : "";
  }
  if (!is_index_name(c.name) && (!is_id_name(c.name) || rows <= kFewRows)) return "";
  if (sum(processes, all_different(c) ? 0 : 1) > 0) return "";
  return is_index_name(c.name) ? "an index of the rows" : "every value is different, as of an id";
}

void to_days(Column& c, DateOrder order) {
  std::vector<double> day;
  for (const std::string& level : c.levels) day.push_back(*parse_date(level, order));
  c.numbers.reserve(c.codes.size());
  for (std::int32_t code : c.codes)
    c.numbers.push_back(code < 0 ? kNaN : day[static_cast<std::size_t>(code)]);
  c.type = Column::Type::kNumber;
  c.dates = order;
  std::vector<std::int32_t>().swap(c.codes);
  c.levels.clear();
}

// What any process has found.
std::set<std::string> all_found(const std::set<std::string>& mine, Processes& processes) {
  std::set<std::string> all;
  for (const std::vector<std::string>& theirs : all_gather(processes, {mine.begin(), mine.end()}))
    all.insert(theirs.begin(), theirs.end());
  return all;
}

// The classes found go to the encoding, each row's to the result; -1 for rows that are not kept.
std::vector<std::int32_t> classes_of(const Tables& tables, const Column& c, Processes& processes,
                                     const std::vector<char>& keep, Encoding& encoding) {
  std::vector<std::string> texts(is_text(c) ? 0 : tables.rows);
  const auto value = [&](std::size_t r) -> const std::string& {
    return is_text(c) ? text(c, r) : texts[r];
  };
  std::set<std::string> found;
  for (std::size_t r = 0; r < tables.rows; ++r) {
    if (keep[r] == 0) continue;
    if (!is_text(c)) {
      texts[r] = fmt::to_string(c.numbers[r]);
      if (found.size() > kMostClasses) break;
    }
    found.insert(value(r));
  }
  processes.set_purpose("names of classes");
  found = all_found(found, processes);
  const std::string& path = tables.parts[0].path;
  if (found.size() > kMostClasses)
    throw BadInput(
        fmt::format("{}: the target '{}' has {}{} values, more than {} classes; is it a number to "
                    "predict (`task regress`)?",
                    path, c.name, is_text(c) ? "" : "at least ",
                    is_text(c) ? found.size() : kMostClasses + 1, kMostClasses));
  encoding.classes = sorted_levels(found);
  if (encoding.classes.size() < 2)
    throw BadInput(
        fmt::format("{}: the target '{}' is '{}' in every row; there is nothing to learn", path,
                    c.name, encoding.classes.empty() ? "" : encoding.classes[0]));
  std::map<std::string, std::int32_t> code;
  for (std::size_t k = 0; k < encoding.classes.size(); ++k)
    code[encoding.classes[k]] = static_cast<std::int32_t>(k);
  std::vector<std::int32_t> classes(tables.rows, -1);
  for (std::size_t r = 0; r < tables.rows; ++r)
    if (keep[r] != 0) classes[r] = code[value(r)];
  return classes;
}

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
    if (!has(header, name)) throw BadInput(lacks_column(files[0], name, header));
  };
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
      throw BadInput(fmt::format("column '{}' is {} and cannot be a weight, offset, number of "
                                 "trials, second factor or fold too",
                                 name, has(predicted, name) ? "the target" : "the agent"));
  }
  for (const auto& [key, list] : {std::pair{"common", &o.common}, std::pair{"categorical", &o.categorical}})
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
    const bool always = has(outcomes(o), name) || name == encoding.agent_column ||
                        name == o.time || has(beside_features(o), name);
    const bool feature = (o.features.empty() || has(o.features, name)) && !has(o.exclude, name);
    if (always || feature) needed.columns.push_back(name);
  }
  std::erase_if(needed.text, [&](const std::string& name) { return !has(needed.columns, name); });
  return needed;
}

namespace {

// What the values of a numeric target are, over all processes.
struct Values01 {
  bool zero_one = false;  // 0 and 1, both of them
  bool counts = false;    // whole numbers from 0 on
};
Values01 look_at(const Column& c, Processes& processes) {
  std::vector<double> found(4);  // 0, 1, other whole numbers, what is none
  for (double v : c.numbers)
    if (!std::isnan(v)) ++found[v == 0 ? 0 : v == 1 ? 1 : v > 0 && v == std::floor(v) ? 2 : 3];
  sum(processes, found);
  return {found[0] > 0 && found[1] > 0 && found[2] + found[3] == 0,
          found[3] == 0 && found[2] > 0};
}

// The family that the options ask for; nullopt: to be chosen by the target.
std::optional<Family> wanted_family(const FrameOptions& o) {
  if (o.family == "auto") return std::nullopt;
  const std::optional<Family> family = family_named(o.family);
  if (!family)
    throw BadInput(fmt::format("`family {}` is not one of auto, {}", o.family, family_names()));
  if (*family != Family::kGaussian && !o.channels.empty())
    throw BadInput("`channels` needs `family gaussian`: outcomes are weighed as numbers");
  if (!o.trials.empty() && *family != Family::kBinomial)
    throw BadInput("`trials` needs `family binomial`");
  return family;
}

bool wants_classes(const FrameOptions& o, std::optional<Family> family, const Tables& tables,
                   Processes& processes) {
  if (!o.channels.empty() || !o.trials.empty()) return false;
  if (family && has_classes(*family)) return true;
  if (family && *family != Family::kGaussian) return false;
  const Column& c = *tables.find(o.target);
  if (o.task == Task::kClassify || (o.task == Task::kAuto && is_text(c))) return true;
  return !family && o.task == Task::kAuto && look_at(c, processes).zero_one;
}

// How many columns of numbers the features become, about: some may still be left out.
std::size_t width_of_features(const Tables& tables, const FrameOptions& o,
                              const Encoding& encoding) {
  std::size_t width = 1;
  for (const Column& c : tables.columns)
    if (!has(outcomes(o), c.name) && c.name != encoding.agent_column)
      width += is_text(c) ? std::max<std::size_t>(c.levels.size(), 1) - 1 : 1;
  return width;
}

// The family of classes, and whether it goes with them.
Family family_of_classes(const FrameOptions& o, std::optional<Family> family, std::size_t classes,
                         std::size_t columns, bool text, std::vector<std::string>& notes) {
  if (family == Family::kBinomial && classes != 2)
    throw BadInput(fmt::format("the target '{}' has {} classes; `family multinomial` takes more "
                               "than two",
                               o.target, classes));
  if (family == Family::kOrdinal && classes < 3)
    throw BadInput(fmt::format("the target '{}' has two classes, which is `family binomial`",
                               o.target));
  if (family) return *family == Family::kMultinomial && classes == 2 ? Family::kBinomial : *family;
  if (classes > 2 && (classes - 1) * columns > kMostOfMultinomial) {
    notes.push_back(fmt::format(
        "'{}' has {} classes, and there are about {} columns: least squares on class indicators, which "
        "is fast; `family multinomial` fits probabilities",
        o.target, classes, columns));
    return Family::kGaussian;
  }
  if (classes > 2) {
    notes.push_back(fmt::format("'{}' has {} classes: a multinomial family (`family gaussian` fits "
                                "least squares on class indicators)",
                                o.target, classes));
    return Family::kMultinomial;
  }
  notes.push_back(fmt::format("'{}' has two values{}: a binomial family (`family gaussian` keeps "
                              "least squares)",
                              o.target, text ? "" : ", 0 and 1"));
  return Family::kBinomial;
}

// The first number of the target that the family cannot have.
void note_number(const Tables& tables, const Column& c, Family family, const FrameOptions& o,
                 Problems& problems) {
  const Column* trials = o.trials.empty() ? nullptr : tables.find(o.trials);
  if (trials != nullptr && is_text(*trials)) trials = nullptr;  // a problem of its own
  for (std::size_t r = 0; r < tables.rows; ++r) {
    const double v = c.numbers[r], n = trials == nullptr ? kNaN : trials->numbers[r];
    if (std::isnan(v)) continue;
    const bool whole = v >= 0 && v == std::floor(v);
    const char* what = nullptr;
    if ((family == Family::kPoisson || family == Family::kNegativeBinomial) && !whole)
      what = "is no count, which has to be a whole number from 0 on";
    if (family == Family::kGamma && !(v > 0)) what = "is not above 0, as `family gamma` needs";
    if (trials != nullptr && (!whole || n < v || n < 1))
      what = "is no number of successes: a whole number from 0 to that of the trials";
    if (what == nullptr) continue;
    problems.add(tables.complaint(r, c.name, fmt::to_string(v), what));
    return;
  }
}

}  // namespace

void Problems::refuse(Processes& processes) const {
  on_all_ranks(processes, [&] {
    if (!sentences_.empty()) throw BadInput(several(sentences_));
  });
}

RowAgents encode_agents(const Tables& tables, const FrameOptions& o, Processes& processes,
                        const Encoding& encoding, Marked marked) {
  if (encoding.agent_column.empty()) {
    if (!o.site.empty())
      return {.names = {o.site}, .of_row = std::vector<std::int32_t>(tables.rows)};
    RowAgents agents;
    on_all_ranks(processes, [&] { agents = row_agents(tables, ""); });
    return agents;
  }
  const Column& c = *tables.find(encoding.agent_column);
  RowAgents agents{.names = c.levels, .of_row = c.codes};
  const bool drop = o.missing.at(c.name) == Missing::kDrop;
  std::size_t without = 0;
  for (std::size_t r = 0; r < tables.rows; ++r) {
    if (agents.of_row[r] >= 0) continue;
    if (!drop && without == 0)
      marked.problems.add(tables.complaint(
          r, c.name, "", "names no agent; `missing drop` leaves such rows out"));
    ++without;
    agents.of_row[r] = 0;
    marked.keep[r] = 0;
  }
  without = sum(processes, without);
  if (without > 0)
    marked.notes.push_back(plural(without, "row names", "rows name") + " no agent and " +
                           (without == 1 ? "was" : "were") + " left out");
  return agents;
}

namespace {

void strike_weightless(const Tables& tables, const Encoding& encoding, Processes& processes,
                       Marked marked) {
  if (encoding.row_weight.empty()) return;
  const Column& c = *tables.find(encoding.row_weight);
  std::size_t struck = 0;
  for (std::size_t r = 0; r < tables.rows && !is_text(c); ++r)
    if (c.numbers[r] == 0) struck += marked.keep[r] != 0, marked.keep[r] = 0;
  struck = sum(processes, struck);
  if (struck > 0)
    marked.notes.push_back(plural(struck, "row has", "rows have") + " weight 0 and " +
                           (struck == 1 ? "was" : "were") + " left out");
}

}  // namespace

void check_row_columns(const Tables& tables, const FrameOptions& o, Processes& processes,
                       const Encoding& encoding, Marked marked) {
  std::size_t without = 0;
  const auto check = [&](const std::string& name, const char* why) {
    if (name.empty()) return;
    const Column& c = *tables.find(name);
    if (note_text(tables, c, why, processes, marked.problems)) return;
    const bool drop = o.missing.at(name) == Missing::kDrop;
    bool told = false;
    for (std::size_t r = 0; r < tables.rows; ++r) {
      if (!is_blank(c, r)) continue;
      if (!drop && !told)
        marked.problems.add(
            tables.complaint(r, name, "", "is missing; `missing drop` leaves such rows out"));
      told = true;
      without += marked.keep[r] != 0;
      marked.keep[r] = 0;
    }
  };
  check(encoding.row_weight, "a row weight has to be");
  check(encoding.trials, "a number of trials has to be");
  for (const std::string& name : encoding.offsets()) check(name, "an offset has to be");
  strike_weightless(tables, encoding, processes, marked);
  without = sum(processes, without);
  if (without > 0)
    marked.notes.push_back(plural(without, "row lacks", "rows lack") +
                           " a weight, trials or offset and " + (without == 1 ? "was" : "were") +
                           " left out");
}

Target encode_target(const Tables& tables, const FrameOptions& o, Processes& processes,
                     Encoding& encoding, Marked marked) {
  Target target{.names = outcomes(o), .numbers = {}, .classes = {}};
  const std::optional<Family> family = wanted_family(o);
  const bool classify = wants_classes(o, family, tables, processes);
  encoding.family = family.value_or(o.trials.empty() ? Family::kGaussian : Family::kBinomial);
  std::size_t without = 0;
  for (const std::string& name : target.names) {
    const Column& c = *tables.find(name);
    const bool slip = o.task != Task::kClassify && o.task != Task::kRegress &&
                      note_slip(tables, c, o.levels, processes, marked.problems);
    const std::string why = !o.channels.empty()        ? "a channel has to be"
                            : o.task == Task::kRegress ? "`task regress` needs"
                                                       : fmt::format("`family {}` needs",
                                                                     to_text(encoding.family));
    if (!classify && !slip && !note_text(tables, c, why, processes, marked.problems))
      note_number(tables, c, encoding.family, o, marked.problems);
    for (std::size_t r = 0; r < tables.rows; ++r) {
      if (!is_blank(c, r)) continue;
      without += marked.keep[r] != 0;
      marked.keep[r] = 0;
    }
    if (!classify) target.numbers.push_back(&c.numbers);
  }
  without = sum(processes, without);
  if (without > 0)
    marked.notes.push_back(plural(without, "row has", "rows have") + " no target and " +
                           (without == 1 ? "was" : "were") + " left out");
  return target;
}

void encode_classes(const Tables& tables, const FrameOptions& o, Processes& processes,
                    Encoding& encoding, Target& target, Marked marked) {
  if (o.known) {
    if (target.numbers.empty())
      on_all_ranks(processes, [&] { target.classes = known_classes(tables, o, encoding, marked); });
    return;
  }
  const std::optional<Family> family = wanted_family(o);
  if (target.numbers.empty()) {
    const Column& c = *tables.find(o.target);
    target.classes = classes_of(tables, c, processes, marked.keep, encoding);
    encoding.family =
        family_of_classes(o, family, encoding.classes.size(),
                          width_of_features(tables, o, encoding), is_text(c), marked.notes);
    if (encoding.family == Family::kGaussian && (encoding.generalised() || !o.offset.empty()))
      throw BadInput(
          "classes by least squares have no `offset` or `common`; `family binomial` or `family "
          "multinomial` has");
  } else if (!family && o.channels.empty() && o.trials.empty() &&
             look_at(*tables.find(o.target), processes).counts) {
    marked.notes.push_back(fmt::format("'{}' holds whole numbers from 0 on; if they are counts, "
                                       "`family poisson` fits them",
                                       o.target));
  }
}

std::vector<Column*> feature_columns(Tables& tables, const FrameOptions& o, Processes& processes,
                                     const Encoding& encoding, Marked marked) {
  if (o.known) return known_features(tables, o, processes, encoding, marked);
  std::vector<Column*> features;
  std::vector<std::string> left_out, few;
  const std::size_t rows = sum(processes, tables.rows);
  const std::string& path = tables.parts[0].path;
  for (Column& c : tables.columns) {
    if (!is_feature(o, encoding, c.name)) continue;
    const bool category = has(o.categorical, c.name), number = has(o.numeric, c.name);
    const std::string as_option = joined_names(std::span(&c.name, 1));
    if (category) make_text(c);
    if (number) note_text(tables, c, "`numeric` needs", processes, marked.problems);
    if (number || (category && c.levels.size() <= o.levels)) {
      features.push_back(&c);
      continue;
    }
    const DatesFound dates = is_text(c) && !category ? find_dates(c.levels) : DatesFound{};
    if (dates.ambiguous) {
      marked.problems.add(fmt::format(
          "{}: column '{}' holds dates such as '{}' that may begin with the day or the month; write "
          "them as 2026-11-30, or leave it out with `exclude {}`",
          path, c.name, shown(c.levels[0]), as_option));
      continue;
    }
    if (dates.order != DateOrder::kNone) {
      to_days(c, dates.order);
      features.push_back(&c);
      continue;
    }
    if (!category && note_slip(tables, c, o.levels, processes, marked.problems)) continue;
    if (is_text(c) && other_decimal(c)) {
      marked.problems.add(fmt::format(
          "{}: column '{}' holds '{}', a number with another decimal mark than '{}'; `decimal {}` "
          "reads it, `categorical {}` takes it as a text",
          path, c.name, shown(c.levels[0]), c.decimal, c.decimal == '.' ? ',' : '.', as_option));
      continue;
    }
    const std::string why = has(o.features, c.name) || has(o.common, c.name) || category
                                ? ""
                                : no_feature(c, rows, o.levels, processes);
    if (!why.empty()) {
      left_out.push_back(fmt::format("{} ({})", c.name, why));
      continue;
    }
    if (is_text(c) && c.levels.size() > o.levels) {
      marked.problems.add(fmt::format(
          "{}: column '{}' holds {} different texts, more than {}; leave it out with `exclude {}`, "
          "or take them all with `levels {}`",
          path, c.name, c.levels.size(), o.levels, as_option, c.levels.size()));
      continue;
    }
    features.push_back(&c);
  }
  if (!left_out.empty()) marked.notes.push_back("left out: " + listed(left_out));
  return features;
}

void strike_blanks(const Tables& tables, const std::vector<Column*>& features,
                   const MissingRule& missing, Processes& processes, Marked marked) {
  std::size_t struck = 0;
  const std::size_t rows = sum(processes, tables.rows);
  std::vector<std::string> filled, shown_missing;
  for (const Column* c : features) {
    // A column of blanks only is constant, and left out as such.
    if (c->missing == 0 || static_cast<std::size_t>(c->missing) == rows) continue;
    const Missing rule = missing.at(c->name);
    if (rule == Missing::kMean) filled.push_back(c->name);
    if (rule == Missing::kIndicator) shown_missing.push_back(c->name);
    if (rule != Missing::kError && rule != Missing::kDrop) continue;
    bool told = false;
    for (std::size_t r = 0; r < tables.rows; ++r) {
      if (!is_blank(*c, r)) continue;
      if (rule == Missing::kError && !told)
        marked.problems.add(tables.complaint(
            r, c->name, "",
            fmt::format("is missing{}; `missing mean` fills blanks with the column's mean, "
                        "indicator also adds a column that says so, drop leaves such rows out",
                        c->missing > 1 ? fmt::format(", with {} more", c->missing - 1) : "")));
      told = true;
      if (rule == Missing::kDrop) struck += marked.keep[r] != 0, marked.keep[r] = 0;
    }
  }
  struck = sum(processes, struck);
  if (!filled.empty())
    marked.notes.push_back(
        fmt::format("blanks filled with the column's mean in {}", listed(filled)));
  if (!shown_missing.empty())
    marked.notes.push_back(fmt::format("blanks filled with the mean and marked by a column of their "
                                       "own in {}",
                                       listed(shown_missing)));
  if (struck > 0) marked.notes.push_back(plural(struck, "row", "rows") + " with blanks left out");
}

std::string columns_note(const Encoding& encoding) {
  std::vector<std::string> numbers, categories, dates;
  for (const Source& s : encoding.sources) {
    if (s.dates != DateOrder::kNone) {
      dates.push_back(s.name);
    } else if (s.levels.empty()) {
      numbers.push_back(s.name);
    } else {
      categories.push_back(fmt::format("{} ({})", s.name, s.levels.size()));
    }
  }
  if (encoding.sources.empty()) return "no column to predict from: each model is an intercept";
  std::string text = "read";
  const char* comma = " ";
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += fmt::format("{}{} {}", comma, what, listed(names));
    comma = "; ";
  };
  add("as numbers:", numbers);
  add("as categories (levels):", categories);
  add("as dates, in days:", dates);
  return text;
}

MissingRule MissingRule::parse(std::string_view text) {
  MissingRule rule;
  for (const std::string& part : names_in(text, "missing")) {
    const std::size_t equals = part.rfind('=');
    const auto value = value_of<Missing>(
        equals == std::string::npos ? std::string_view(part) : std::string_view(part).substr(equals + 1),
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
           "missing values: error, mean (filled with the column's mean), drop (the row is left out) "
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
    sources.push_back({.name = c->name,
                       .levels = {},
                       .mean = {},
                       .sd = {},
                       .missing = missing.at(c->name)});
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
