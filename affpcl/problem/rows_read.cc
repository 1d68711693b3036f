// Rows from a file: whose they are, what they are predicted from, which of them are held out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/data/tables.h"
#include "affpcl/data/weights.h"
#include "affpcl/problem/rows.h"

namespace affpcl {
namespace {

struct Config {
  std::string file, with, agent = "agent", target, channels, weights, features, fold, repeat;
  double delta_obj = 0, ridge = 0, scale = 1;
  std::int64_t agents = 0;
  bool once = false;
};

Tables read(const Config& config) {
  const std::vector<std::string> beside =
      config.with.empty() ? std::vector<std::string>() : std::vector{config.with};
  return read_tables({config.file}, beside, {.text = {config.agent}});
}

const Column& column(const Tables& tables, const Config& config, const std::string& name) {
  const Column* c = tables.find(name);
  if (c != nullptr) return *c;
  std::vector<std::string> names;
  for (const Column& other : tables.columns) names.push_back(other.name);
  throw BadInput(lacks_column(config.file, name, names));
}

const std::vector<double>& numbers(const Tables& tables, const Config& config,
                                   const std::string& name) {
  const Column& c = column(tables, config, name);
  if (c.type != Column::Type::kNumber)
    throw BadInput(
        fmt::format("{}: column '{}' holds texts, where numbers are needed", config.file, name));
  for (std::size_t r = 0; r < c.numbers.size(); ++r)
    if (std::isnan(c.numbers[r])) tables.refuse(r, name, "", "is missing");
  return c.numbers;
}

// Every column of numbers that has no other use.
std::vector<std::string> features_of(const Tables& table, const Config& config,
                                     const std::vector<std::string>& channels) {
  if (!config.features.empty()) return names_in(config.features, "problem.features");
  std::vector<std::string> names;
  for (const Column& c : table.columns)
    if (c.type == Column::Type::kNumber && c.name != config.agent && c.name != config.target &&
        c.name != config.fold && c.name != config.repeat &&
        std::find(channels.begin(), channels.end(), c.name) == channels.end())
      names.push_back(c.name);
  if (names.empty()) throw BadInput(fmt::format("{} has no column of numbers", config.file));
  return names;
}

// lambda^i evenly from .5 - delta / 2 to .5 + delta / 2; theta^i = (lambda^i, 1 - lambda^i).
std::vector<double> even_weights(std::size_t agents, double delta) {
  std::vector<double> theta;
  for (std::size_t i = 0; i < agents; ++i) {
    const double at = agents > 1 ? static_cast<double>(i) / static_cast<double>(agents - 1) : 0.5;
    const double lambda = 0.5 + delta * (at - 0.5);
    theta.insert(theta.end(), {lambda, 1 - lambda});
  }
  return theta;
}

// The rows of the chosen agents, agent after agent, that `keep` wants.
template <class Keep>
Rows::Data select(const Tables& table, const std::vector<std::string>& features,
                  const std::vector<std::string>& channels, const Config& config,
                  const std::vector<double>& theta, const std::vector<std::int32_t>& agents,
                  Keep keep) {
  Rows::Data data;
  data.d = static_cast<int>(features.size());
  data.k = static_cast<int>(channels.size());
  data.theta = theta;
  data.names.unknowns = features;
  std::vector<const std::vector<double>*> phi, c;
  for (const std::string& name : features) phi.push_back(&numbers(table, config, name));
  for (const std::string& name : channels) c.push_back(&numbers(table, config, name));
  const std::vector<double>* y =
      config.target.empty() ? nullptr : &numbers(table, config, config.target);
  const Column& owner = column(table, config, config.agent);
  auto rows = std::make_shared<std::vector<double>>();
  data.first = {0};
  for (std::size_t i = 0; i < agents.size(); ++i) {
    data.names.agents.push_back(owner.levels[static_cast<std::size_t>(agents[i])]);
    for (std::size_t r = 0; r < owner.codes.size(); ++r) {
      if (owner.codes[r] != agents[i] || !keep(r)) continue;
      for (const std::vector<double>* column : phi) rows->push_back(config.scale * (*column)[r]);
      double wanted = y != nullptr ? (*y)[r] : 0;
      for (std::size_t k = 0; k < c.size(); ++k) {
        data.c.push_back((*c[k])[r]);
        if (!theta.empty()) wanted += theta[i * c.size() + k] * (*c[k])[r];
      }
      data.y.push_back(wanted);
    }
    data.first.push_back(static_cast<std::int64_t>(data.y.size()));
    if (data.first[i] == data.first[i + 1])
      throw BadInput(fmt::format("{}: agent '{}' has no row left to learn from or to be scored on",
                                 config.file, data.names.agents.back()));
  }
  data.phi = std::move(rows);
  return data;
}

// A column of numbers 0, 1, … that deals rows out to replicates; without one all rows are 0.
class Numbered {
 public:
  Numbered(const Tables& tables, const Config& config, const std::string& name) {
    if (name.empty()) return;
    for (const double x : numbers(tables, config, name)) {
      if (!(x >= 0 && x < kMost && x == std::floor(x)))
        tables.refuse(of_row_.size(), name, to_text(x), "is not a number 0, 1, …");
      of_row_.push_back(static_cast<std::int64_t>(x));
      count_ = std::max(count_, of_row_.back() + 1);
    }
  }
  std::int64_t count() const { return count_; }
  std::int64_t at(std::size_t row) const { return of_row_.empty() ? 0 : of_row_[row]; }

