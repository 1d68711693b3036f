#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/join.h"
#include "affpcl/base/json.h"
#include "affpcl/base/params.h"
#include "affpcl/math/statistics.h"
#include "affpcl/output/model_file.h"
#include "affpcl/table/coefficients.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

// What a model does not have is a dash.
std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "-"; }
std::string number(const std::vector<double>& list, std::size_t j) {
  return j < list.size() ? number(list[j]) : "-";
}

// Correlations of random effects, by pairs of coefficients; empty unless D is full.
struct Correlation {
  std::string first, second;
  double value;
};
std::vector<Correlation> correlations(const ChannelModel& channel,
                                      const std::vector<std::string>& names) {
  std::vector<Correlation> all;
  const std::size_t d = names.size();
  if (channel.covariance != Covariance::kFull || channel.D.size() != d * d) return all;
  const auto D = [&](std::size_t j, std::size_t k) { return channel.D[j * d + k]; };
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < j; ++k)
      if (D(j, j) > 0 && D(k, k) > 0)
        all.push_back({names[k], names[j], D(j, k) / std::sqrt(D(j, j) * D(k, k))});
  return all;
}
Json correlations_json(const ChannelModel& channel, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const Correlation& r : correlations(channel, names))
    list.push_back({{"between", std::vector{r.first, r.second}}, {"value", r.value}});
  return list;
}

// Correlations, and which effects of a singular covariance do not vary: once where all channels say
// the same.
void print_effects(const Model& m, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;  // a sentence, of channels
  const auto say = [&](const char* what, const std::vector<std::string>& parts, std::size_t c) {
    if (parts.empty()) return;
    const std::string sentence = what + join(parts, ", ");
    auto at = std::find_if(said.begin(), said.end(), [&](auto& s) { return s.first == sentence; });
    if (at == said.end()) at = said.insert(at, {sentence, {}});
    at->second.push_back(channel_name(m, c));
  };
  for (std::size_t c = 0; c < m.channels.size(); ++c) {
    const ChannelModel& channel = m.channels[c];
    std::vector<std::string> parts;
    for (const Correlation& r : correlations(channel, names))
      parts.push_back(fmt::format("{} with {} {:.2f}", r.first, r.second, r.value));
    say("correlations of random effects: ", parts, c);
    parts.clear();
    const std::size_t d = names.size();
    for (std::size_t j = 0; j < d && channel.D.size() == d * d; ++j)
      if (channel.singular && channel.D[j * d + j] == 0) parts.push_back(names[j]);
    say("no variation between agents in ", parts, c);
  }
  for (const auto& [sentence, channels] : said)
    fmt::print("{}{}\n", sentence,
               channels.size() == m.channels.size() ? "" : " (" + join(channels, ", ") + ")");
}

// Coefficients that the rows leave open: columns are the same for all channels.
std::vector<std::string> undetermined_names(const Model& m) {
  std::vector<std::string> names;
  for (std::size_t j : m.channels[0].undetermined) names.push_back(m.encoding.names()[j]);
  return names;
}

// A log-likelihood with AIC and BIC. Older files of a second factor do not count parameters.
std::string likelihood(const Model& m, double log_likelihood, std::size_t parameters) {
  std::string text =
      fmt::format("{}log-likelihood {:.4f}", m.restricted ? "restricted " : "", log_likelihood);
  if (parameters == 0) return text;
  const auto k = static_cast<double>(parameters);
  return text + fmt::format(", AIC {:.2f}, BIC {:.2f} ({} parameters)", 2 * k - 2 * log_likelihood,
                            k * std::log(static_cast<double>(m.centre_rows)) - 2 * log_likelihood,
                            parameters);
}

// What a generalised model says of its fit.
void print_family(const Model& m) {
  fmt::print("family {}: {}{}{}\n", to_text(m.encoding.family),
             likelihood(m, m.log_likelihood, m.parameters),
             m.channels[0].singular ? "; singular: a random effect does not vary" : "",
             m.channels[0].converged ? "" : "; did not converge");
}

