#include "affpcl/runtime/team_share.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {

std::vector<double> TeamShare::sum(std::int64_t agents, std::size_t width, Add add) const {
  std::mutex mutex;
  std::map<std::int64_t, BadInput> refused;  // by leaf: the lowest is thrown, whoever came first
  TeamSum sum(width, team_.workers());
  const double* total = sum(team_, leaves_of(agents), [&](std::int64_t leaf, int, double* numbers) {
    try {
      add_leaf(leaf, agents, add, numbers);
    } catch (const BadInput& e) {
      const std::lock_guard lock(mutex);
      refused.emplace(leaf, e);
    }
  });
  on_all_ranks(team_.processes(), [&] {
    if (!refused.empty()) throw refused.begin()->second;
  });
  return {total, total + width};
}

double TeamShare::largest(double mine) const {
  const std::vector<double> all = all_gather(team_.processes(), {&mine, 1});
  return *std::max_element(all.begin(), all.end());
}

}  // namespace affpcl
