// One model per group from arrays: 30 shops with few rows each, a slope of their own.
//
//   c++ -std=c++20 fit_arrays.cc -o fit_arrays -laffpcl -lfmt -lhwy -lzip && ./fit_arrays
//
// With CMake: find_package(affpcl REQUIRED) and target_link_libraries(... affpcl::affpcl).
#include <affpcl/affpcl.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

int main() {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> X, y;  // X: one row after another, here of two columns
  std::vector<std::string> groups;
  for (int shop = 0; shop < 30; ++shop) {
    const double slope = 2 + 0.3 * normal(random), level = 10 + normal(random);
    for (int row = 0; row < 8; ++row) {
      const double price = normal(random), weekday = normal(random);
      X.insert(X.end(), {price, weekday});
      y.push_back(level + slope * price + 0.5 * weekday + normal(random));
      groups.push_back("shop" + std::to_string(shop));
    }
  }

  const affpcl::FitResult result = affpcl::fit(X, y, groups);
  std::printf("held-out mean squared error: %.2f independent, %.2f chosen\n",
              result.loss.independent, result.loss.chosen);
  std::printf("%d of %zu shops gained, %d lost\n", result.gained, result.agents.size(),
              result.lost);

  const std::vector<std::string> who = {"shop0", "a new shop"};
  const std::vector<double> at = {1, 0, 1, 0};
  const std::vector<double> predicted = affpcl::predict(result.model, at, who);
  std::printf("at price 1: shop0 %.2f, an unseen shop %.2f\n", predicted[0], predicted[1]);
  return result.loss.chosen < result.loss.independent && result.lost == 0 ? 0 : 1;
}
