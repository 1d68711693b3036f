#include "affpcl/fit/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/data/tables.h"
#include "affpcl/mixed/glmm_solver.h"

namespace affpcl {
namespace {

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

double quadratic(const std::vector<double>& A, const std::vector<double>& x, double from = 0) {
  for (std::size_t r = 0; r < x.size(); ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < x.size(); ++c) sum += A[r * x.size() + c] * x[c];
    from += x[r] * sum;
  }
  return from;
}

// Of x'coefficients, beside the noise.
double variance(const LinearModel& m, const std::vector<double>& typical_cov,
                const std::vector<double>& x, double noise) {
  double variance = noise;
  if (!m.cov.empty()) {
    variance = quadratic(m.cov, x, noise);
  } else if (!m.near_cov.weights.empty()) {
    const NearCovariance& near = m.near_cov;
    variance += near.scale * quadratic(typical_cov, x);
    for (std::size_t k = 0; k < near.weights.size(); ++k) {
      double along = 0;
      for (std::size_t j = 0; j < x.size(); ++j) along += near.directions[k * x.size() + j] * x[j];
      variance += near.weights[k] * along * along;
    }
  } else {  // a file of an older version
    for (std::size_t j = 0; j < m.se.size(); ++j) variance += x[j] * x[j] * m.se[j] * m.se[j];
  }
  return variance < 0 ? 0 : variance;  // NaN where it is not known
}

void put_field(std::string& out, std::string_view field, char separator) {
  const bool plain = field.find_first_of("\"\n\r") == std::string_view::npos &&
                     field.find(separator) == std::string_view::npos &&
                     (field.empty() || (field.front() != ' ' && field.back() != ' '));
  if (plain) {
    out += field;
    return;
  }
  out += '"';
  for (char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  out += '"';
}

}  // namespace

RowPredictor::RowPredictor(const Model& model, double level)
    : model_(model),
      likelihood_(std::make_shared<Likelihood>(
          model.encoding.family, std::max<std::size_t>(model.encoding.classes.size(), 2))) {
  for (std::size_t g = 0; g < model.levels.names.size(); ++g)
    levels_[model.levels.names[g]] = static_cast<int>(g);
  if (!(level > 0 && level < 1))
    throw BadInput(fmt::format("`level` {} is no coverage: above 0 and below 1", level));
  limit_ = normal_limit((1 - level) / 2);
  for (const ChannelModel& c : model.channels) {
    unseen_.push_back(c.centre);
    for (std::size_t j = 0; j < c.pooled.size(); ++j)
      unseen_.back().x[j] += c.pooled_weight * (c.pooled[j] - c.centre.x[j]);
  }
  mean_weights_.assign(model.encoding.outcomes.size(), 0.0);
  for (const AgentModel& a : model.agents) {
    agents_[a.name] = &a;
    for (std::size_t k = 0; k < mean_weights_.size(); ++k)
      mean_weights_[k] += a.weights[k] / static_cast<double>(model.agents.size());
  }
}

const AgentModel* RowPredictor::agent(const std::string& name) const {
  const auto known = agents_.find(name);
  return known == agents_.end() ? nullptr : known->second;
}

int RowPredictor::level(const std::string& name) const {
  const auto known = levels_.find(name);
  return known == levels_.end() ? kNewLevel : known->second;
}

std::int64_t RowPredictor::encode(std::span<const double> row, std::vector<double>& x,
                                  FunctionRef<void(const Source&)> refuse) const {
  const Encoding& e = model_.encoding;
  std::int64_t missing = 0;
  x.assign(1, 1.0);
  for (std::size_t s = 0; s < e.sources.size(); ++s) {
    const Source& source = e.sources[s];
    const double value = row[s];
    const bool gap = std::isnan(value), text = !source.levels.empty();
    missing += gap;
    if (gap && source.missing == Missing::kError) refuse(source);
    const double absent = source.missing == Missing::kDrop ? std::nan("") : 0.0;
    for (std::size_t w = 0; w < source.own_width(); ++w) {
      const double number = text ? value == static_cast<double>(w + 1) : value;
      const bool as_mean = text && value == kNewText;
      x.push_back(gap ? absent : as_mean ? 0.0 : (number - source.mean[w]) / source.sd[w]);
    }
    if (source.indicator) x.push_back(((gap ? 1 : 0) - source.mean.back()) / source.sd.back());
  }
  return missing;
}

const std::vector<double>& RowPredictor::weights(const AgentModel* agent) const {
  return agent == nullptr ? mean_weights_ : agent->weights;
}

double RowPredictor::least() const {
  return model_.encoding.numeric() ? -std::numeric_limits<double>::infinity() : 0;
}

double RowPredictor::loss(double y, double trials, double mean) const {
  const double means[] = {model_.encoding.family == Family::kBinomial ? 1 - mean : mean, mean};
  return likelihood_->loss(model_.psi, y, trials, means);
}

const LinearModel& RowPredictor::channel(const AgentModel* agent, std::size_t c) const {
  return agent == nullptr ? unseen_[c] : agent->channels[c];
}

std::vector<double> RowPredictor::channels(const AgentModel* agent,
                                           const std::vector<double>& x) const {
  std::vector<double> all;
  for (std::size_t c = 0; c < model_.channels.size(); ++c)
    all.push_back(inner(channel(agent, c).x, x));
  return all;
}

std::vector<double> RowPredictor::mean(const AgentModel* agent, const std::vector<double>& x,
                                       Offsets offsets) const {
  std::vector<double> eta = channels(agent, x), variances;
  if (!offsets.empty()) {
    const std::vector<double> more =
        multiply(likelihood_->basis(), predictor_offsets(model_.encoding, offsets));
    for (std::size_t c = 0; c < eta.size(); ++c) eta[c] += more[c];
  }
  for (std::size_t c = 0; c < eta.size(); ++c)
    variances.push_back(variance(channel(agent, c), model_.channels[c].typical_cov, x, 0));
  return expected_mean(*likelihood_, model_.psi, eta, variances);
}

double RowPredictor::level_variance(const AgentModel* agent, const std::vector<double>& x,
                                    int level) const {
  double variance = model_.levels.variance;
  if (level != kNewLevel) {
    const double se = model_.levels.se[static_cast<std::size_t>(level)];
    variance = se * se;
    if (agent != nullptr && agent->level == level) variance += 2 * inner(agent->level_cov, x);
  }
  return variance;
}

double RowPredictor::number(const AgentModel* agent, const std::vector<double>& x, Offsets offsets,
                            int level) const {
  if (model_.encoding.generalised()) return mean(agent, x, offsets).back();
  if (model_.channels.size() > 1) return inner(weights(agent), channels(agent, x));
  const double effect =
      level == kNewLevel ? 0 : model_.levels.effect[static_cast<std::size_t>(level)];
  return inner(channel(agent, 0).x, x) + (offsets.empty() ? 0 : offsets[0]) + effect;
}

RowPredictor::Interval RowPredictor::interval(const AgentModel* agent, const std::vector<double>& x,
                                              Offsets offsets, int level) const {
  const double y = number(agent, x, offsets, level);
  if (model_.encoding.generalised()) {
    // The target's variance at the mean, and that of the linear predictor by the mean's slope.
    const bool log = !model_.encoding.numeric(),
               trials = model_.encoding.family == Family::kBinomial;
    const double slope = trials ? y * (1 - y) : log ? y : 1;
    const double of_predictor = variance(channel(agent, 0), model_.channels[0].typical_cov, x, 0);
    const double total = likelihood_->variance(model_.psi, y) + slope * slope * of_predictor;
    return {y, limit_ * std::sqrt(total)};
  }
  std::vector<double> deviations;
  for (std::size_t c = 0; c < model_.channels.size(); ++c)
    deviations.push_back(std::sqrt(
        variance(channel(agent, c), model_.channels[c].typical_cov, x, channel(agent, c).s2)));
  if (model_.encoding.leveled())
    deviations[0] =
        std::sqrt(std::max(0.0, deviations[0] * deviations[0] + level_variance(agent, x, level)));
  const double deviation =
      deviations.size() > 1 ? std::sqrt(weighed_variance(weights(agent), deviations, model_.noise))
                            : deviations[0];
  return {y, limit_ * deviation};
}

std::vector<double> RowPredictor::probabilities(const AgentModel* agent,
                                                const std::vector<double>& x,
                                                Offsets offsets) const {
  if (model_.encoding.generalised()) return mean(agent, x, offsets);
  return class_probabilities(channels(agent, x), model_.encoding.classes.size());
}

namespace {

struct Score {
  double n = 0, loss = 0, y1 = 0, y2 = 0, right = 0;
};

// The rows as they came, for files of CSV; read again, since tables keep numbers, not their text.
class Echo {
 public:
  Echo(const std::vector<std::string>& files, const ReadOptions& reading)
      : files_(files), reading_(reading) {
    open(0);
  }

