// Tables with a known truth, without files.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "affpcl/random/streams.h"
#include "affpcl/table/frame.h"

namespace affpcl {

struct TableWorld {
  std::size_t agents = 10, rows = 40, columns = 2;
  double spread = 0.5;  // sd of the agents' coefficients around 1
  std::function<double(std::size_t)> noise = [](std::size_t) { return 1.0; };
  std::function<double(std::size_t)> shift = [](std::size_t) { return 0.0; };  // of every column
  std::uint64_t seed = 1;

  double coefficient(std::size_t i, std::size_t j) const {
    return 1 + spread * normal({.seed = seed}, static_cast<std::int64_t>(i), Purpose::kObjective,
                               static_cast<std::uint32_t>(j));
  }

  Frame frame() const {
    Frame f;
    f.rows = f.all_rows = agents * rows;
    f.d = columns + 1;
    f.encoding.target = "y";
    f.X.assign(f.d * f.rows, 1.0);
    f.Y.resize(f.rows);
    for (std::size_t j = 0; j < columns; ++j)
      f.encoding.sources.push_back({"x" + std::to_string(j), {}, {0.0}, {1.0}});
    for (std::size_t i = 0; i < agents; ++i) {
      f.agents.push_back("a" + std::to_string(i));
      for (std::size_t fold = 0; fold < kFolds; ++fold)
        f.starts.push_back(i * rows + fold * rows / kFolds);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto draw = [&](std::size_t j) {
          return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(r)},
                        static_cast<std::int64_t>(i), Purpose::kSample,
                        static_cast<std::uint32_t>(j));
        };
        double y = coefficient(i, 0) + noise(i) * draw(columns);
        for (std::size_t j = 0; j < columns; ++j) {
          const double x = draw(j) + shift(i);
          f.X[(j + 1) * f.rows + i * rows + r] = x;
          y += coefficient(i, j + 1) * x;
        }
        f.Y[i * rows + r] = y;
        f.places.push_back(static_cast<std::uint32_t>(r));
      }
    }
    f.starts.push_back(f.rows);
    f.y_mean = {0.0};
    f.y_sd = {1.0};
    return f;
  }
};

}  // namespace affpcl
