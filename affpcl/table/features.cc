// Which columns are features, and as what: numbers, categories, dates; what is wrong with the others.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "affpcl/data/field.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/columns-inl.h"
#include "affpcl/table/known.h"

namespace affpcl {

using namespace columns;

namespace columns {

std::vector<std::string> sorted_levels(const std::set<std::string>& found) {
  std::vector<std::string> levels(found.begin(), found.end());
  std::sort(levels.begin(), levels.end(), by_number);
  return levels;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i)
    all += (i > 0 ? ", " : "") + names[i];
  if (names.size() > 5) all += fmt::format(" and {} more", names.size() - 5);
  return all;
}

bool note_text(const Tables& tables, const Column& c, std::string_view why, Processes& processes,
               Problems& problems) {
  if (!is_text(c)) return false;
  std::size_t found = 0;
  for (std::size_t r = 0; r < tables.rows && found == 0; ++r)
    if (c.codes[r] >= 0 && !parse_number(text(c, r), c.decimal)) {
      problems.add(
          tables.complaint(r, c.name, text(c, r),
                           fmt::format("{}, which {}", no_number(text(c, r), c.decimal), why)));
      ++found;
    }
  if (sum(processes, found) == 0)
    problems.add(fmt::format("{}: column '{}' holds texts and no numbers, which {}",
                             tables.parts[0].path, c.name, why));
  return true;
}

}  // namespace columns

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A code such as 3+, <1 or 5-9: no number, but made of numbers.
bool is_code(const std::string& level) {
  return level.find_first_of("0123456789") != std::string::npos &&
         level.find_first_not_of("0123456789+-<>= .%") == std::string::npos;
}

}  // namespace

bool note_slip(const Tables& tables, const Column& c, std::size_t most_levels, Processes& processes,
               Problems& problems) {
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
  const std::size_t all_numbers = sum(processes, numbers), all_texts = sum(processes, texts);
  if (all_numbers <= all_texts || codes) return false;
  if (texts > 0)
    problems.add(tables.complaint(
        first, c.name, text(c, first),
        fmt::format(
            "{}{}, and the column has {} numbers; correct it, blank it, name it in `na`, or "
            "leave it out with `exclude {}`",
            no_number(text(c, first), c.decimal),
            texts > 1 ? fmt::format(" (with {} more such texts)", texts - 1) : "", all_numbers,
            joined_names(std::span(&c.name, 1)))));
  return true;
}

namespace {

// Numbers all of them, if the other mark were the decimal one.
bool other_decimal(const Column& c) {
  const char other = c.decimal == '.' ? ',' : '.';
  return !c.levels.empty() &&
         std::all_of(c.levels.begin(), c.levels.end(), [&](const std::string& level) {
           return !beyond_double(level) && (parse_number(level, other).has_value() ||
                                            parse_number(level, c.decimal).has_value());
         });
}

constexpr std::string_view kCurrencies[] = {"$",   "\u20ac", "\u00a3", "\u00a5",
                                            "EUR", "USD",    "GBP",    "CHF"};

bool is_sign(std::string_view mark) {
  return mark == "%" || mark == "\u2030" ||
         std::find(std::begin(kCurrencies), std::end(kCurrencies), mark) != std::end(kCurrencies);
}

// What stands beside every one of the numbers, such as $ or %; of many levels also another unit, such
// as kg. Empty: nothing, or the levels are no such numbers. 3+ and 5-9 are codes.
std::string_view mark_of_numbers(const Column& c, std::size_t most_levels) {
  std::string_view before, behind;
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    std::string_view level = trimmed(c.levels[l]);
    const std::size_t first = level.find_first_of("0123456789");
    if (first == std::string_view::npos) return "";
    const std::size_t last = level.find_last_of("0123456789");
    std::size_t from = level.substr(0, first).find_first_of("+-.,");  // of the number
    if (from == std::string_view::npos) from = first;
    const std::string_view left = trimmed(level.substr(0, from)),
                           right = trimmed(level.substr(last + 1));
    if (l == 0) before = left, behind = right;
    if (left != before || right != behind) return "";
    if (!parse_number(level.substr(from, last + 1 - from), c.decimal)) return "";
  }
  if (before.empty() == behind.empty()) return "";
  if (!before.empty()) return is_sign(before) ? before : "";
  const bool unit =
      c.levels.size() > most_levels && behind.find_first_of("+-<>=./:()") == std::string_view::npos;
  return is_sign(behind) || unit ? behind : "";
}

