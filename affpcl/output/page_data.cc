#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/base/params.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"
#include "affpcl/output/result_folder-inl.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/spec.h"
#include "affpcl/table/coefficients.h"

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLeast = 10;  // points and agents that are kept however little room there is

using Numbers = std::vector<double>;

// Six digits are enough to look at.
void round_numbers(Json& j) {
  if (j.is_number() && !j.is_integer() && std::isfinite(j.get<double>()))
    j = std::strtod(fmt::format("{:.6g}", j.get<double>()).c_str(), nullptr);
  if (j.is_array())
    for (Json& one : j.elements()) round_numbers(one);
  if (j.is_object())
    for (JsonMember& m : j.members()) round_numbers(m.value);
}

// `most` places among `count`, evenly spread, with both ends; all of them where they are fewer.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places(std::min(count, most));
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = count <= most ? i : i * (count - 1) / (most - 1);
  return places;
}

Numbers pick(const Numbers& values, const std::vector<std::size_t>& places) {
  Numbers out;
  for (std::size_t p : places) out.push_back(values[p]);
  return out;
}

// A value of a sweep as the CSV files write it.
std::string cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_bool()) return to_text(Value(value.get<bool>()));
  if (value.is_integer()) return to_text(Value(value.get<std::int64_t>()));
  if (value.is_number()) return to_text(Value(value.get<double>()));
  return to_text(Value(value.get<std::vector<double>>()));
}

// Rows of a study's CSV file, each found its setting and method in summary.json.
class StudyRows {
 public:
  StudyRows(const std::string& path, const Json& settings)
      : csv_(path), settings_(settings), method_column_(csv_.column("method")) {
    for (const Json& s : settings.elements()) {
      std::vector<std::string> cells;
      for (const auto& [key, value] : s["at"].members()) {
        if (&s == &settings[0]) keys_.push_back(csv_.column(key));
        cells.push_back(cell(value));
      }
      cells_.push_back(std::move(cells));
    }
  }

  bool next() {
    if (!csv_.next()) return false;
    // Rows come setting by setting, so the present one is likely.
    for (std::size_t tried = 0; !here(); ++tried) {
      if (tried >= settings_.size())
        csv_.refuse(method_column_, "at this setting is not in summary.json");
      setting_ = (setting_ + 1) % settings_.size();
    }
    return true;
  }

  CsvReader& csv() { return csv_; }
  std::size_t setting() const { return setting_; }
  std::size_t method() const { return method_; }
  double number(std::size_t column) const {
    const std::string_view field = csv_.fields()[column];
    if (field.empty()) return kNone;
    const std::optional<double> x = parse_number(field);
    if (!x) csv_.refuse(column, "is not a number");
    return *x;
  }

 private:
  bool here() {
    if (settings_.empty()) return false;
    for (std::size_t k = 0; k < keys_.size(); ++k)
      if (cells_[setting_].size() <= k || cells_[setting_][k] != csv_.fields()[keys_[k]])
        return false;
    const Json& methods = settings_[setting_]["methods"];
    for (method_ = 0; method_ < methods.size(); ++method_)
      if (methods[method_]["name"].string() == csv_.fields()[method_column_]) return true;
    return false;
  }

  CsvReader csv_;
  const Json& settings_;
  std::size_t method_column_, setting_ = 0, method_ = 0;
  std::vector<std::size_t> keys_;
  std::vector<std::vector<std::string>> cells_;
};

struct CurveRows {
  std::size_t setting, method;
  std::string agent;
  Numbers step, mean, lo, hi;
};