  const std::vector<std::string>& header() const { return reader_->header(); }
  char separator() const { return reader_->separator(); }
  char decimal() const { return reader_->decimal(); }

  void put_row(std::string& out, char separator) {
    while (!reader_->next())
      if (!open(at_ + 1)) throw BadInput(fmt::format("{} changed while it was read", files_[at_]));
    for (std::string_view field : reader_->fields())
      put_field(out, field, separator), out += separator;
  }

 private:
  bool open(std::size_t file) {
    if (file == files_.size()) return false;
    at_ = file;
    const std::vector<std::string> before =
        reader_ ? reader_->header() : std::vector<std::string>();
    reader_ = std::make_unique<CsvReader>(files_[file], reading_);
    if (file > 0 && reader_->header() != before)
      throw BadInput(fmt::format("{} has other columns than the first file", files_[file]));
    return true;
  }

  const std::vector<std::string>& files_;
  ReadOptions reading_;
  std::size_t at_ = 0;
  std::unique_ptr<CsvReader> reader_;
};

class Predictor {
 public:
  Predictor(const Model& model, const std::vector<std::string>& files,
            const std::vector<std::string>& beside, double level)
      : rows_(model, level),
        e_(model.encoding),
        has_agents_(!model.agents.empty()),
        row_(e_.sources.size()) {
    read(files, beside);
    // A site that is one agent wrote a model of that agent alone, whose rows no column names.
    if (agent_ == nullptr && model.agents.size() == 1)
      file_agents_.assign(file_agents_.size(), model.agents[0].name);
    if (std::all_of(files.begin(), files.end(), is_csv))
      echo_ = std::make_unique<Echo>(files, e_.reading);
    if (echo_) separator_ = echo_->separator(), decimal_ = echo_->decimal();
  }