// What writes an index of rows calls it nothing, or one of these.
bool is_index_name(const std::string& name) {
  return name.starts_with("column ") || name.starts_with("Unnamed: ") || name == "...1" ||
         name == "__index_level_0__";
}

bool is_id_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
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

// Whole numbers on a line over the rows of a process: value `at` in row `place`.
struct RowLine {
  double rows = 0, place = 0, at = 0, step = 0;  // step 0: fewer than two values
  double straight = 1;
};
RowLine line_of(const Column& c, std::size_t rows) {
  RowLine line{static_cast<double>(rows)};
  bool any = false;
  for (std::size_t r = 0; r < rows && line.straight > 0; ++r) {
    const double v = c.numbers[r], place = static_cast<double>(r);
    if (std::isnan(v)) continue;
    if (!any) {
      line.place = place, line.at = v, any = true;
    } else if (line.step == 0) {
      line.step = (v - line.at) / (place - line.place);
    }
    const bool on = v == line.at + line.step * (place - line.place) && v == std::floor(v);
    line.straight = on && (line.step != 0 || place == line.place);
  }
  if (!any) line.place = -1;
  return line;
}

// Whether a column counts the rows, in steps of any size: nothing else that an agent has rises evenly
// from its rows to the next agent's.
bool counts_rows(const Column& c, std::size_t rows_here, Processes& processes) {
  const RowLine mine = line_of(c, rows_here);
  if (processes.apart()) return sum(processes, mine.straight > 0 && mine.step != 0 ? 0 : 1) == 0;
  const std::vector<double> all =
      all_gather(processes, std::vector{mine.rows, mine.place, mine.at, mine.step, mine.straight});
  double first = 0, at = 0, place = -1, step = 0;
  for (std::size_t k = 0; k < all.size(); k += 5) {
    const RowLine line{all[k], all[k + 1], all[k + 2], all[k + 3], all[k + 4]};
    if (line.straight == 0) return false;
    if (line.place >= 0) {
      if (place >= 0 && step == 0) step = (line.at - at) / (first + line.place - place);
      if (place >= 0 && line.at != at + step * (first + line.place - place)) return false;
      if (line.step != 0 && step != 0 && line.step != step) return false;
      if (place < 0) place = first + line.place, at = line.at;
      if (step == 0) step = line.step;
    }
    first += line.rows;
  }
  return step != 0;
}

// Why a column says nothing about new rows; empty: it may.
std::string no_feature(const Column& c, std::size_t rows_here, std::size_t rows, bool many_agents,
                       std::size_t most_levels, Processes& processes) {
  const std::size_t known = rows - static_cast<std::size_t>(c.missing);
  if (is_text(c)) {
    if (is_index_name(c.name) && c.levels.size() == known) return "names of rows";
    if (c.levels.size() <= std::max(most_levels, std::size_t{1})) return "";
    if (std::any_of(c.levels.begin(), c.levels.end(), beyond_double))
      return "integers beyond 2^53, which are ids and not quantities";
    return c.levels.size() == known ? "every text is different, as of an id" : "";
  }
  if (!is_index_name(c.name) && rows <= kFewRows) return "";
  if (!is_index_name(c.name) && !is_id_name(c.name))
    return many_agents && counts_rows(c, rows_here, processes)
               ? "rises evenly from row to row, as an id does; `numeric` keeps it"
               : "";
  if (sum(processes, all_different(c) ? 0 : 1) > 0) return "";
  return is_index_name(c.name) ? "an index of the rows" : "every value is different, as of an id";
}

