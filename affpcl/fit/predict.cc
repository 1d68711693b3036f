#include "affpcl/fit/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"

namespace affpcl {
namespace {

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

// Of a new row's target.
double variance(const LinearModel& m, const std::vector<double>& x) {
  double variance = m.s2;
  for (std::size_t r = 0; r < x.size() && !m.se.empty(); ++r) {
    if (m.cov.empty()) {
      variance += x[r] * x[r] * m.se[r] * m.se[r];
    } else {
      double sum = 0;
      for (std::size_t c = 0; c < x.size(); ++c) sum += m.cov[r * x.size() + c] * x[c];
      variance += x[r] * sum;
    }
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

RowPredictor::RowPredictor(const Model& model) : model_(model) {
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

const std::vector<double>& RowPredictor::weights(const AgentModel* agent) const {
  return agent == nullptr ? mean_weights_ : agent->weights;
}

const LinearModel& RowPredictor::channel(const AgentModel* agent, std::size_t c) const {
  return agent == nullptr ? model_.channels[c].centre : agent->channels[c];
}

std::vector<double> RowPredictor::channels(const AgentModel* agent,
                                           const std::vector<double>& x) const {
  std::vector<double> all;
  for (std::size_t c = 0; c < model_.channels.size(); ++c)
    all.push_back(inner(channel(agent, c).x, x));
  return all;
}

double RowPredictor::number(const AgentModel* agent, const std::vector<double>& x) const {
  if (model_.channels.size() == 1) return inner(channel(agent, 0).x, x);
  return inner(weights(agent), channels(agent, x));
}

RowPredictor::Interval RowPredictor::interval(const AgentModel* agent,
                                              const std::vector<double>& x) const {
  std::vector<double> deviations;
  for (std::size_t c = 0; c < model_.channels.size(); ++c)
    deviations.push_back(std::sqrt(variance(channel(agent, c), x)));
  const double deviation =
      deviations.size() > 1 ? std::sqrt(weighed_variance(weights(agent), deviations, model_.noise))
                            : deviations[0];
  return {number(agent, x), normal_limit((1 - kConfidence) / 2) * deviation};
}

std::vector<double> RowPredictor::probabilities(const AgentModel* agent,
                                                const std::vector<double>& x) const {
  return class_probabilities(channels(agent, x), model_.encoding.classes.size());
}

namespace {

struct Score {
  double n = 0, loss = 0, y1 = 0, y2 = 0, right = 0;
};

class Predictor {
 public:
  Predictor(const Model& model, Predictions& out)
      : rows_(model), e_(model.encoding), out_(out), x_(e_.dim(), 1.0) {}

  void file(const std::string& path, bool first, const std::vector<std::string>& header) {
    CsvReader reader(path);
    if (!first && reader.header() != header)
      throw BadInput(fmt::format("{} has other columns than the first file", path));
    for (const char* name : {"prediction", "prediction_lo", "prediction_hi", "probability"})
      if (std::find(reader.header().begin(), reader.header().end(), name) != reader.header().end())
        throw BadInput(fmt::format("{} has a column '{}' already; rename it first", path, name));
    std::vector<std::size_t> at;
    for (const Source& s : e_.sources) at.push_back(reader.column(s.name));
    const auto optional = [&](const std::string& name) {
      const auto found = std::find(reader.header().begin(), reader.header().end(), name);
      return found == reader.header().end()
                 ? -1
                 : static_cast<std::ptrdiff_t>(found - reader.header().begin());
    };
    const std::ptrdiff_t agent = e_.agent_column.empty()
                                     ? optional("agent")
                                     : static_cast<std::ptrdiff_t>(reader.column(e_.agent_column));
    std::vector<std::ptrdiff_t> target;
    for (const std::string& name : e_.outcomes.empty() ? std::vector{e_.target} : e_.outcomes)
      target.push_back(optional(name));
    const char separator = reader.separator();
    if (first) {
      for (const std::string& name : reader.header())
        put_field(out_.csv, name, separator), out_.csv += separator;
      for (const char* name : {"prediction", "prediction_lo", "prediction_hi"}) {
        if (!e_.classes.empty() && std::string_view(name) == "prediction_lo") {
          out_.csv += separator, out_.csv += "probability";
          break;
        }
        if (std::string_view(name) != "prediction") out_.csv += separator;
        out_.csv += name;
      }
      out_.csv += '\n';
    }
    const std::string by_file = file_agent(path);
    const std::int64_t before = out_.rows;
    while (reader.next()) {
      ++out_.rows;
      for (std::string_view f : reader.fields())
        put_field(out_.csv, f, separator), out_.csv += separator;
      const std::string name =
          agent < 0 ? by_file : std::string(reader.fields()[static_cast<std::size_t>(agent)]);
      row(reader, at, name, target, separator);
      out_.csv += '\n';
    }
    if (out_.rows == before) throw BadInput(fmt::format("{} has a header but no rows", path));
  }

  void finish() {
    out_.scored = static_cast<std::int64_t>(score_.n);
    if (score_.n == 0) return;
    out_.loss = score_.loss / score_.n;
    out_.accuracy = score_.right / score_.n;
    const double variance = score_.y2 / score_.n - score_.y1 / score_.n * score_.y1 / score_.n;
    out_.r2 = 1 - out_.loss / variance;
    std::sort(out_.unseen.begin(), out_.unseen.end());
  }

 private:
  // The number to be predicted, where the data has it.
  static std::optional<double> truth(const CsvReader& reader,
                                     const std::vector<std::ptrdiff_t>& target,
                                     const std::vector<double>& weights) {
    double sum = 0;
    for (std::size_t k = 0; k < target.size(); ++k) {
      if (target[k] < 0) return {};
      const auto value = parse_number(reader.fields()[static_cast<std::size_t>(target[k])]);
      if (!value) return {};
      sum += *value * (weights.empty() ? 1 : weights[k]);
    }
    return sum;
  }

  void row(const CsvReader& reader, const std::vector<std::size_t>& at, const std::string& name,
           const std::vector<std::ptrdiff_t>& target, char separator) {
    const AgentModel* const known = rows_.agent(name);
    if (known == nullptr) {
      ++out_.unseen_rows;
      if (++strangers_[name] == 1) out_.unseen.push_back(name);
    }
    bool blank = false;
    std::size_t j = 1;
    for (std::size_t s = 0; s < at.size(); ++s) {
      const Source& source = e_.sources[s];
      const std::string_view field = reader.fields()[at[s]];
      const bool missing = is_missing(field);
      if (missing && e_.missing == Missing::kError)
        reader.refuse(at[s], "is missing, and the model was fitted with --missing error");
      blank |= missing && e_.missing == Missing::kDrop;
      out_.filled += missing && e_.missing == Missing::kMean;
      if (source.levels.empty()) {
        const std::optional<double> number = parse_number(field);
        if (!number && !missing) reader.refuse(at[s], "is not a number");
        x_[j++] = number ? (*number - source.mean[0]) / source.sd[0] : 0.0;
      } else {
        const auto level = std::find(source.levels.begin(), source.levels.end(), field);
        const bool is_new = level == source.levels.end();
        out_.new_texts += is_new && !missing;
        for (std::size_t l = 1; l < source.levels.size(); ++l)
          x_[j++] = is_new ? 0.0
                           : ((*level == source.levels[l] ? 1.0 : 0.0) - source.mean[l - 1]) /
                                 source.sd[l - 1];
      }
    }
    if (blank) {
      ++out_.blank;
      out_.csv += separator;
      if (e_.classes.empty()) out_.csv += separator;
      return;
    }
    if (e_.classes.empty()) {
      const auto [y, half] = rows_.interval(known, x_);
      if (std::isnan(half)) {
        fmt::format_to(std::back_inserter(out_.csv), "{}{}{}", y, separator, separator);
        return;
      }
      fmt::format_to(std::back_inserter(out_.csv), "{}{}{}{}{}", y, separator, y - half, separator,
                     y + half);
      if (const std::optional<double> t = truth(reader, target, rows_.weights(known)))
        score_.n += 1, score_.loss += (*t - y) * (*t - y), score_.y1 += *t, score_.y2 += *t * *t;
      return;
    }
    const std::vector<double> p = rows_.probabilities(known, x_);
    const auto top = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    put_field(out_.csv, e_.classes[top], separator);
    fmt::format_to(std::back_inserter(out_.csv), "{}{}", separator, p[top]);
    if (target[0] < 0) return;
    // Numbers that are classes are the same however they are written.
    const std::string_view text = reader.fields()[static_cast<std::size_t>(target[0])];
    const std::optional<double> t = parse_number(text);
    for (std::size_t c = 0; c < e_.classes.size(); ++c)
      if (text == e_.classes[c] || (t && t == parse_number(e_.classes[c])))
        score_.n += 1, score_.loss -= std::log(p[c]), score_.right += c == top;
  }

  RowPredictor rows_;
  const Encoding& e_;
  Predictions& out_;
  std::vector<double> x_;
  std::unordered_map<std::string, std::int64_t> strangers_;
  Score score_;
};

}  // namespace

Predictions predict(const Model& model, const std::vector<std::string>& files) {
  Predictions out;
  Predictor predictor(model, out);
  std::vector<std::string> header;
  for (std::size_t f = 0; f < files.size(); ++f) {
    if (f == 0) header = CsvReader(files[0]).header();
    predictor.file(files[f], f == 0, header);
  }
  predictor.finish();
  return out;
}

}  // namespace affpcl
