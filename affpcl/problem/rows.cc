#include "affpcl/problem/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"

namespace affpcl {

Rows::Rows(Data data, Order order, Form form, double ridge, Place place)
    : data_(std::move(data)),
      order_(order),
      form_(form),
      ridge_(ridge),
      sum_(std::move(place.sum)) {
  set_shape(data_.d, data_.k);
  const auto n = static_cast<std::int64_t>(data_.first.size()) - 1;
  agents_ = place.agents < 0 ? n : place.agents;
  own_ = {place.first, place.first + n};
  for (std::int64_t i = own_.first; i < own_.last; ++i) lengths_.push_back(rows(i));
  std::sort(lengths_.begin(), lengths_.end());
  longest_ = lengths_.back();
  average_weights();
  if (order == Order::kOnce && sum_) count_agents_of_sites(place.samples, place.sites);
}

void Rows::count_agents_of_sites(std::int64_t samples, std::int64_t fewest_sites) {
  const auto count = static_cast<std::size_t>(samples);
  std::vector<Fixed> sums(
      2 * count);  // agents that have a sample of that number, and sites that have such
  for (std::size_t t = 0; t < count; ++t) {
    const auto gone =
        std::upper_bound(lengths_.begin(), lengths_.end(), static_cast<std::int64_t>(t)) -
        lengths_.begin();
    const std::int64_t here = std::ssize(lengths_) - gone;
    sums[t] = to_fixed(static_cast<double>(here));
    sums[count + t] = to_fixed(here > 0 ? 1 : 0);
  }
  sum_(sums);
  for (std::size_t t = 0; t < count; ++t) {
    present_.push_back(static_cast<std::int64_t>(to_double(sums[t])));
    if (const double sites = to_double(sums[count + t]);
        sites > 0 && sites < static_cast<double>(fewest_sites))
      throw BadInput(
          fmt::format("problem.order = \"once\": agents of {:.0f} sites alone have more than {} "
                      "rows, and a sum over them would be "
                      "theirs; run.steps must be at most {}",
                      sites, t, t));
  }
}

// In fixed point, so that sites of a federation find the same mean as one process.
void Rows::average_weights() {
  theta_mean_.assign(static_cast<std::size_t>(data_.k), 0.0);
  if (data_.theta.empty()) return;
  std::vector<Fixed> sums(theta_mean_.size());
  for (std::size_t j = 0; j < data_.theta.size(); ++j) {
    if (!(std::abs(data_.theta[j]) < kLargestFixed))
      throw BadInput("a weight of an outcome channel is beyond 4.5e15; use smaller units");
    sums[j % sums.size()] += to_fixed(data_.theta[j]);
  }
  if (sum_) sum_(sums);
  for (std::size_t k = 0; k < sums.size(); ++k)
    theta_mean_[k] = to_double(sums[k]) / static_cast<double>(agents_);
}

Shape Rows::shape() const {
  return {.agents = agents_,
          .d = data_.d,
          .k = form_ == Form::kChannels ? data_.k : data_.d,
          .p = data_.d + 1};
}

std::int64_t Rows::rows(std::int64_t agent) const {
  if (!has(agent)) return 0;
  const auto i = static_cast<std::size_t>(agent - own_.first);
  return data_.first[i + 1] - data_.first[i];
}
std::size_t Rows::at(std::int64_t agent, std::int64_t row) const {
  return static_cast<std::size_t>(data_.first[static_cast<std::size_t>(agent - own_.first)] + row);
}
const double* Rows::phi(std::int64_t agent, std::int64_t row) const {
  return data_.phi->data() + at(agent, row) * static_cast<std::size_t>(data_.d);
}
double Rows::y(std::int64_t agent, std::int64_t row) const { return data_.y[at(agent, row)]; }

std::int64_t Rows::most_samples() const {
  if (order_ == Order::kRandom) return INT64_MAX;
  if (present_.empty()) return longest_;
  const auto end = std::find(present_.begin(), present_.end(), 0);
  return end == present_.end() ? INT64_MAX : end - present_.begin();
}
bool Rows::present(std::int64_t agent, std::int64_t sample) const {
  return order_ == Order::kRandom || sample < rows(agent);
}
std::int64_t Rows::count_present(std::int64_t sample) const {
  if (order_ == Order::kRandom) return agents_;
  if (!present_.empty()) return present_[static_cast<std::size_t>(sample)];
  return lengths_.end() - std::upper_bound(lengths_.begin(), lengths_.end(), sample);
}

void Rows::write(std::size_t row, Out s, int lane) const {
  const auto d = static_cast<std::size_t>(data_.d), k = static_cast<std::size_t>(data_.k);
  for (std::size_t r = 0; r < d; ++r) {
    s.row(static_cast<int>(r))[lane] = (*data_.phi)[row * d + r];
    s.row(static_cast<int>(d + r))[lane] = 0;  // no next state
  }
  for (std::size_t r = 0; r < k; ++r)
    s.row(static_cast<int>(2 * d + r))[lane] = data_.c[row * k + r];
  s.row(cell_row() - 1)[lane] = data_.y[row];
  s.row(cell_row())[lane] = 0;
}

void Rows::draw(const Draw& draw, Agents world, Out s) const {
  double buffer[kLanes] = {};
  const Out u{buffer, 1};
  if (order_ == Order::kRandom) uniforms(draw.key, world.lanes, Purpose::kSample, 0, u);
  for (int l = 0; l < world.lanes.count; ++l) {
    const std::int64_t i = world.lanes.first + l, n = rows(i);
    if (!has(i) || !present(i, draw.key.step)) {
      write_void(s, l);
      continue;
    }
    const auto random = static_cast<std::int64_t>(u.p[l] * static_cast<double>(n));
    write(at(i, order_ == Order::kOnce ? draw.key.step : std::min(n - 1, random)), s, l);
  }
}

Facets Rows::facets() const {
  return {.linear = shape().k > 0 ? this : nullptr,
          .known = data_.theta.empty() ? nullptr : this,
          .form = form(),
          .means = this,
          .finite = this,
          .features = this,
          .recorded = this,
          .scores = test_yy_.empty() ? nullptr : this,
          .names = data_.names.agents.empty() ? nullptr : &data_.names};
}

void Rows::direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const {
  Transitions::direction(lanes, s, {}, x, scratch, g);
  if (ridge_ != 0)
    for (int l = 0; l < lanes.count; ++l)
      if (!is_void(s, l))
        for (int r = 0; r < g.rows; ++r) g.row(r)[l] += ridge_ * x.at(r, l);
  subtract_objective(b, g);
}

void Rows::Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const {
  switch (form_) {
    case Form::kChannels:
      return Transitions::Phi(lanes, s, theta, scratch, bhat);
    case Form::kIdentity:
      copy(theta, bhat);
      for (int l = 0; l < lanes.count; ++l)  // a void sample says nothing
        if (is_void(s, l))
          for (int r = 0; r < bhat.rows; ++r) bhat.row(r)[l] = 0;
      return;
    case Form::kFeatures:
      return direction(lanes, s, {}, theta, scratch, bhat);
  }
}

void Rows::known(Lanes lanes, In s, Scratch& scratch, Out b0) const {
  Transitions::Phi(lanes, s, {theta_mean_.data(), data_.k, 1}, scratch, b0);
}

// Stated weights need no learning; unstated ones are solved from the recorded outcomes.
ObjectiveForm Rows::form() const {
  if (form_ != Form::kChannels) return ObjectiveForm::kLearnt;
  return data_.theta.empty() ? ObjectiveForm::kMoments : ObjectiveForm::kKnown;
}

void Rows::coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const {
  if (form_ != Form::kChannels) return LinearObjective::coe(lanes, s, b, theta, bhat, g);
  Transitions::coe(lanes, s, b, theta, bhat, g);
}

void Rows::psi(Lanes, In s, Out features) const {
  for (int l = 0; l < features.lanes; ++l) features.row(0)[l] = is_void(s, l) ? 0 : 1;
  copy(Transitions::phi(s), {features.row(1), data_.d, features.lanes});
}

double Rows::probability(std::int64_t agent, int outcome) const {
  return outcome < rows(agent) ? 1 / static_cast<double>(rows(agent)) : 0;
}

void Rows::outcome(Lanes lanes, int number, Out s) const {
  for (int l = 0; l < lanes.count; ++l) {
    const std::int64_t i = lanes.first + l;
    if (has(i))
      write(at(i, std::min<std::int64_t>(number, rows(i) - 1)), s, l);
    else
      write_void(s, l);
  }
}

void Rows::score_on(const Data& other) {
  const auto d = static_cast<std::size_t>(data_.d), n = other.first.size() - 1;
  test_A_.assign(n * d * d, 0.0);
  test_b_.assign(n * d, 0.0);
  test_yy_.assign(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double share = 1 / static_cast<double>(other.first[i + 1] - other.first[i]);
    for (auto row = static_cast<std::size_t>(other.first[i]);
         row < static_cast<std::size_t>(other.first[i + 1]); ++row) {
      const double *phi = other.phi->data() + row * d, y = other.y[row];
      for (std::size_t r = 0; r < d; ++r) {
        for (std::size_t c = 0; c < d; ++c) test_A_[(i * d + r) * d + c] += share * phi[r] * phi[c];
        test_b_[i * d + r] += share * phi[r] * y;
      }
      test_yy_[i] += share * y * y;
    }
  }
  solve();
}

void Rows::error(Lanes lanes, In x, Scratch& scratch, Out one_row) const {
  const Scratch::Frame frame(scratch);
  const auto d = static_cast<std::size_t>(data_.d);
  double* v = scratch.numbers(d);
  for (int l = 0; l < lanes.count; ++l) {
    one_row.p[l] = 0;
    if (!has(lanes.first + l)) continue;
    const auto i = static_cast<std::size_t>(lanes.first + l - own_.first);
    for (std::size_t r = 0; r < d; ++r) v[r] = x.at(static_cast<int>(r), l);
    double sum = test_yy_[i];
    for (std::size_t r = 0; r < d; ++r) {
      const double* A = test_A_.data() + (i * d + r) * d;
      double Av = 0;
      for (std::size_t c = 0; c < d; ++c) Av += A[c] * v[c];
      sum += v[r] * (Av - 2 * test_b_[i * d + r]);
    }
    one_row.p[l] = std::max(0.0, sum);
  }
}

std::vector<double> Rows::theta(std::int64_t agent) const {
  if (data_.theta.empty() || !has(agent)) return {};
  const auto from = data_.theta.begin() + (agent - own_.first) * data_.k;
  return {from, from + data_.k};
}

}  // namespace affpcl