constexpr std::size_t kFewestCodes = 3,
                      kMostCodes = 12;  // different values of a column that may be codes
constexpr std::size_t kRowsPerCode = 4;

// Columns that count from 0 or 1 to a few, each many times, may be codes: a word about them, no more.
void note_codes(const std::vector<Column*>& features, const FrameOptions& o, std::size_t rows,
                Processes& processes, std::vector<std::string>& notes) {
  if (processes.apart() || rows < kFewestCodes * kRowsPerCode) return;
  std::vector<std::string> mine;  // "3 7": the third column has a 7; "3 *": too many, or fractions
  for (std::size_t k = 0; k < features.size(); ++k) {
    const Column& c = *features[k];
    if (is_text(c) || c.dates != DateOrder::kNone || has(o.numeric, c.name)) continue;
    std::set<double> values;
    for (const double v : c.numbers) {
      if (std::isnan(v)) continue;
      if (values.size() <= kMostCodes) values.insert(v);
      if (values.size() > kMostCodes || v != std::floor(v)) {
        values.clear();
        mine.push_back(fmt::format("{} *", k));
        break;
      }
    }
    for (const double v : values) mine.push_back(fmt::format("{} {}", k, v));
  }
  std::vector<std::set<std::string>> found(features.size());
  processes.set_purpose("columns of few values");
  for (const std::vector<std::string>& theirs : all_gather(processes, mine))
    for (const std::string& one : theirs)
      found[std::stoul(one)].insert(one.substr(one.find(' ') + 1));
  std::vector<std::string> few, names;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const std::size_t count = found[k].size();
    if (count < kFewestCodes || count > kMostCodes || count * kRowsPerCode > rows) continue;
    const std::size_t first = found[k].contains("0") ? 0 : 1;
    bool run = true;
    for (std::size_t v = first; v < first + count; ++v)
      run = run && found[k].contains(std::to_string(v));
    if (!run) continue;
    few.push_back(fmt::format("{} ({})", features[k]->name, count));
    names.push_back(features[k]->name);
  }
  if (!few.empty())
    notes.push_back(
        fmt::format("numbers of few values: {}; if they are codes, `categorical {}` takes "
                    "them as categories",
                    listed(few), joined_names(names)));
}

// The first blank of a column whose rows need a value.
void note_blank(const Tables& tables, const Column& c, Problems& problems) {
  for (std::size_t r = 0; r < tables.rows; ++r) {
    if (!is_blank(c, r)) continue;
    problems.add(tables.complaint(
        r, c.name, "",
        fmt::format("is missing (blank, or a word for it such as NA, none or -: `na`){}; `missing "
                    "mean` fills blanks with the column's mean, indicator also adds a column that "
                    "says so, drop leaves such rows out",
                    c.missing > 1 ? fmt::format(", with {} more", c.missing - 1) : "")));
    return;
  }
}

constexpr double kMostDates = 0.9;  // of the levels, where the others are slips

