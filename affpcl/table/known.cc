#include "affpcl/table/known.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/field.h"
#include "affpcl/data/tables.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

constexpr std::size_t kFewAgents = 6;  // of a centre (studies/join-later)
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_source(const Encoding& e, std::string_view name) {
  return std::any_of(e.sources.begin(), e.sources.end(),
                     [&](const Source& s) { return s.name == name; });
}

bool is_number(const Source& s) { return s.levels.empty() && s.dates == DateOrder::kNone; }

std::vector<std::string> targets_of(const Encoding& e) {
  return e.outcomes.empty() ? std::vector{e.target} : e.outcomes;
}

// Columns that belong to rows and are no features.
std::vector<std::string> beside_features(const FrameOptions& o, const Encoding& e) {
  std::vector<std::string> names = e.offsets();
  for (const std::string* name : {&e.row_weight, &e.trials, &o.time, &o.folds})
    if (!name->empty()) names.push_back(*name);
  return names;
}

// The column of agents: the one that is named, that of the centre, agent or site.
std::string agents_in(const std::vector<std::string>& header, const FrameOptions& o,
                      const Encoding& known) {
  if (!o.agent.empty()) return o.agent;
  for (const std::string& name : {known.agent_column, std::string("agent"), std::string("site")})
    if (!name.empty() && has(header, name) && !is_source(known, name)) return name;
  return "";
}

// A column of dates becomes one of days.
void to_days(Column& c, const Source& source, const Tables& tables, Problems& problems) {
  std::vector<double> day;
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    const std::optional<double> found = parse_date(c.levels[l], source.dates);
    day.push_back(found.value_or(kNaN));
    if (found) continue;
    problems.add(
        fmt::format("{}: column '{}' holds '{}', which is no date such as the centre has ({})",
                    tables.parts[0].path, c.name, shown(c.levels[l]), name_of(source.dates)));
    break;
  }
  day.resize(c.levels.size(), kNaN);
  for (const std::int32_t code : c.codes)
    c.numbers.push_back(code < 0 ? kNaN : day[static_cast<std::size_t>(code)]);
  c.type = Column::Type::kNumber;
  c.dates = source.dates;
  std::vector<std::int32_t>().swap(c.codes);
  c.levels.clear();
}

// For each level of a column its place among the centre's, -1 for a text that it does not have.
std::vector<std::ptrdiff_t> places_of(const Column& c, const Source& source) {
  std::vector<std::ptrdiff_t> places;
  for (const std::string& level : c.levels) {
    const auto at = std::find(source.levels.begin(), source.levels.end(), level);
    places.push_back(at == source.levels.end() ? -1 : at - source.levels.begin());
  }
  return places;
}

// Centres without what an agent that joins needs.
void refuse_centre(const Model& centre) {
  const Encoding& e = centre.encoding;
  const bool lacks = e.generalised() ? centre.forms.empty()
                                     : std::any_of(centre.channels.begin(), centre.channels.end(),
                                                   [](const auto& c) { return c.forms.empty(); });
  const std::string why =
      centre.solver == SolverKind::kStream ? "it is of a stream, which learns no law of the agents"
      : e.leveled()                        ? "it has a second factor, whose levels agents share"
      : centre.centre_agents < 2
          ? "it was learnt from one agent, which does not show how agents differ"
      : lacks ? fmt::format("affpcl {} wrote it without the uncertainty of D; fit it again",
                            centre.version)
              : std::string();
  if (!why.empty()) throw BadInput(fmt::format("no agent can join this `centre`: {}", why));
}

}  // namespace

KnownColumns known_columns(const Model& centre) {
  const Encoding& e = centre.encoding;
  if (e.generalised() && !e.numeric()) return {e, {0}, {1}, centre.within, centre.centre_agents};
  KnownColumns known{.encoding = e,
                     .y_mean = {},
                     .y_sd = {},
                     .within = centre.within,
                     .agents = centre.centre_agents};
  for (const ChannelModel& c : centre.channels) {
    const double sd = std::sqrt(c.centre.s2);
    known.y_mean.push_back(c.centre.x[0]);
    known.y_sd.push_back(sd > 0 && std::isfinite(sd) ? sd : 1);
  }
  return known;
}

