// Agents and targets of rows: numbers or classes, their family, and what belongs to a row beside them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/columns-inl.h"
#include "affpcl/table/known.h"

namespace affpcl {

using namespace columns;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostOfMultinomial = 300;  // coefficients, where the family is not stated

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
  return {found[0] > 0 && found[1] > 0 && found[2] + found[3] == 0, found[3] == 0 && found[2] > 0};
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
    throw BadInput(
        fmt::format("the target '{}' has {} classes; `family multinomial` takes more "
                    "than two",
                    o.target, classes));
  if (family == Family::kOrdinal && classes < 3)
    throw BadInput(
        fmt::format("the target '{}' has two classes, which is `family binomial`", o.target));
  if (family) return *family == Family::kMultinomial && classes == 2 ? Family::kBinomial : *family;
  if (classes > 2 && (classes - 1) * columns > kMostOfMultinomial) {
    notes.push_back(
        fmt::format("'{}' has {} classes, and there are about {} columns: least squares on class "
                    "indicators, which "
                    "is fast; `family multinomial` fits probabilities",
                    o.target, classes, columns));
    return Family::kGaussian;
  }
  if (classes > 2) {
    notes.push_back(
        fmt::format("'{}' has {} classes: a multinomial family (`family gaussian` fits "
                    "least squares on class indicators)",
                    o.target, classes));
    return Family::kMultinomial;
  }
  notes.push_back(
      fmt::format("'{}' has two values{}: a binomial family (`family gaussian` keeps "
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
      marked.problems.add(
          tables.complaint(r, c.name, "", "names no agent; `missing drop` leaves such rows out"));
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
    const std::string why = !o.channels.empty() ? "a channel has to be"
                            : o.task == Task::kRegress
                                ? "`task regress` needs"
                                : fmt::format("`family {}` needs", to_text(encoding.family));
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
    marked.notes.push_back(
        fmt::format("'{}' holds whole numbers from 0 on; if they are counts, "
                    "`family poisson` fits them",
                    o.target));
  }
}

}  // namespace affpcl
