#include "affpcl/table/coefficients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace affpcl {
namespace {

// x = T u with u of standardised columns: the row of the intercept is 1, -mean / sd; the others
// divide by sd.
struct Units {
  std::vector<double> mean, sd;  // by coefficient; of the intercept unused

  explicit Units(const Encoding& e) : mean{0}, sd{1} {
    for (const Source& s : e.sources)
      for (std::size_t k = 0; k < s.mean.size(); ++k) {
        mean.push_back(s.mean[k]);
        sd.push_back(s.sd[k] > 0 ? s.sd[k] : 1);
      }
  }

  std::size_t dim() const { return sd.size(); }

  // T C T' in place.
  void turn(std::vector<double>& C) const {
    const std::size_t d = dim();
    if (C.size() != d * d) return;
    const auto rows = [&](std::size_t stride, std::size_t step) {
      for (std::size_t k = 0; k < d; ++k) {
        double* const at = C.data() + k * step;
        for (std::size_t j = 1; j < d; ++j) at[j * stride] /= sd[j];
        for (std::size_t j = 1; j < d; ++j) at[0] -= mean[j] * at[j * stride];
      }
    };
    rows(d, 1);
    rows(1, d);
  }

  // `cov` is that of the coefficients, where it is known.
  void turn(LinearModel& m, std::vector<double> cov) const {
    const std::size_t d = dim();
    if (m.x.size() != d) return;
    for (std::size_t j = 1; j < d; ++j) {
      m.x[j] /= sd[j];
      m.x[0] -= mean[j] * m.x[j];
    }
    if (m.se.size() != d) return;
    for (std::size_t j = 1; j < d; ++j) m.se[j] /= sd[j];
    turn(cov);
    m.se[0] = cov.size() == d * d && cov[0] >= 0 ? std::sqrt(cov[0])
                                                 : std::numeric_limits<double>::quiet_NaN();
  }
};

// The covariance of the centre's coefficients: that of an agent never seen, less D. Empty where the
// standard errors are not those of it (an agent never seen may be moved towards the pooled model).
std::vector<double> own_covariance(const ChannelModel& channel) {
  const LinearModel& centre = channel.centre;
  const std::size_t d = centre.x.size();
  if (centre.cov.size() != d * d || channel.D.size() != d * d || centre.se.size() != d) return {};
  std::vector<double> own = centre.cov;
  for (std::size_t k = 0; k < d * d; ++k) own[k] -= channel.D[k];
  for (std::size_t j = 0; j < d; ++j)
    if (std::abs(std::sqrt(std::max(0.0, own[j * d + j])) - centre.se[j]) > 1e-6 * centre.se[j])
      return {};
  return own;
}

}  // namespace

Model in_units(Model model) {
  const Units units(model.encoding);
  for (ChannelModel& channel : model.channels) {
    units.turn(channel.centre, own_covariance(channel));
    units.turn(channel.D);
    // The prediction where all columns are 0 takes the coefficients of all of them.
    if (!channel.undetermined.empty() && channel.undetermined[0] != 0)
      channel.undetermined.insert(channel.undetermined.begin(), 0);
  }
  for (AgentModel& agent : model.agents)
    for (LinearModel& own : agent.channels) units.turn(own, own.cov);
  return model;
}

std::vector<double> column_sd(const Encoding& encoding) { return Units(encoding).sd; }

std::string channel_name(const Model& m, std::size_t c) {
  const Encoding& e = m.encoding;
  if (!e.outcomes.empty()) return m.channels.size() == 1 ? e.predicted() : e.outcomes[c];
  if (e.classes.empty()) return e.target;
  if (e.family == Family::kOrdinal) return e.target;
  return fmt::format("{} = {}", e.target, e.classes[e.classes.size() == 2 ? 1 : c]);
}

std::vector<double> spread_of(const ChannelModel& channel) {
  std::vector<double> spread;
  const std::size_t d = channel.centre.x.size();
  for (std::size_t j = 0; j < d && !channel.D.empty(); ++j)
    spread.push_back(std::sqrt(std::max(0.0, channel.D[j * d + j])));
  return spread;
}

double standard_error(const ChannelModel& channel, std::size_t j) {
  const std::vector<std::size_t>& open = channel.undetermined;
  if (j >= channel.centre.se.size() || std::binary_search(open.begin(), open.end(), j))
    return std::nan("");
  return channel.centre.se[j];
}

double freedom(const Model& m, const ChannelModel& channel, std::size_t j) {
  const std::size_t d = channel.centre.x.size();
  if (channel.D.empty() || std::isnan(standard_error(channel, j))) return std::nan("");
  const bool varies = channel.D[j * d + j] > 0;
  const auto count = static_cast<double>(varies ? m.centre_agents : m.centre_rows);
  return std::max(1.0, count - (varies ? 1 : static_cast<double>(d)));
}

double half_width(const Model& m, const ChannelModel& channel, std::size_t j, double level) {
  const double df = freedom(m, channel, j);
  return std::isnan(df) ? df : student_quantile((1 + level) / 2, df) * channel.centre.se[j];
}

}  // namespace affpcl