// A column of dates but for a few texts.
bool note_date_slip(const Tables& tables, const Column& c, Processes& processes,
                    Problems& problems) {
  DateOrder order = DateOrder::kNone;
  std::vector<char> date;
  for (const DateOrder tried :
       {DateOrder::kYearFirst, DateOrder::kDayFirst, DateOrder::kMonthFirst}) {
    std::vector<char> fits;
    for (const std::string& level : c.levels) fits.push_back(parse_date(level, tried).has_value());
    const auto count = std::count(fits.begin(), fits.end(), 1);
    if (static_cast<double>(count) < kMostDates * static_cast<double>(fits.size())) continue;
    if (order == DateOrder::kNone || count > std::count(date.begin(), date.end(), 1))
      order = tried, date = fits;
  }
  if (order == DateOrder::kNone) return false;
  std::size_t dates = 0, texts = 0, first = 0;
  for (std::size_t r = 0; r < c.codes.size(); ++r) {
    if (c.codes[r] < 0) continue;
    if (date[static_cast<std::size_t>(c.codes[r])] != 0) {
      ++dates;
    } else if (texts++ == 0) {
      first = r;
    }
  }
  dates = sum(processes, dates);
  if (texts > 0)
    problems.add(tables.complaint(
        first, c.name, text(c, first),
        fmt::format(
            "is no date{}, and the column has {} dates ({}); correct it, blank it, name it in "
            "`na`, or leave it out with `exclude {}`",
            texts > 1 ? fmt::format(" (with {} more such texts)", texts - 1) : "", dates,
            name_of(order), joined_names(std::span(&c.name, 1)))));
  return true;
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

}  // namespace

std::vector<Column*> feature_columns(Tables& tables, const FrameOptions& o, Processes& processes,
                                     const Encoding& encoding, Marked marked) {
  if (o.known) return known_features(tables, o, processes, encoding, marked);
  std::vector<Column*> features;
  std::vector<std::string> left_out;
  const std::size_t rows = sum(processes, tables.rows);
  const std::string& path = tables.parts[0].path;
  const Column* const agent = tables.find(encoding.agent_column);
  const bool many_agents = processes.apart() || tables.parts.size() > 1 ||
                           (agent != nullptr && agent->levels.size() > 1);
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
      marked.problems.add(
          fmt::format("{}: column '{}' holds dates such as '{}' that may begin with the day or the "
                      "month; write "
                      "them as 2026-11-30, or leave it out with `exclude {}`",
                      path, c.name, shown(c.levels[0]), as_option));
      continue;
    }
    if (dates.order != DateOrder::kNone) {
      to_days(c, dates.order);
      features.push_back(&c);
      continue;
    }
    if (!category && note_slip(tables, c, o.levels, processes, marked.problems)) {
      if (o.missing.at(c.name) == Missing::kError) note_blank(tables, c, marked.problems);
      continue;
    }
    if (is_text(c) && other_decimal(c)) {
      marked.problems.add(fmt::format(
          "{}: column '{}' holds '{}', a number with another decimal mark than '{}'; `decimal {}` "
          "reads it, `categorical {}` takes it as a text",
          path, c.name, shown(c.levels[0]), c.decimal, c.decimal == '.' ? ',' : '.', as_option));
      continue;
    }
    if (is_text(c) && !category && note_date_slip(tables, c, processes, marked.problems)) continue;
    const std::string_view mark =
        is_text(c) && !category ? mark_of_numbers(c, o.levels) : std::string_view();
    if (!mark.empty()) {
      marked.problems.add(
          fmt::format("{}: column '{}' holds numbers with '{}' beside them, such as '{}'; write "
                      "the numbers alone, "
                      "leave it out with `exclude {}`, or take it as texts with `categorical {}`",
                      path, c.name, mark, shown(c.levels[0]), as_option, as_option));
      continue;
    }
    const std::string why =
        has(o.features, c.name) || has(o.common, c.name) || category
            ? ""
            : no_feature(c, tables.rows, rows, many_agents, o.levels, processes);
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
  note_codes(features, o, rows, processes, marked.notes);
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
    if (rule == Missing::kError) note_blank(tables, *c, marked.problems);
    for (std::size_t r = 0; r < tables.rows && rule == Missing::kDrop; ++r)
      if (is_blank(*c, r)) struck += marked.keep[r] != 0, marked.keep[r] = 0;
  }
  struck = sum(processes, struck);
  if (!filled.empty())
    marked.notes.push_back(
        fmt::format("blanks filled with the column's mean in {}", listed(filled)));
  if (!shown_missing.empty())
    marked.notes.push_back(
        fmt::format("blanks filled with the mean and marked by a column of their "
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

}  // namespace affpcl