std::string known_note(const KnownColumns& known) {
  if (known.agents >= kFewAgents) return "";
  return fmt::format(
      "the centre was learnt from {} agents, which hardly shows how agents differ: intervals "
      "are too short",
      known.agents);
}

FrameOptions join_options(const FrameOptions& given, const Model& centre) {
  FrameOptions o = given;
  const Encoding& e = centre.encoding;
  const std::pair<const char*, bool> columns[] = {
      {"features", !o.features.empty()},       {"exclude", !o.exclude.empty()},
      {"categorical", !o.categorical.empty()}, {"numeric", !o.numeric.empty()},
      {"channels", !o.channels.empty()},       {"common", !o.common.empty()},
      {"task", o.task != Task::kAuto}};
  for (const auto& [name, settled] : columns)
    if (settled)
      throw BadInput(fmt::format("`{}` does not go with `centre`, whose columns are used", name));
  refuse_centre(centre);
  if (o.target.empty()) o.target = e.target;
  o.channels = e.outcomes;
  o.task = e.classes.empty() ? Task::kRegress : Task::kClassify;
  if (has_classes(e.family) || e.family != Family::kGaussian) o.task = Task::kAuto;
  o.family = to_text(e.family);
  o.row_weight = e.row_weight, o.trials = e.trials, o.offset = e.offset;
  o.offset_scale = e.offset_scale, o.common = e.common;
  if (given.missing.rest == Missing::kIndicator)
    throw BadInput("`missing indicator` does not go with `centre`, whose columns are settled");
  for (const Source& s : e.sources)
    if (s.missing != Missing::kError) o.missing.of[s.name] = s.missing;
  o.known = std::make_shared<const KnownColumns>(known_columns(centre));
  return o;
}

Encoding begin_known(const std::vector<std::string>& files, const std::vector<std::string>& header,
                     const FrameOptions& o) {
  Encoding e = o.known->encoding;
  e.reading = o.reading;
  e.agent_column = agents_in(header, o, e);
  if (e.outcomes.empty()) e.target = o.target;
  std::vector<std::string> needed = targets_of(e), lacking;
  for (const std::string& name : beside_features(o, e)) needed.push_back(name);
  for (const Source& s : e.sources) needed.push_back(s.name);
  if (!e.agent_column.empty()) needed.push_back(e.agent_column);
  for (const std::string& name : needed)
    if (!has(header, name)) lacking.push_back(name);
  if (lacking.size() == 1) throw BadInput(lacks_column(files[0], lacking[0], header));
  if (!lacking.empty())
    throw BadInput(fmt::format("{} lacks {} columns that {} has: '{}'", files[0], lacking.size(),
                               o.known->by, join(lacking, "', '")));
  for (const std::string& name : targets_of(e))
    if (name == e.agent_column || is_source(e, name))
      throw BadInput(fmt::format("column '{}' cannot be the target and {} too", name,
                                 name == e.agent_column ? "the agent" : "one to predict from"));
  if (is_source(e, e.agent_column))
    throw BadInput(fmt::format("`agent` names '{}', which {} has as one to predict from",
                               e.agent_column, o.known->by));
  return e;
}

TableOptions known_needed(const FrameOptions& o, const Encoding& e) {
  TableOptions needed{.reading = o.reading};
  const auto need = [&](const std::string& name, std::vector<std::string>* as) {
    if (name.empty() || has(needed.columns, name)) return;
    needed.columns.push_back(name);
    if (as != nullptr) as->push_back(name);
  };
  for (const std::string& name : targets_of(e))
    need(name, e.classes.empty() ? &needed.number : &needed.text);
  need(e.agent_column, &needed.text);
  need(o.folds, &needed.text);
  need(o.time, nullptr);
  for (const std::string& name : beside_features(o, e)) need(name, &needed.number);
  for (const Source& s : e.sources) need(s.name, is_number(s) ? &needed.number : &needed.text);
  return needed;
}

std::string unused_note(const std::vector<std::string>& header, const FrameOptions& o,
                        const Encoding& e) {
  const std::vector<std::string> used = known_needed(o, e).columns;
  std::vector<std::string> others;
  for (const std::string& name : header)
    if (!has(used, name)) others.push_back(name);
  if (others.empty()) return "";
  const std::size_t shown = std::min<std::size_t>(others.size(), 5);
  return fmt::format(
      "left out, since the centre does not have {}: {}{}", others.size() == 1 ? "it" : "them",
      join(std::vector(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(shown)), ", "),
      others.size() > shown ? fmt::format(" and {} more", others.size() - shown) : "");
}