// The random intercepts of a second factor: their standard deviation, and the largest.
void print_levels(const Model& m) {
  constexpr std::size_t kShown = 6;
  const Encoding& e = m.encoding;
  const LevelModel& levels = m.levels;
  fmt::print("{} '{}': {} levels, standard deviation {}; {}{}\n",
             e.within.empty() ? "crossed with" : "agents within", e.level_column(),
             levels.names.size(), number(std::sqrt(levels.variance)),
             likelihood(m, m.log_likelihood, m.parameters),
             m.channels[0].singular ? "; singular: a random effect does not vary" : "");
  std::vector<std::size_t> order(levels.names.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(levels.effect[a]) > std::abs(levels.effect[b]);
  });
  std::size_t width = 9;
  for (std::size_t k = 0; k < std::min(kShown, order.size()); ++k)
    width = std::clamp(levels.names[order[k]].size(), width, std::size_t{32});
  fmt::print("  {:<{}} {:>11} {:>11}\n", "level", width, "effect", "std. error");
  for (std::size_t k = 0; k < std::min(kShown, order.size()); ++k)
    fmt::print("  {:<{}} {:>+11.4g} {:>11}\n", levels.names[order[k]].substr(0, width), width,
               levels.effect[order[k]], number(levels.se, order[k]));
  if (order.size() > kShown)
    fmt::print("  … {} more, with smaller effects\n", order.size() - kShown);
}

// `shown` has the coefficients as they are printed, standardised or not.
void print_model(const Model& m, const Model& shown, const AgentModel* only, bool standardised,
                 double level) {
  const Encoding& e = m.encoding;
  const std::vector<std::string> names = e.names();
  fmt::print("{} of '{}': {} agent{}, {} rows, {} columns{}\n", e.task(), e.predicted(),
             m.agents.empty() ? m.centre_agents : m.agents.size(), m.agents.size() == 1 ? "" : "s",
             m.rows, names.size() - 1,
             m.agents.empty() ? "; the centre alone, without the agents' own models"
             : m.joined       ? fmt::format("; joined to a centre of {} agents and {} rows",
                                            m.centre_agents, m.centre_rows)
                              : std::string());
  fmt::print("made by affpcl {}{}{}\n", m.version, m.command.empty() ? "" : ": ", m.command);
  const AgentModel* const own =
      only == nullptr ? nullptr : &shown.agents[static_cast<std::size_t>(only - m.agents.data())];
  if (e.generalised()) print_family(m);
  if (e.leveled()) print_levels(m);
  std::size_t width = 9;
  for (const std::string& n : names) width = std::clamp(n.size(), width, std::size_t{32});
  for (std::size_t c = 0; c < m.channels.size(); ++c) {
    const ChannelModel& channel = shown.channels[c];
    const bool exact = m.solver == SolverKind::kExact;
    fmt::print("{}: {}{}", channel_name(m, c),
               e.numeric() || !e.generalised()
                   ? fmt::format("noise {}, ", number(std::sqrt(channel.centre.s2)))
                   : "",
               exact ? fmt::format("random-effects covariance {}", to_text(channel.covariance))
                     : fmt::format("learnt in one pass by {}", m.method));
    double least = std::numeric_limits<double>::infinity();
    for (const CovarianceTried& t : channel.tried) least = std::min(least, t.bic);
    for (std::size_t t = 0; t < channel.tried.size(); ++t)
      fmt::print("{}{} {:.1f}", t == 0 ? " (BIC above the smallest: " : ", ", channel.tried[t].name,
                 channel.tried[t].bic - least);
    fmt::print("{}\n", channel.tried.empty() ? "" : ")");
    if (channel.parameters > 0)
      fmt::print("  with one noise variance and no outlying agents: {}\n",
                 likelihood(m, channel.log_likelihood, channel.parameters));
    if (channel.correlation > 0)
      fmt::print("  correlation of the errors of an agent's successive rows, AR(1): {}\n",
                 number(channel.correlation));
    fmt::print("  {:<{}} {:>11} {:>11} {:>24} {:>6} {:>11}", "", width, "centre", "std. error",
               fmt::format("{:g} % interval", 100 * level), "df", "spread");
    if (only != nullptr) fmt::print(" {:>11} {:>11}", "agent", "std. error");
    fmt::print("\n");
    for (std::size_t j = 0; j < names.size(); ++j) {
      const double half = half_width(m, channel, j, level);
      fmt::print("  {:<{}} {:>11.4g} {:>11} {:>24} {:>6} {:>11}", names[j].substr(0, width), width,
                 channel.centre.x[j], number(standard_error(channel, j)),
                 std::isnan(half) ? "-"
                                  : fmt::format("[{:.4g}, {:.4g}]", channel.centre.x[j] - half,
                                                channel.centre.x[j] + half),
                 number(freedom(m, channel, j)), number(spread_of(channel), j));
      if (only != nullptr)
        fmt::print(" {:>11.4g} {:>11}", own->channels[c].x[j], number(own->channels[c].se, j));
      fmt::print("\n");
    }
  }
  for (const ChannelModel& channel : m.channels)
    if (channel.pooled_weight > 0)
      fmt::print("an agent never seen has {:.2g} centre + {:.2g} pooled, by held-out agents\n",
                 1 - channel.pooled_weight, channel.pooled_weight);
  if (const std::vector<std::string> open = undetermined_names(shown); !open.empty())
    fmt::print(
        "no standard error: columns are collinear, and the rows settle sums of the effects of {} "
        "only\n",
        join(open, ", "));
  const char* const scale = e.numeric() || !e.generalised()
                                ? "in units of the target"
                                : "on the scale of the linear predictor";
  fmt::print("coefficients are {}, {}\n",
             standardised ? "of standardised columns"
                          : "per unit of their columns (--standardised: per standard deviation)",
             scale);
  print_effects(m, names);
  if (only != nullptr || m.agents.empty()) return;
  // How far an agent is from the centre: standard deviations of its predictions over average rows.
  width = 5;
  for (const AgentModel& a : m.agents) width = std::clamp(a.name.size(), width, std::size_t{32});
  fmt::print("  {:<{}} {:>7}  {:<13} {}\n", "agent", width, "rows", "model",
             "farthest from the centre in (per standard deviation of the column)");
  for (const AgentModel& a : m.agents) {
    std::size_t far = 0, channel = 0;
    double most = -1;
    for (std::size_t c = 0; c < m.channels.size(); ++c)
      for (std::size_t j = 0; j < names.size(); ++j)
        if (const double u = std::abs(a.channels[c].x[j] - m.channels[c].centre.x[j]); u > most)
          most = u, far = j, channel = c;
    fmt::print("  {:<{}} {:>7}  {:<13} {}{} {:+.3g}\n", a.name.substr(0, 32), width, a.rows,
               to_text(a.kind), names[far],
               m.channels.size() > 1 ? " (" + channel_name(m, channel) + ")" : "",
               a.channels[channel].x[far] - m.channels[channel].centre.x[far]);
  }
}