 private:
  static constexpr double kMost = 1e6;
  std::vector<std::int64_t> of_row_;
  std::int64_t count_ = 1;
};

const Params<Config>& config_params() {
  static const Params<Config> kParams = {
      {"file", &Config::file, "the table: CSV, NPY, NPZ, LIBSVM, idx or LEAF", kPath},
      {"with", &Config::with, "more columns of the same rows, from another file", kPath},
      {"agent", &Config::agent, "the column that names the agent"},
      {"agents", &Config::agents, "so many agents, the first ones; 0: all",
       between(0, kMostAgents)},
      {"target", &Config::target, "the column to predict"},
      {"channels", &Config::channels,
       "instead: outcomes \"a,b\" that each agent weighs in its own way; with a target: "
       "what it is made of, with weights that are not stated"},
      {"weights", &Config::weights,
       "a CSV file with columns agent and channels: each agent's weights", kPath},
      {"delta_obj", &Config::delta_obj,
       "without such a file, of two channels: weights of the first evenly from .5 - "
       "delta_obj/2 to .5 + delta_obj/2",
       between(0, 100)},
      {"features", &Config::features, "columns to predict from; empty: all other numbers"},
      {"fold", &Config::fold,
       "a column of numbers 0, 1, …: replicate r is scored on the rows of fold r, and "
       "learns from the others"},
      {"repeat", &Config::repeat,
       "a column of numbers 0, 1, …: replicate r uses the rows of number r / folds only, "
       "such as those of one of several feature maps"},
      {"scale", &Config::scale, "features are multiplied by it", above(0)},
      {"ridge", &Config::ridge, "added to every A(s)", at_least(0)},
      {"order",
       &Config::once,
       {"random", "once"},
       "at random with replacement, or each row once, after which an agent is absent"},
  };
  return kParams;
}

// A file as the config has it.
class Source {
 public:
  explicit Source(const Config& config)
      : config_(checked(config)),
        table_(read(config)),
        channels_(names_in(config.channels, "problem.channels")),
        features_(features_of(table_, config, channels_)),
        fold_(table_, config, config.fold),
        repeat_(table_, config, config.repeat) {
    const Column& owner = column(table_, config, config.agent);
    const auto found = static_cast<std::int64_t>(owner.levels.size());
    if (config.agents > found)
      throw BadInput(
          fmt::format("problem.agents = {}, but {} has {}", config.agents, config.file, found));
    for (std::int32_t i = 0; i < (config.agents > 0 ? config.agents : found); ++i) {
      agents_.push_back(i);
      names_.push_back(owner.levels[static_cast<std::size_t>(i)]);
    }
  }

  Rows::Found found() const {
    return {.agents = std::ssize(agents_),
            .folds = fold_.count(),
            .repeats = repeat_.count(),
            .features = features_,
            .channels = channels_};
  }

  // The problem of a replicate, with as many folds and repeats as all files have.
  std::unique_ptr<Problem> make(std::uint32_t replicate, const Rows::Found& all,
                                const Rows::Place& place) const {
    const std::vector<double> theta = weights(place);
    const Rows::Form form = channels_.empty() ? Rows::Form::kFeatures : Rows::Form::kChannels;
    const Rows::Order order = config_.once ? Rows::Order::kOnce : Rows::Order::kRandom;
    const std::int64_t held = replicate % all.folds, number = replicate / all.folds % all.repeats;
    const auto chosen = [&](auto keep) {
      return select(table_, features_, channels_, config_, theta, agents_,
                    [&](std::size_t r) { return repeat_.at(r) == number && keep(r); });
    };
    auto rows = std::make_unique<Rows>(
        chosen([&](std::size_t r) { return all.folds == 1 || fold_.at(r) != held; }), order, form,
        config_.ridge, place);
    if (all.folds > 1) rows->score_on(chosen([&](std::size_t r) { return fold_.at(r) == held; }));
    return rows;
  }

 private:
  static const Config& checked(const Config& config) {
    if (config.file.empty())
      throw BadInput("problem.file is missing: a table, for example features.npy");
    if (config.target.empty() && config.channels.empty())
      throw BadInput(
          "problem.target or problem.channels is missing: the column to predict, or those "
          "it is made of");
    if (!config.target.empty() && !config.channels.empty() &&
        (!config.weights.empty() || config.delta_obj > 0))
      throw BadInput(
          "problem.target is what agents observe where their weights of problem.channels "
          "are not stated: leave out target, or weights and delta_obj");
    return config;
  }

  // Stated weights of the channels, by agent; none where there is a target.
  std::vector<double> weights(const Rows::Place& place) const {
    if (!config_.target.empty()) return {};
    if (!config_.weights.empty())
      return read_weights(config_.weights, config_.agent, channels_, names_, config_.file);
    if (channels_.size() != 2)
      throw BadInput("problem.delta_obj weighs two channels; others need problem.weights, a file");
    const auto own = std::ssize(names_);
    const std::vector<double> all = even_weights(
        static_cast<std::size_t>(place.agents < 0 ? own : place.agents), config_.delta_obj);
    return {all.begin() + 2 * place.first, all.begin() + 2 * (place.first + own)};
  }

  Config config_;
  Tables table_;
  std::vector<std::string> channels_, features_, names_;
  Numbered fold_, repeat_;
  std::vector<std::int32_t> agents_;
};

}  // namespace

Rows::Found Rows::find(const Values& values) {
  return Source(config_params().read(values)).found();
}

std::unique_ptr<Problem> Rows::at_site(const Values& values, std::uint32_t replicate,
                                       const Found& found, const Place& place) {
  return Source(config_params().read(values)).make(replicate, found, place);
}

ProblemKind Rows::kind() {
  return {"rows",
          "least squares on the rows of a table; with folds, errors are those of rows held out",
          config_params().table(), [](const Values& v, std::uint64_t, std::uint32_t replicate) {
            const Source source(config_params().read(v));
            return source.make(replicate, source.found(), {});
          }};
}

}  // namespace affpcl