  Predictions run() {
    put_header();
    for (std::size_t r = 0; r < tables_.rows; ++r) {
      if (r % 1024 == 0) stop_if_asked();
      const std::string name(agent_of(r));
      if (echo_) echo_->put_row(out_.csv, separator_);
      if (name_agents_) put_field(out_.csv, name, separator_), out_.csv += separator_;
      row(r, name);
      out_.csv += '\n';
    }
    finish();
    return std::move(out_);
  }

 private:
  void read(const std::vector<std::string>& files, const std::vector<std::string>& beside) {
    const std::vector<std::string> header = tables_header(files, beside, e_.reading);
    const auto has = [&](std::string_view name) {
      return std::find(header.begin(), header.end(), name) != header.end();
    };
    for (const char* name : {"prediction", "prediction_lo", "prediction_hi", "probability"})
      if (has(name))
        throw BadInput(
            fmt::format("{} has a column '{}' already; rename it first", files[0], name));
    TableOptions needed{.reading = e_.reading};
    refuse_lacking(files[0], header);
    const auto need = [&](const std::string& name, std::vector<std::string>& as) {
      if (!has(name)) throw BadInput(lacks_column(files[0], name, header));
      needed.columns.push_back(name);
      as.push_back(name);
    };
    for (const Source& s : e_.sources) {
      const bool number = s.levels.empty() && s.dates == DateOrder::kNone;
      need(s.name, number ? needed.number : needed.text);
    }
    std::string agent = agent_column(has);
    if (agent.empty() && has("agent") && !has_source("agent")) agent = "agent";
    if (!agent.empty()) need(agent, needed.text);
    for (const std::string& name : e_.offsets()) need(name, needed.number);
    if (e_.leveled()) need(e_.level_column(), needed.text);
    const bool trials = !e_.trials.empty() && has(e_.trials);
    if (trials) need(e_.trials, needed.number);
    const std::vector<std::string> targets =
        e_.outcomes.empty() ? std::vector{e_.target} : e_.outcomes;
    const bool scored = std::all_of(targets.begin(), targets.end(), has);
    for (const std::string& name : targets)
      if (scored) need(name, needed.text);
    tables_ = read_tables(files, beside, needed);
    for (const Source& s : e_.sources) sources_.push_back(tables_.find(s.name));
    for (const std::string& name : targets)
      if (scored) targets_.push_back(tables_.find(name));
    agent_ = agent.empty() ? nullptr : tables_.find(agent);
    for (const std::string& name : e_.offsets()) offset_columns_.push_back(tables_.find(name));
    level_ = e_.leveled() ? tables_.find(e_.level_column()) : nullptr;
    trials_ = trials ? tables_.find(e_.trials) : nullptr;
    for (const DataTable& part : tables_.parts) file_agents_.push_back(file_agent(part.path));
  }