std::vector<CurveRows> read_curves(const std::string& path, const Json& settings) {
  StudyRows rows(path, settings);
  CsvReader& csv = rows.csv();
  const std::size_t agent = csv.column("agent"), step = csv.column("step"),
                    mean = csv.column("mse_mean"), lo = csv.column("mse_lo"),
                    hi = csv.column("mse_hi");
  std::vector<CurveRows> curves;
  while (rows.next()) {
    if (curves.empty() || curves.back().setting != rows.setting() ||
        curves.back().method != rows.method() || curves.back().agent != csv.fields()[agent])
      curves.push_back(
          {rows.setting(), rows.method(), std::string(csv.fields()[agent]), {}, {}, {}, {}});
    CurveRows& c = curves.back();
    c.step.push_back(rows.number(step));
    c.mean.push_back(rows.number(mean));
    c.lo.push_back(rows.number(lo));
    c.hi.push_back(rows.number(hi));
  }
  return curves;
}

// Adds the curves to their methods; the lists of steps, which many share, to data["steps"].
void add_curves(const std::string& path, double most, Json& data) {
  std::vector<CurveRows> curves = read_curves(path, data["settings"]);
  const auto size = [&] {
    std::size_t numbers = 0;
    for (const CurveRows& c : curves) numbers += 3 * c.step.size();
    return numbers;
  };
  const bool thinned = static_cast<double>(size()) > most;
  if (thinned)  // single agents' curves are the first to go
    std::erase_if(curves, [](const CurveRows& c) { return c.agent != "all"; });
  const std::size_t numbers = size();
  const double share = most / static_cast<double>(numbers);
  data["thinned_curves"] = thinned;
  data["steps"] = Json::array();
  std::map<Numbers, std::size_t> known;
  for (const CurveRows& c : curves) {
    const auto points = static_cast<std::size_t>(share * static_cast<double>(c.step.size()));
    const std::vector<std::size_t> places =
        spread(c.step.size(), share < 1 ? std::max(points, kLeast) : c.step.size());
    const Numbers steps = pick(c.step, places);
    const auto [at, fresh] = known.emplace(steps, known.size());
    if (fresh) data["steps"].push_back(std::vector<std::int64_t>(steps.begin(), steps.end()));
    data["settings"][c.setting]["methods"][c.method]["curves"].push_back(
        {{"agent", c.agent},
         {"steps", at->second},
         {"mean", pack(pick(c.mean, places))},
         {"lo", pack(pick(c.lo, places))},
         {"hi", pack(pick(c.hi, places))}});
  }
}

using Columns = std::vector<std::pair<std::string, Numbers>>;  // of the agents of one method

// By setting and method.
std::vector<std::vector<Columns>> read_agents(const std::string& path, const Json& settings) {
  StudyRows rows(path, settings);
  CsvReader& csv = rows.csv();
  const std::size_t first = csv.column("mse_mean");
  std::vector<std::vector<Columns>> all;
  for (const Json& s : settings.elements()) all.emplace_back(s["methods"].size());
  while (rows.next()) {
    Columns& columns = all[rows.setting()][rows.method()];
    if (columns.empty())
      for (std::size_t c = first; c < csv.header().size(); ++c)
        columns.emplace_back(csv.header()[c], Numbers{});
    for (std::size_t c = first; c < csv.header().size(); ++c)
      columns[c - first].second.push_back(rows.number(c));
  }
  for (std::vector<Columns>& methods : all)
    for (Columns& columns : methods)
      std::erase_if(columns, [](const auto& named) {
        return std::all_of(named.second.begin(), named.second.end(),
                           [](double x) { return std::isnan(x); });
      });
  return all;
}

const Numbers* column_of(const Columns& columns, std::string_view name) {
  for (const auto& [other, values] : columns)
    if (other == name) return &values;
  return nullptr;
}