std::vector<std::int32_t> known_classes(const Tables& tables, const FrameOptions& o,
                                        const Encoding& e, Marked marked) {
  const Column& c = *tables.find(o.target);
  std::vector<std::int32_t> of_level, classes(tables.rows, -1);
  for (const std::string& level : c.levels) {
    const auto found = class_named(e, level, c.decimal);
    of_level.push_back(found ? static_cast<std::int32_t>(*found) : -1);
  }
  for (std::size_t r = 0; r < tables.rows; ++r) {
    if (marked.keep[r] == 0) continue;
    const auto code = static_cast<std::size_t>(c.codes[r]);
    classes[r] = of_level[code];
    if (classes[r] < 0)
      tables.refuse(
          r, c.name, c.levels[code],
          fmt::format("is a class that the centre lacks; it has {}", join(e.classes, ", ")));
  }
  return classes;
}

std::vector<Column*> known_features(Tables& tables, const FrameOptions& o, Processes& processes,
                                    const Encoding& e, Marked marked) {
  std::vector<Column*> features;
  const std::size_t rows = sum(processes, tables.rows);
  const std::string& path = tables.parts[0].path;
  for (const Source& s : e.sources) {
    Column& c = *tables.find(s.name);
    features.push_back(&c);
    if (!is_number(s)) {
      make_text(c);
      if (s.dates != DateOrder::kNone) to_days(c, s, tables, marked.problems);
    } else if (c.type == Column::Type::kText) {
      marked.problems.add(
          fmt::format("{}: column '{}' holds texts such as '{}', and {} has numbers there", path,
                      c.name, c.levels.empty() ? "" : shown(c.levels[0]), o.known->by));
    }
    if (static_cast<std::size_t>(c.missing) == rows && o.missing.at(s.name) == Missing::kError)
      marked.problems.add(
          fmt::format("{}: column '{}' is blank in every row; `missing mean` takes the "
                      "mean that {} has",
                      path, c.name, o.known->by));
  }
  return features;
}

std::vector<double> encode_known(const std::vector<Column*>& features,
                                 const std::vector<std::size_t>& order, Processes& processes,
                                 const Encoding& e, std::vector<std::string>& notes) {
  std::vector<double> X(order.size(), 1.0);
  X.reserve(e.dim() * order.size());
  for (std::size_t s = 0; s < e.sources.size(); ++s) {
    const Source& source = e.sources[s];
    Column& c = *features[s];
    const bool text = c.type == Column::Type::kText;
    const std::vector<std::ptrdiff_t> places = places_of(c, source);
    const auto blank = [&](std::size_t r) {
      return text ? c.codes[r] < 0 : std::isnan(c.numbers[r]);
    };
    for (std::size_t w = 0; w < source.own_width(); ++w)
      for (const std::size_t r : order) {
        double value = text || blank(r) ? kNaN : c.numbers[r];
        if (text && !blank(r))
          if (const auto place = places[static_cast<std::size_t>(c.codes[r])]; place >= 0)
            value = place == static_cast<std::ptrdiff_t>(w + 1) ? 1 : 0;
        X.push_back(std::isnan(value) ? 0 : (value - source.mean[w]) / source.sd[w]);
      }
    for (std::size_t k = 0; k < order.size() && source.indicator; ++k)
      X.push_back(((blank(order[k]) ? 1 : 0) - source.mean.back()) / source.sd.back());
    std::size_t strange = 0;
    std::string first;
    for (const std::size_t r : order)
      if (text && !blank(r) && places[static_cast<std::size_t>(c.codes[r])] < 0)
        if (strange++ == 0) first = c.levels[static_cast<std::size_t>(c.codes[r])];
    if (const std::size_t all = sum(processes, strange); all > 0)
      notes.push_back(
          fmt::format("column '{}' holds texts that the centre does not know in {} row{}{}: as "
                      "the mean of its columns",
                      c.name, all, all == 1 ? "" : "s",
                      strange > 0 ? fmt::format(", such as '{}'", shown(first)) : ""));
    std::vector<double>().swap(c.numbers);
    std::vector<std::int32_t>().swap(c.codes);
  }
  return X;
}

}  // namespace affpcl
