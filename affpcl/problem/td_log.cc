#include "affpcl/problem/td_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"
#include "affpcl/data/weights.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Texts in the order they appear, each with its number.
class Numbering {
 public:
  int operator()(std::string_view text) {
    const auto [entry, fresh] =
        numbers_.try_emplace(std::string(text), static_cast<int>(all_.size()));
    if (fresh) all_.emplace_back(text);
    return entry->second;
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<std::string> all_;
};

double number_in(const CsvReader& in, std::size_t column) {
  const std::optional<double> number = parse_number(in.fields()[column], in.decimal());
  if (!number) in.refuse(column, "is not a number");
  return *number;
}

bool yes_in(const CsvReader& in, std::size_t column) {
  std::string text(in.fields()[column]);
  for (char& x : text)
    if (x >= 'A' && x <= 'Z') x = static_cast<char>(x - 'A' + 'a');
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no" || is_missing(text)) return false;
  const std::optional<double> number = parse_number(text);
  if (!number || (*number != 0 && *number != 1))
    in.refuse(column, "is neither 1, true, yes nor 0, false, no");
  return *number == 1;
}

double squared_norm(const double* v, int n) { return std::inner_product(v, v + n, v, 0.0); }

}  // namespace

const Params<TdLog::Config>& TdLog::params() {
  static const Params<Config> kParams = {
      {"file", &Config::file,
       "a CSV log of transitions instead of generated chains; each agent's own policy acted",
       kPath},
      {"agent", &Config::agent, "file: the column that names the agent"},
      {"state", &Config::state, "file: the column of states, by name"},
      {"next_state", &Config::next_state,
       "file: the column of next states; may be blank where the episode ends"},
      {"features", &Config::features,
       "file: numeric columns \"a,b\" for phi instead of states; the next are next_a, next_b"},
      {"reward", &Config::reward, "file: the column of rewards"},
      {"channels", &Config::channels,
       "file: numeric columns \"c1,c2\" that rewards are made of, r = c' theta"},
      {"weights", &Config::weights,
       "a CSV file with columns agent and channels: each agent's theta, instead of rewards", kPath},
      {"done", &Config::done,
       "file: the column that is 1, true or yes where the episode ends; it may be lacking"},
      {"order", &Config::order,
       "file: an agent's rows one after the other and again; once, and then it is absent; or "
       "at random with replacement"},
      {"short",
       &Config::drop_short,
       {"refuse", "drop"},
       "file: agents with a single row are refused, or dropped"},
      {"gamma", &Config::gamma, "discount of the future, below 1", between(0, 1)},
  };
  return kParams;
}

TdLog::TdLog(const Config& config) : config_(config) {
  if (!(config.gamma >= 0 && config.gamma < 1))
    throw BadInput(
        fmt::format("gamma = {} is not allowed: it must be from 0 to below 1", config.gamma));
  const Config usual;
  if (!named_states() && (config.state != usual.state || config.next_state != usual.next_state))
    throw BadInput("problem.features takes the place of states: leave out state and next_state");
  if (!config.weights.empty() && config.channels.empty())
    throw BadInput("problem.weights needs problem.channels, the columns that are weighted");
  if (!config.weights.empty() && config.reward != usual.reward)
    throw BadInput("problem.weights takes the place of rewards: leave out reward");
  std::vector<std::int32_t> owner;  // of each row
  read(owner);
  sort_by_agent(owner);
  if (!config.weights.empty()) weigh_rewards(names_in(config.channels, "problem.channels"));
}