// Which agents of a setting to keep: evenly spread in the order of what they gained.
std::vector<std::size_t> agents_to_keep(const Json& setting, const std::vector<Columns>& methods,
                                        std::size_t count, double share) {
  std::size_t subject = 0;
  const Json* headline = setting.find("headline");
  const Json* name = headline != nullptr ? headline->find("method") : nullptr;
  for (std::size_t m = 0; m < methods.size(); ++m)
    if (name != nullptr && setting["methods"][m]["name"] == *name) subject = m;
  const Numbers* by = column_of(methods[subject], "vs_independent");
  if (by == nullptr) by = column_of(methods[subject], "mse_mean");
  std::vector<std::size_t> order = spread(count, count);
  if (by != nullptr && by->size() == count)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return (*by)[a] < (*by)[b]; });
  std::vector<std::size_t> kept;
  const auto most = static_cast<std::size_t>(share * static_cast<double>(count));
  for (std::size_t place : spread(count, std::max(most, kLeast))) kept.push_back(order[place]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

void add_agents(const std::string& path, double most, Json& data) {
  const std::vector<std::vector<Columns>> all = read_agents(path, data["settings"]);
  std::size_t numbers = 0;
  for (const std::vector<Columns>& methods : all)
    for (const Columns& columns : methods)
      for (const auto& [name, values] : columns) numbers += values.size();
  const double share = most / static_cast<double>(numbers);
  for (std::size_t s = 0; s < all.size(); ++s) {
    Json& setting = data["settings"][s];
    std::size_t count = 0;
    for (const Columns& columns : all[s])
      if (!columns.empty()) count = std::max(count, columns.front().second.size());
    setting["agents"] = count;
    std::vector<std::size_t> kept = spread(count, count);
    if (share < 1 && count > kLeast) {
      kept = agents_to_keep(setting, all[s], count, share);
      setting["shown"] = kept;
    }
    for (std::size_t m = 0; m < all[s].size(); ++m)
      for (const auto& [name, values] : all[s][m])
        if (values.size() == count)
          setting["methods"][m]["columns"][name] = pack(pick(values, kept));
  }
}

// How many packed numbers fit beside the data so far.
double numbers_left(const Json& data, std::size_t room) {
  const std::size_t used = print_json(data).size();
  return used < room ? static_cast<double>(room - used) / 4 : 0;
}

// What the swept keys mean, from the tables of parameters.
Json labels_of(const Json& summary) {
  Json labels = Json::object();
  if (summary["settings"].empty()) return labels;
  const Json* problem = summary["manifest"]["spec"].find("problem");
  const Json* kind = problem == nullptr ? nullptr : problem->find("kind");
  const auto describe = [&](const std::string& key, const std::string& section,
                            std::span<const Param> params) {
    if (!key.starts_with(section)) return;
    for (const Param& p : params)
      if (key.substr(section.size()) == p.name) labels[key] = std::string(p.doc);
  };
  for (const JsonMember& m : summary["settings"][0]["at"].members()) {
    describe(m.key, "run.", run_params());
    for (const ProblemKind& k : problem_kinds())
      if (kind != nullptr && kind->is_string() && kind->string() == k.name)
        describe(m.key, "problem.", k.params);
  }
  return labels;
}

Json study_data(const ResultFiles& result, std::size_t room) {
  Json data = result.summary;
  data["labels"] = labels_of(result.summary);
  data["claims"] = result.claims;
  for (Json& s : data["settings"].elements())
    for (Json& m : s["methods"].elements()) {
      m.erase("agents");
      m.erase("by_replicate");
      m["curves"] = Json::array();
      m["columns"] = Json::object();
    }
  round_numbers(data);
  for (std::size_t s = 0; s < data["settings"].size(); ++s)  // these are names, not measurements
    data["settings"][s]["at"] = result.summary["settings"][s]["at"];
  const double left = numbers_left(data, room);
  const std::filesystem::path dir(result.folder);
  add_curves((dir / "curves.csv").string(), 0.4 * left, data);
  add_agents((dir / "agents.csv").string(), 0.6 * left, data);
  return data;
}

// How far agents differ in each coefficient of a channel, as a standard deviation. A stream has no
// D: there it is that of the agents' coefficients.
Numbers between_agents(const Model& model, std::size_t c) {
  const std::size_t d = model.encoding.dim(), n = model.agents.size();
  const Numbers& D = model.channels[c].D;
  Numbers between(d);
  for (std::size_t r = 0; r < d; ++r) {
    if (!D.empty()) {
      between[r] = std::sqrt(D[r * d + r]);
    } else if (n > 1) {
      const double first = model.agents[0].channels[c].x[r];  // equal coefficients: exactly 0
      double s1 = 0, s2 = 0;
      for (const AgentModel& a : model.agents) s1 += a.channels[c].x[r] - first;
      for (const AgentModel& a : model.agents)
        s2 += std::pow(a.channels[c].x[r] - first - s1 / static_cast<double>(n), 2);
      between[r] = std::sqrt(s2 / static_cast<double>(n - 1));
    }
  }
  return between;
}

// Coefficients by how far agents differ in them, the first ones; all where they are few.
std::vector<std::size_t> coefficients_to_keep(const Model& model,
                                              const std::vector<Numbers>& between,
                                              std::size_t agents, double numbers) {
  const std::size_t d = model.encoding.dim();
  const auto each = static_cast<double>(2 * model.channels.size() * (agents + 1));
  std::vector<std::size_t> order = spread(d, d);
  const std::size_t most = std::max(std::size_t{2}, static_cast<std::size_t>(numbers / each));
  if (d <= most) return order;
  const auto spread_of = [&](std::size_t r) {
    double sum = 0;
    for (const Numbers& channel : between) sum += channel[r] * channel[r];
    return sum;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return spread_of(a) > spread_of(b); });
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

// Which agents of a fit to keep: all where there is room; else those with a reason first, then
// evenly spread in the order of their gain.
std::vector<std::size_t> fit_agents_to_keep(const Json& agents, std::size_t channels,
                                            double numbers) {
  const std::size_t n = agents.size();
  // An agent takes about 16 numbers beside two coefficients of each channel with their errors.
  const auto most = static_cast<std::size_t>(numbers / static_cast<double>(16 + 5 * channels));
  if (n <= std::max(most, kLeast)) return spread(n, n);
  std::vector<std::size_t> kept, others;
  for (std::size_t i = 0; i < n; ++i) {
    const Json* why = agents[i].find("why");
    const bool special = why != nullptr && why->is_string() && !why->string().empty();
    (special && kept.size() < most / 2 ? kept : others).push_back(i);
  }
  const auto gain = [&](std::size_t i) {
    const Json* of = agents[i].find("gain");
    return of != nullptr && (*of)["mean"].is_number() ? (*of)["mean"].get<double>() : 0;
  };
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return gain(a) < gain(b); });
  for (std::size_t place : spread(others.size(), most - kept.size())) kept.push_back(others[place]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

// The place of a word in a list, as a letter: A, B, …
char letter(const Json& word, std::initializer_list<const char*> words) {
  char at = 'A';
  for (const char* one : words) {
    if (word.is_string() && word.string() == one) return at;
    ++at;
  }
  return '?';
}

// The agents as columns, since a list of objects is six times as long.
Json agent_columns(const Json& agents, const std::vector<std::size_t>& kept) {
  Json columns{{"count", agents.size()},
               {"agent", Json::array()},
               {"rows", Json::array()},
               {"why", Json::object()},
               {"numbers", Json::object()}};
  if (kept.size() < agents.size()) columns["shown"] = kept;
  std::string given, verdict;
  std::vector<std::pair<std::string, Numbers>> numbers;
  for (std::size_t at = 0; at < kept.size(); ++at) {
    const Json& a = agents[kept[at]];
    columns["agent"].push_back(a["agent"]);
    columns["rows"].push_back(a["rows"]);
    given += letter(a["given"], {"personalised", "alone", "pooled"});
    if (const Json* word = a.find("verdict")) verdict += letter(*word, {"gained", "even", "lost"});
    if (const Json* why = a.find("why"); why != nullptr && !why->string().empty())
      columns["why"][std::to_string(at)] = *why;
    std::size_t column = 0;  // all agents have the same ones
    const auto put = [&](const std::string& name, const Json& value) {
      if (at == 0) numbers.emplace_back(name, Numbers(kept.size(), kNone));
      if (column < numbers.size() && value.is_number())
        numbers[column].second[at] = value.get<double>();
      ++column;
    };
    for (const char* key : {"score", "accuracy", "gain", "weights"})
      if (const Json* of = a.find(key); of != nullptr && of->is_object())
        for (const JsonMember& m : of->members())
          if (key != std::string_view("weights") || m.key != "pooled")  // they add up to 1
            put(std::string(key) + "." + m.key, m.value);
    if (const Json* value = a.find("probability")) put("probability", *value);
  }
  columns["given"] = given;
  columns["verdict"] = verdict;
  for (const auto& [name, values] : numbers) columns["numbers"][name] = pack(values);
  return columns;
}

// The centre per unit of the columns: coefficients, 90 % intervals, spreads between agents.
Json centre_data(const Model& shown, const Model& model, const std::vector<std::size_t>& kept) {
  Json centres = Json::array();
  for (std::size_t c = 0; c < shown.channels.size(); ++c) {
    const ChannelModel& channel = shown.channels[c];
    Numbers x, half, between = spread_of(channel);
    for (std::size_t r : kept) {
      x.push_back(channel.centre.x[r]);
      half.push_back(half_width(shown, channel, r, kConfidence));
    }
    centres.push_back({{"name", channel_name(model, c)},
                       {"x", pack(x)},
                       {"half", pack(half)},
                       {"spread", between.empty() ? "" : pack(pick(between, kept))},
                       {"pooled", model.channels[c].pooled_weight}});
  }
  return centres;
}

// Of affinity: the agents as columns, and the distances of as many as there is room for.
Json pilot_data(const ResultFiles& result, std::size_t room) {
  constexpr std::size_t kMostPairs = 150;  // agents whose distances are shown
  constexpr const char* kScores[] = {"environment", "delta_cen", "lambda", "predicted_excess",
                                     "predicted_loss"};
  Json data = result.summary;
  data.erase("agents");
  data.erase("alike");
  round_numbers(data);
  const Json& agents = result.summary["agents"];
  const std::size_t n = agents.size();
  const auto most = static_cast<std::size_t>(numbers_left(data, room) / 30);
  std::vector<std::size_t> order = spread(n, n);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto loss = [&](std::size_t i) {
      const Json& value = agents[i]["predicted_loss"]["value"];
      return value.is_number() ? value.get<double>() : 1;
    };
    return loss(a) < loss(b);
  });
  Json columns{{"count", n},
               {"agent", Json::array()},
               {"rows", Json::array()},
               {"used", Json::array()},
               {"numbers", Json::object()}};
  std::string prospect;
  std::vector<Numbers> numbers(3 * std::size(kScores));
  for (std::size_t place : spread(n, std::max(most, kLeast))) {
    const Json& a = agents[order[place]];
    columns["agent"].push_back(a["agent"]);
    columns["rows"].push_back(a["rows"]);
    columns["used"].push_back(a["pilot_rows"]);
    const Json* word = a.find("prospect");
    prospect +=
        letter(word == nullptr ? Json() : *word,
               {to_text(Prospect::kGain), to_text(Prospect::kEven), to_text(Prospect::kLoss)});
    std::size_t column = 0;
    for (const char* key : kScores)
      for (const char* part : {"value", "lo", "hi"}) {
        const Json& value = a[key][part];
        numbers[column++].push_back(value.is_number() ? value.get<double>() : kNone);
      }
  }
  columns["prospect"] = prospect;
  std::size_t column = 0;
  for (const char* key : kScores)
    for (const char* part : {"value", "lo", "hi"})
      columns["numbers"][std::string(key) + "." + part] = pack(numbers[column++]);
  data["agents"] = std::move(columns);
  const Json& alike = result.summary["alike"];
  const std::vector<std::size_t> shown = spread(alike["order"].size(), kMostPairs);
  Json names = Json::array();
  Numbers distances;
  for (std::size_t i : shown) {
    names.push_back(alike["order"][i]);
    for (std::size_t j : shown) distances.push_back(alike["distance"][i][j].get<double>());
  }
  data["alike"] = {
      {"all", alike["order"].size()}, {"order", std::move(names)}, {"distance", pack(distances)}};
  return data;
}