  // A centre alone has no agents: it needs no names of them.
  template <class Has>
  std::string agent_column(Has has) const {
    return has_agents_ || has(e_.agent_column) ? e_.agent_column : std::string();
  }

  // All columns that are missing, at once.
  void refuse_lacking(const std::string& path, const std::vector<std::string>& header) const {
    std::vector<std::string> lacking;
    const auto look_in = [&](std::string_view name) {
      return std::find(header.begin(), header.end(), name) != header.end();
    };
    const auto look_for = [&](const std::string& name) {
      if (!look_in(name)) lacking.push_back(name);
    };
    for (const Source& s : e_.sources) look_for(s.name);
    const std::string agent = agent_column(look_in);
    if (!agent.empty()) look_for(agent);
    for (const std::string& name : e_.offsets()) look_for(name);
    if (e_.leveled()) look_for(e_.level_column());
    if (lacking.size() < 2) return;  // the nearest name is the better hint
    throw BadInput(fmt::format("{} lacks {} columns that the model needs: '{}'", path,
                               lacking.size(), join(lacking, "', '")));
  }

  bool has_source(std::string_view name) const {
    return std::any_of(e_.sources.begin(), e_.sources.end(),
                       [&](const Source& s) { return s.name == name; });
  }

  std::string_view agent_of(std::size_t row) const {
    return agent_ != nullptr ? text(*agent_, row) : file_agents_[tables_.part_of(row)];
  }