// A line per agent, channel and coefficient; the centre first.
std::string as_csv(const Model& m, const AgentModel* only, double level) {
  const auto cell = [](double v) {
    return std::isfinite(v) ? fmt::format("{}", v) : std::string();
  };
  const std::vector<std::string> names = m.encoding.names();
  std::string csv = "agent,rows,model,channel,coefficient,value,std_error,lo,hi,spread\n";
  const auto add = [&](std::string_view agent, std::size_t rows, const char* kind, std::size_t c,
                       const LinearModel& l, bool centre) {
    const ChannelModel& channel = m.channels[c];
    const std::vector<double> spread = spread_of(channel);
    for (std::size_t j = 0; j < names.size(); ++j) {
      const double se = centre            ? standard_error(channel, j)
                        : j < l.se.size() ? l.se[j]
                                          : std::nan("");
      const double half =
          centre ? half_width(m, channel, j, level) : student_quantile((1 + level) / 2, 1e9) * se;
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_field(agent), rows, kind,
                         csv_field(channel_name(m, c)), csv_field(names[j]), cell(l.x[j]), cell(se),
                         cell(l.x[j] - half), cell(l.x[j] + half),
                         centre && j < spread.size() ? cell(spread[j]) : "");
    }
  };
  for (std::size_t c = 0; only == nullptr && c < m.channels.size(); ++c)
    add("", m.rows, "centre", c, m.channels[c].centre, true);
  for (const AgentModel& a : m.agents)
    for (std::size_t c = 0; (only == nullptr || &a == only) && c < m.channels.size(); ++c)
      add(a.name, a.rows, to_text(a.kind), c, a.channels[c], false);
  return csv;
}