Json fit_data(const ResultFiles& result, std::size_t room) {
  const Model& model = *result.model;
  const Model in_own_units = in_units(model);
  const std::size_t d = model.encoding.dim();
  const std::vector<std::string> names = model.encoding.names();
  Json data = result.summary;
  data.erase("agents");
  round_numbers(data);
  const std::vector<std::size_t> agents =
      fit_agents_to_keep(result.summary["agents"], model.channels.size(), numbers_left(data, room));
  data["agents"] = agent_columns(result.summary["agents"], agents);
  std::vector<Numbers> between;
  for (std::size_t c = 0; c < model.channels.size(); ++c)
    between.push_back(between_agents(model, c));
  const std::vector<std::size_t> kept =
      coefficients_to_keep(model, between, agents.size(), numbers_left(data, room));
  const Numbers no_errors(d, kNone);  // of a stream
  Json shown{{"target", model.encoding.predicted()},
             {"classes", model.encoding.classes},
             {"outcomes", model.encoding.outcomes},
             {"numeric", model.encoding.numeric() && !model.encoding.values},
             {"all", d},
             {"names", Json::array()},
             {"levels", Json::object()},
             {"sd", pack(pick(column_sd(model.encoding), kept))},
             {"centre", centre_data(in_own_units, model, kept)},
             {"channels", Json::array()}};
  for (std::size_t r : kept) shown["names"].push_back(names[r]);
  for (const Source& s : model.encoding.sources)  // a column of texts: beside which level?
    if (!s.levels.empty()) shown["levels"][s.name] = s.levels.front();
  for (std::size_t c = 0; c < model.channels.size(); ++c) {
    const auto errors = [&](const LinearModel& m) -> const Numbers& {
      return m.se.empty() ? no_errors : m.se;
    };
    const LinearModel& centre = model.channels[c].centre;
    Numbers x, se, intercept;
    for (std::size_t i : agents) {
      const LinearModel& own = in_own_units.agents[i].channels[c];
      for (std::size_t r : kept) {
        x.push_back(own.x[r]);
        se.push_back(errors(own)[r]);
      }
      intercept.push_back(model.agents[i].channels[c].x[0]);
    }
    shown["channels"].push_back({{"between", pack(pick(between[c], kept))},
                                 {"centre", pack(pick(centre.x, kept))},
                                 {"intercept", pack(intercept)},
                                 {"x", pack(x)},
                                 {"se", pack(se)}});
  }
  data["model"] = std::move(shown);
  return data;
}

}  // namespace

std::string pack(const std::vector<double>& numbers) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(4 * numbers.size());
  for (double x : numbers) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    if (std::isfinite(x)) bits += 0x80;  // to the nearest
    bits >>= 8;
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[bits >> shift & 63];
  }
  return text;
}

Json page_data(const ResultFiles& result, std::size_t room) {
  Json data = result.fitted()    ? fit_data(result, room)
              : result.piloted() ? pilot_data(result, room)
                                 : study_data(result, room);
  data["kind"] = result.fitted() ? "fit" : result.piloted() ? "affinity" : "study";
  data["folder"] = result.folder;
  return data;
}

}  // namespace affpcl