  void put_header() {
    const std::vector<std::string> kept = echo_ ? echo_->header() : std::vector<std::string>();
    for (const std::string& name : kept)
      put_field(out_.csv, name, separator_), out_.csv += separator_;
    // An agent that is known from beside the rows kept; a file's name is not repeated.
    const std::string agent = agent_ != nullptr ? agent_->name : "agent";
    name_agents_ =
        !echo_ || (agent_ != nullptr && std::find(kept.begin(), kept.end(), agent) == kept.end());
    if (name_agents_) put_field(out_.csv, agent, separator_), out_.csv += separator_;
    std::vector<std::string_view> predicted = {"prediction", "probability"};  // of a class
    if (e_.classes.empty()) predicted = {"prediction", "prediction_lo", "prediction_hi"};
    out_.csv += join(predicted, {&separator_, 1}) + '\n';
    if (e_.classes.empty() || !e_.generalised()) return;
    out_.csv.pop_back();
    for (const std::string& name : e_.classes)
      out_.csv += separator_, put_field(out_.csv, "probability_" + name, separator_);
    out_.csv += '\n';
  }

  void finish() {
    out_.rows = static_cast<std::int64_t>(tables_.rows);
    out_.scored = static_cast<std::int64_t>(score_.n);
    if (score_.n == 0) return;
    out_.loss = score_.loss / score_.n;
    out_.accuracy = score_.right / score_.n;
    const double variance = score_.y2 / score_.n - score_.y1 / score_.n * score_.y1 / score_.n;
    out_.r2 = 1 - out_.loss / variance;
    std::sort(out_.unseen.begin(), out_.unseen.end());
  }

  void row(std::size_t r, const std::string& name) {
    const AgentModel* const known = rows_.agent(name);
    if (known == nullptr) {
      ++out_.unseen_rows;
      if (++strangers_[name] == 1) out_.unseen.push_back(name);
    }
    for (std::size_t s = 0; s < sources_.size(); ++s)
      row_[s] = value(e_.sources[s], *sources_[s], r);
    const std::int64_t missing = rows_.encode(row_, x_, [&](const Source& source) {
      tables_.refuse(r, source.name, "",
                     "is missing, and the model was fitted with `missing error`");
    });
    if (!take_offsets(r) ||
        std::any_of(x_.begin(), x_.end(), [](double v) { return std::isnan(v); })) {
      ++out_.blank;
      out_.csv += separator_;
      if (e_.classes.empty()) out_.csv += separator_;
      if (!e_.classes.empty() && e_.generalised()) out_.csv.append(e_.classes.size(), separator_);
      return;
    }
    out_.filled += missing;
    if (e_.classes.empty()) {
      put_number(r, rows_.weights(known), rows_.interval(known, x_, offsets_, level(r)));
    } else {
      put_class(r, rows_.probabilities(known, x_, offsets_));
    }
  }

  int level(std::size_t r) {
    if (level_ == nullptr) return RowPredictor::kNewLevel;
    const std::string name(text(*level_, r));
    const int level = rows_.level(name);
    if (level == RowPredictor::kNewLevel) {
      ++out_.unseen_level_rows;
      if (++new_levels_[name] == 1) out_.unseen_levels.push_back(name);
    }
    return level;
  }

  // The row's offsets; false where one is missing and such rows have no prediction.
  bool take_offsets(std::size_t r) {
    offsets_.clear();
    for (const Column* c : offset_columns_) {
      const double v = c->numbers[r];
      if (std::isnan(v) && e_.missing == Missing::kDrop) return false;
      if (std::isnan(v))
        tables_.refuse(r, c->name, "", "is missing, and is the offset of every prediction");
      if (!std::isfinite(linked(e_, v)))
        tables_.refuse(r, c->name, fmt::to_string(v), "is no offset");
      offsets_.push_back(v);
    }
    return true;
  }

  // Of one row, as RowPredictor::encode wants it.
  double value(const Source& source, const Column& c, std::size_t r) {
    if (source.dates != DateOrder::kNone) return day(source, c, r);
    if (source.levels.empty()) return c.numbers[r];
    if (c.codes[r] < 0) return std::nan("");
    const auto level = std::find(source.levels.begin(), source.levels.end(), text(c, r));
    if (level != source.levels.end()) return static_cast<double>(level - source.levels.begin());
    if (out_.new_texts++ == 0)
      out_.first_new_text = tables_.complaint(r, c.name, text(c, r), "was not in the fitted rows");
    return RowPredictor::kNewText;
  }