Json as_json(const Model& m, const AgentModel* only, double level) {
  const Encoding& e = m.encoding;
  Json channels = Json::array(), agents = Json::array();
  for (std::size_t c = 0; c < m.channels.size(); ++c) {
    const ChannelModel& channel = m.channels[c];
    Json se = Json::array(), lo = Json::array(), hi = Json::array(), df = Json::array();
    for (std::size_t j = 0; j < channel.centre.x.size(); ++j) {
      const double half = half_width(m, channel, j, level);
      se.push_back(standard_error(channel, j));
      lo.push_back(channel.centre.x[j] - half), hi.push_back(channel.centre.x[j] + half);
      df.push_back(freedom(m, channel, j));
    }
    channels.push_back({{"name", channel_name(m, c)},
                        {"spread", to_text(channel.covariance)},
                        {"noise", std::sqrt(channel.centre.s2)},
                        {"converged", channel.converged},
                        {"singular", channel.singular},
                        {"correlations", correlations_json(channel, e.names())},
                        {"pooled", channel.pooled},
                        {"centre", channel.centre.x},
                        {"centre_se", std::move(se)},
                        {"centre_lo", std::move(lo)},
                        {"centre_hi", std::move(hi)},
                        {"centre_df", std::move(df)},
                        {"pooled_weight", channel.pooled_weight},
                        {"correlation", channel.correlation},
                        {"spread_sd", spread_of(channel)}});
    if (channel.parameters > 0) {
      channels.back()["log_likelihood"] = channel.log_likelihood;
      channels.back()["parameters"] = channel.parameters;
    }
  }
  for (const AgentModel& a : m.agents) {
    if (only != nullptr && &a != only) continue;
    Json own = Json::array();
    for (const LinearModel& l : a.channels) own.push_back({{"x", l.x}, {"se", l.se}});
    agents.push_back({{"name", a.name},
                      {"rows", a.rows},
                      {"model", to_text(a.kind)},
                      {"channels", std::move(own)},
                      {"alone", a.independent},
                      {"weights", a.weights}});
  }
  Json levels;
  if (e.leveled())
    levels = {
        {"column", e.level_column()},         {"how", e.within.empty() ? "crossed" : "within"},
        {"sd", std::sqrt(m.levels.variance)}, {"names", m.levels.names},
        {"effects", m.levels.effect},         {"se", m.levels.se}};
  return {{"level", level},
          {"task", e.task()},
          {"estimate", m.solver == SolverKind::kExact ? m.estimate() : ""},
          {"levels", std::move(levels)},
          {"target", e.target},
          {"classes", e.classes},
          {"outcomes", e.outcomes},
          {"solver", to_text(m.solver)},
          {"method", m.method},
          {"rows", m.rows},
          {"files", m.files},
          {"command", m.command},
          {"version", m.version},
          {"coefficients", e.names()},
          {"channels", std::move(channels)},
          {"agents", std::move(agents)}};
}

struct Options {
  std::string model, agent, csv;
  double level = kConfidence;
  bool json = false, standardised = false, force = false;
};

// The agent of that name; nullptr where no name is given.
const AgentModel* find_agent(const Model& m, const Options& o) {
  if (o.agent.empty()) return nullptr;
  std::vector<std::string_view> names;
  for (const AgentModel& a : m.agents) {
    if (a.name == o.agent) return &a;
    names.push_back(a.name);
  }
  const bool list = names.size() <= 20 || !did_you_mean(o.agent, names).empty();
  throw BadInput(
      fmt::format("{} has no agent '{}'{}", o.model, o.agent,
                  list ? hint(o.agent, names) : fmt::format(" among its {}", names.size())));
}

int inspect(const Options& o) {
  const Model m = read_model(o.model);
  const AgentModel* only = find_agent(m, o);
  if (o.json) {
    fmt::print("{}\n", print_json(as_json(m, only, o.level), {.indent = 1}));
    return kOk;
  }
  const Model shown = o.standardised ? m : in_units(m);
  if (o.csv.empty()) {
    print_model(m, shown, only, o.standardised, o.level);
  } else {
    if (std::filesystem::exists(o.csv) && !o.force)
      throw BadInput(fmt::format(
          "{} exists already; choose another --csv, or replace it with --force", o.csv));
    refuse_unwritable(o.csv);
    const AgentModel* own =
        only == nullptr ? nullptr : &shown.agents[static_cast<std::size_t>(only - m.agents.data())];
    write_file(o.csv, as_csv(shown, own, o.level));
    fmt::print("coefficients in {}\n", o.csv);
  }
  return kOk;
}

}  // namespace

Verb inspect_verb() {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "inspect",
            .doc = "what a model holds",
            .examples =
                "Examples:\n  affpcl inspect model --agent north\n"
                "  affpcl inspect model --csv coefficients.csv",
            .action = [o](const Verb&) { return inspect(*o); }};
  verb.option("model", &o->model, "MODEL", "model.json, or the folder that holds it",
              {.required = true});
  verb.option("--agent", &o->agent, "NAME", "the coefficients of one agent beside the centre's");
  add_level(verb, o->level);
  verb.flag("--standardised", &o->standardised,
            "coefficients of standardised columns instead of per unit of each column");
  verb.option("--csv", &o->csv, "FILE.csv",
              "write the coefficients of the centre and of all agents, a line each");
  verb.flag("--force", &o->force, "replace that file if it exists");
  verb.flag("--json", &o->json, "print all of the model as JSON; coefficients are standardised");
  return verb;
}

}  // namespace affpcl::cli
