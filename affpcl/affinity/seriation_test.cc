#include "affpcl/affinity/seriation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

std::vector<double> apart(const std::vector<double>& at) {
  std::vector<double> d;
  for (double a : at)
    for (double b : at) d.push_back(std::abs(a - b));
  return d;
}

TEST(Seriate, PointsOnALineComeInOrder) {
  const std::vector<double> at = {4.7, 0, 2.1, 7.9, 1, 3.3, 6.2};
  std::vector<double> sorted;
  for (std::size_t i : seriate(apart(at), at.size())) sorted.push_back(at[i]);
  if (sorted.front() > sorted.back()) std::reverse(sorted.begin(), sorted.end());
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST(Seriate, GroupsStayTogether) {
  const std::vector<double> at = {0, 10, 0.1, 10.3, 0.3, 10.1};
  const std::vector<std::size_t> order = seriate(apart(at), at.size());
  int changes = 0;
  for (std::size_t k = 1; k < order.size(); ++k) changes += (order[k] % 2) != (order[k - 1] % 2);
  EXPECT_EQ(changes, 1);
}

TEST(Seriate, NobodyAndOne) {
  EXPECT_TRUE(seriate({}, 0).empty());
  const std::vector<double> self = {0};
  EXPECT_EQ(seriate(self, 1), std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace affpcl