  double day(const Source& source, const Column& c, std::size_t r) const {
    if (c.codes[r] < 0) return std::nan("");
    if (const auto found = parse_date(text(c, r), source.dates)) return *found;
    tables_.refuse(
        r, c.name, text(c, r),
        fmt::format("is no date such as the model was fitted on ({})", name_of(source.dates)));
  }

  // A number with the decimal mark of the rows beside it.
  void put_decimal(double v) {
    std::string number = fmt::to_string(v);
    if (decimal_ != '.') std::replace(number.begin(), number.end(), '.', decimal_);
    put_field(out_.csv, number, separator_);
  }

  // A prediction with its interval, where there is one, and its error where the row has the target.
  void put_number(std::size_t r, const std::vector<double>& weights,
                  RowPredictor::Interval interval) {
    const auto [y, half] = interval;
    put_decimal(y);
    out_.csv += separator_;
    if (!std::isnan(half)) put_decimal(std::max(y - half, rows_.least()));
    out_.csv += separator_;
    if (!std::isnan(half)) put_decimal(y + half);
    double truth = targets_.empty() ? std::nan("") : 0;
    for (std::size_t k = 0; k < targets_.size(); ++k)
      truth += parse_number(text(*targets_[k], r), targets_[k]->decimal).value_or(std::nan("")) *
               (weights.empty() ? 1 : weights[k]);
    const double trials = trials_ == nullptr ? 1 : trials_->numbers[r];
    if (std::isnan(truth) || std::isnan(trials)) return;
    score_.n += 1, score_.y1 += truth, score_.y2 += truth * truth;
    score_.loss += e_.numeric() ? (truth - y) * (truth - y) : rows_.loss(truth, trials, y);
  }

  void put_class(std::size_t r, const std::vector<double>& p) {
    const auto top = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    put_field(out_.csv, e_.classes[top], separator_);
    out_.csv += separator_, put_decimal(p[top]);
    for (std::size_t c = 0; c < p.size() && e_.generalised(); ++c)
      out_.csv += separator_, put_decimal(p[c]);
    const std::string_view truth = targets_.empty() ? "" : text(*targets_[0], r);
    if (truth.empty()) return;
    // Numbers that are classes are the same however they are written.
    const std::optional<double> t = parse_number(truth, targets_[0]->decimal);
    for (std::size_t c = 0; c < e_.classes.size(); ++c)
      if (truth == e_.classes[c] || (t && t == parse_number(e_.classes[c])))
        score_.n += 1, score_.loss -= std::log(p[c]), score_.right += c == top;
  }

  static std::string_view text(const Column& c, std::size_t row) {
    return c.codes[row] < 0 ? std::string_view() : c.levels[static_cast<std::size_t>(c.codes[row])];
  }

  RowPredictor rows_;
  const Encoding& e_;
  bool has_agents_;
  Predictions out_;
  Tables tables_;
  std::vector<const Column*> sources_;
  std::vector<const Column*> targets_;  // the target, or the outcomes; empty: not in the data
  std::vector<const Column*> offset_columns_;
  const Column *trials_ = nullptr, *level_ = nullptr;
  const Column* agent_ = nullptr;         // null: one agent a file,
  std::vector<std::string> file_agents_;  // called so
  bool name_agents_ = false;              // in a column of the output
  std::unique_ptr<Echo> echo_;
  char separator_ = ',', decimal_ = '.';
  std::vector<double> row_, x_, offsets_;
  std::unordered_map<std::string, std::int64_t> strangers_, new_levels_;
  Score score_;
};

}  // namespace

Predictions predict(const Model& model, const std::vector<std::string>& files,
                    const std::vector<std::string>& beside, double level) {
  const InputScope once;
  return Predictor(model, files, beside, level).run();
}

}  // namespace affpcl