void TdLog::read(std::vector<std::int32_t>& owner) {
  CsvReader in(config_.file);
  const auto columns = [&](const std::vector<std::string>& names, const char* prefix) {
    std::vector<std::size_t> indices;
    for (const std::string& name : names) indices.push_back(in.column(prefix + name));
    return indices;
  };
  const std::vector<std::string> features = names_in(config_.features, "problem.features"),
                                 channels = names_in(config_.channels, "problem.channels");
  const std::vector<std::size_t> phi = columns(features, ""), next_phi = columns(features, "next_"),
                                 c = columns(channels, "");
  const std::size_t agent = in.column(config_.agent);
  const std::size_t state = named_states() ? in.column(config_.state) : 0;
  const std::size_t next = named_states() ? in.column(config_.next_state) : 0;
  const bool rewarded = config_.weights.empty();
  const std::size_t reward = rewarded ? in.column(config_.reward) : 0;
  const bool marked = config_.done != Config().done ||
                      std::count(in.header().begin(), in.header().end(), config_.done) > 0;
  const std::size_t done = marked ? in.column(config_.done) : 0;

  Numbering agents, states;
  std::unordered_map<std::uint64_t, int> pairs;
  while (in.next()) {
    if (is_missing(in.fields()[agent])) in.refuse(agent, "does not name an agent");
    owner.push_back(agents(in.fields()[agent]));
    const bool end = marked && yes_in(in, done);
    if (named_states()) {
      if (is_missing(in.fields()[state])) in.refuse(state, "does not name a state");
      if (!end && is_missing(in.fields()[next]))
        in.refuse(next, "does not name a state, though the episode goes on");
      state_.push_back(states(in.fields()[state]));
      next_.push_back(end ? kEnd : states(in.fields()[next]));
      const auto pair = static_cast<std::uint64_t>(state_.back()) << 32 |
                        static_cast<std::uint64_t>(next_.back() + 1);
      cell_.push_back(pairs.try_emplace(pair, static_cast<int>(pairs.size())).first->second);
    }
    for (std::size_t column : phi) phi_.push_back(number_in(in, column));
    for (std::size_t column : next_phi) next_phi_.push_back(end ? 0 : number_in(in, column));
    for (std::size_t column : c) c_.push_back(number_in(in, column));
    r_.push_back(rewarded ? number_in(in, reward) : 0);
  }
  if (owner.empty()) throw BadInput(fmt::format("{} has a header but no rows", config_.file));

  names_.agents = agents.all();
  cells_ = static_cast<int>(pairs.size());
  names_.unknowns = features;
  if (named_states()) name_states(states.all());
  d_ = static_cast<int>(names_.unknowns.size());
  k_ = !channels.empty() ? static_cast<int>(channels.size()) : named_states() ? 0 : d_;
  set_shape(d_, k_);
}

// States in the order of their numbers if all are numbers, else as they appear.
void TdLog::name_states(const std::vector<std::string>& states) {
  std::vector<std::size_t> order(states.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (std::all_of(states.begin(), states.end(),
                  [](const std::string& s) { return parse_number(s).has_value(); }))
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return parse_number(states[a]) < parse_number(states[b]);
    });
  std::vector<int> rank(states.size());
  for (std::size_t r = 0; r < order.size(); ++r) {
    rank[order[r]] = static_cast<int>(r);
    states_.push_back(states[order[r]]);
    names_.unknowns.push_back(fmt::format("V({})", states_.back()));
  }
  for (int& s : state_) s = rank[at(s)];
  for (int& s : next_)
    if (s != kEnd) s = rank[at(s)];
}

// Fills first_ and by_agent_, and drops or refuses agents of too few rows.
void TdLog::sort_by_agent(const std::vector<std::int32_t>& owner) {
  std::vector<std::int64_t> rows(names_.agents.size(), 0);
  for (std::int32_t i : owner) ++rows[at(i)];
  std::vector<std::string> kept;
  std::vector<std::int64_t> place(names_.agents.size(), -1);  // where the agent's next row goes
  first_ = {0};
  for (std::size_t i = 0; i < names_.agents.size(); ++i) {
    if (rows[i] < kFewest) {
      if (config_.drop_short) continue;
      throw BadInput(
          fmt::format("{}: agent '{}' has a single row, too few to learn from; problem.short = "
                      "\"drop\" leaves such agents out",
                      config_.file, names_.agents[i]));
    }
    kept.push_back(names_.agents[i]);
    place[i] = first_.back();
    first_.push_back(first_.back() + rows[i]);
  }
  if (kept.empty())
    throw BadInput(fmt::format("{}: no agent has {} rows or more", config_.file, kFewest));
  names_.agents = std::move(kept);
  by_agent_.resize(at(first_.back()));
  for (std::size_t r = 0; r < owner.size(); ++r)
    if (std::int64_t& next = place[at(owner[r])]; next >= 0) by_agent_[at(next++)] = r;
}

void TdLog::weigh_rewards(const std::vector<std::string>& channels) {
  theta_ = read_weights(config_.weights, config_.agent, channels, names_.agents, config_.file);
  theta_mean_.assign(at(k_), 0.0);
  for (std::size_t j = 0; j < theta_.size(); ++j)
    theta_mean_[j % at(k_)] += theta_[j] / static_cast<double>(names_.agents.size());
  for (std::size_t i = 0; i < names_.agents.size(); ++i) {
    const double* theta = theta_.data() + i * channels.size();
    for (std::int64_t t = first_[i]; t < first_[i + 1]; ++t) {
      const std::size_t row = by_agent_[at(t)];
      r_[row] = std::inner_product(theta, theta + channels.size(), c(row), 0.0);
    }
  }
}

Shape TdLog::shape() const {
  return {.agents = static_cast<std::int64_t>(names_.agents.size()),
          .d = d_,
          .k = k_,
          .p = named_states() ? 0 : 2 * d_ + 1};
}

std::size_t TdLog::row(std::int64_t agent, std::int64_t t) const {
  return by_agent_[at(first_[at(agent)] + t)];
}

const double* TdLog::c(std::size_t row) const {
  return (c_.empty() ? phi_.data() : c_.data()) + row * at(k_);
}

double TdLog::here(std::size_t row, In x, int lane) const {
  if (named_states()) return x.at(state_[row], lane);
  double sum = 0;
  for (int r = 0; r < d_; ++r) sum += phi_[row * at(d_) + at(r)] * x.at(r, lane);
  return sum;
}

double TdLog::there(std::size_t row, In x, int lane) const {
  if (named_states()) return next_[row] == kEnd ? 0 : config_.gamma * x.at(next_[row], lane);
  double sum = 0;
  for (int r = 0; r < d_; ++r) sum += next_phi_[row * at(d_) + at(r)] * x.at(r, lane);
  return config_.gamma * sum;
}

double TdLog::error(std::int64_t agent, std::int64_t t, In x, int lane) const {
  const std::size_t r = row(agent, t);
  return r_[r] + there(r, x, lane) - here(r, x, lane);
}

double TdLog::expected(std::size_t row, In theta, int lane) const {
  double sum = 0;
  for (int r = 0; r < k_; ++r) sum += c(row)[r] * theta.at(r, lane);
  return sum;
}

void TdLog::add_phi(std::size_t row, double factor, Out y, int lane) const {
  if (named_states()) {
    y.row(state_[row])[lane] += factor;
    return;
  }
  for (int r = 0; r < d_; ++r) y.row(r)[lane] += factor * phi_[row * at(d_) + at(r)];
}

void TdLog::write(std::size_t row, Out s, int lane) const {
  for (int r = 0; r < d_; ++r) {
    double phi = 0, next = 0;
    if (named_states()) {
      phi = r == state_[row], next = r == next_[row];
    } else {
      phi = phi_[row * at(d_) + at(r)], next = next_phi_[row * at(d_) + at(r)];
    }
    s.row(r)[lane] = phi;
    s.row(d_ + r)[lane] = config_.gamma * next;
  }
  for (int r = 0; r < k_; ++r) s.row(2 * d_ + r)[lane] = c(row)[r];
  s.row(2 * d_ + k_)[lane] = r_[row];
  s.row(cell_row())[lane] = named_states() ? cell_[row] : 0;
}

std::int64_t TdLog::most_samples() const {
  if (config_.order != Order::kOnce) return INT64_MAX;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < names_.agents.size(); ++i)
    most = std::max(most, rows(static_cast<std::int64_t>(i)));
  return most;
}

bool TdLog::present(std::int64_t agent, std::int64_t sample) const {
  return config_.order != Order::kOnce || sample < rows(agent);
}

std::int64_t TdLog::count_present(std::int64_t sample) const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < names_.agents.size(); ++i)
    count += present(static_cast<std::int64_t>(i), sample);
  return count;
}

void TdLog::draw(const Draw& draw, Agents world, Out s) const {
  double buffer[kLanes];
  const Out u{buffer, 1};
  fill(u, 0);
  if (config_.order == Order::kRandom) uniforms(draw.key, world.lanes, Purpose::kSample, 0, u);
  for (int l = 0; l < world.lanes.count; ++l) {
    const std::int64_t i = world.lanes.first + l, n = rows(i);
    if (!present(i, draw.key.step)) {
      write_void(s, l);
      continue;
    }
    const std::int64_t t =
        config_.order == Order::kRandom
            ? std::min(n - 1, static_cast<std::int64_t>(u.p[l] * static_cast<double>(n)))
            : draw.key.step % n;
    write(row(i, t), s, l);
  }
}

// Stated weights need no learning; unstated weights of channels are solved from the rewards.
ObjectiveForm TdLog::form() const {
  if (!theta_.empty()) return ObjectiveForm::kKnown;
  if (!config_.channels.empty()) return ObjectiveForm::kMoments;
  return named_states() ? ObjectiveForm::kTabular : ObjectiveForm::kLearnt;
}

Facets TdLog::facets() const {
  return {.linear = k_ > 0 ? this : nullptr,
          .known = theta_.empty() ? nullptr : this,
          .table = named_states() ? this : nullptr,
          .form = form(),
          .means = this,
          .ratio_cells = named_states() ? this : nullptr,
          .features = named_states() ? nullptr : this,
          .recorded = this,
          .names = &names_};
}

void TdLog::known(Lanes lanes, In s, Scratch& scratch, Out b0) const {
  Phi(lanes, s, {theta_mean_.data(), k_, 1}, scratch, b0);
}

void TdLog::psi(Lanes, In s, Out features) const {
  for (int l = 0; l < features.lanes; ++l) features.row(0)[l] = is_void(s, l) ? 0 : 1;
  copy({s.row(0), 2 * d_}, {features.row(1), 2 * d_, features.lanes});
}

template <class F>
void TdLog::over_rows(Lanes lanes, Out out, F add) const {
  fill(out, 0);
  for (int l = 0; l < lanes.count; ++l) {
    const std::int64_t i = lanes.first + l, n = rows(i);
    for (std::int64_t t = 0; t < n; ++t) add(row(i, t), l, 1 / static_cast<double>(n));
  }
}

void TdLog::mean_apply(Lanes lanes, In x, Out Ax) const {
  over_rows(lanes, Ax, [&](std::size_t row, int l, double share) {
    add_phi(row, share * (here(row, x, l) - there(row, x, l)), Ax, l);
  });
}

void TdLog::mean_objective(Lanes lanes, Out b) const {
  over_rows(lanes, b,
            [&](std::size_t row, int l, double share) { add_phi(row, share * r_[row], b, l); });
}

void TdLog::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  over_rows(lanes, bhat, [&](std::size_t row, int l, double share) {
    add_phi(row, share * expected(row, theta, l), bhat, l);
  });
}

void TdLog::mean_coe(Lanes lanes, In theta, Out g) const {
  over_rows(lanes, g, [&](std::size_t row, int l, double share) {
    const double gap = share * (expected(row, theta, l) - r_[row]);
    for (int r = 0; r < k_; ++r) g.row(r)[l] += gap * c(row)[r];
  });
}

// The largest |phi| |phi - gamma phi'| of a row.
double TdLog::G_A() const {
  double most = 0;
  std::vector<double> gap(at(d_));
  for (std::size_t row : by_agent_) {
    if (named_states()) {
      const double gamma = next_[row] == kEnd ? 0 : config_.gamma;
      most = std::max(most, next_[row] == state_[row] ? 1 - gamma : std::sqrt(1 + gamma * gamma));
      continue;
    }
    const double* phi = phi_.data() + row * at(d_);
    for (std::size_t r = 0; r < gap.size(); ++r)
      gap[r] = phi[r] - config_.gamma * next_phi_[row * at(d_) + r];
    most = std::max(most, std::sqrt(squared_norm(phi, d_) * squared_norm(gap.data(), d_)));
  }
  return most;
}

double TdLog::G_Phi() const {
  double most = 0;
  for (std::size_t row : by_agent_)
    if (k_ > 0) most = std::max(most, squared_norm(c(row), k_));
  return most;
}

std::vector<double> TdLog::theta(std::int64_t agent) const {
  if (theta_.empty()) return {};
  const auto first = theta_.begin() + agent * k_;
  return {first, first + k_};
}

}  // namespace affpcl
