#include "affpcl/math/sum_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

namespace affpcl {
namespace {

constexpr std::size_t kWidth = 8;
using Leaf = std::array<double, kWidth>;
using Part = std::pair<std::int64_t, std::int64_t>;  // leaves [first, second)

// Numbers of very different size and both signs: the order of additions shows in the last bits.
std::vector<Leaf> leaves(std::int64_t count) {
  std::mt19937_64 random(static_cast<std::uint64_t>(count));
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<Leaf> all(static_cast<std::size_t>(count));
  for (Leaf& leaf : all)
    for (double& x : leaf) x = std::ldexp(mantissa(random), exponent(random));
  return all;
}

// node(level, index) by its definition, or nothing where it holds no leaf.
bool node(const std::vector<Leaf>& all, int level, std::size_t index, Leaf& out) {
  if (level == 0) {
    if (index >= all.size()) return false;
    out = all[index];
    return true;
  }
  Leaf right;
  if (!node(all, level - 1, 2 * index, out)) return false;
  if (node(all, level - 1, 2 * index + 1, right))
    for (std::size_t k = 0; k < kWidth; ++k) out[k] += right[k];
  return true;
}

Leaf root(const std::vector<Leaf>& all) {
  int level = 0;
  while ((std::size_t{1} << level) < all.size()) ++level;
  Leaf out{};
  node(all, level, 0, out);
  return out;
}

void take(SumTree& tree, const std::vector<Leaf>& all, Part run) {
  for (std::int64_t i = run.first; i < run.second; ++i) {
    std::copy_n(all[static_cast<std::size_t>(i)].data(), kWidth, tree.open());
    tree.push(i);
  }
}

SumTree reduced(const std::vector<Leaf>& all, Part run) {
  SumTree tree(kWidth);
  take(tree, all, run);
  return tree;
}

bool same_bits(const double* a, const Leaf& b) {
  for (std::size_t k = 0; k < kWidth; ++k)
    if (std::bit_cast<std::uint64_t>(a[k]) != std::bit_cast<std::uint64_t>(b[k])) return false;
  return true;
}

// Every run reduced by itself, then put together from the left.
bool partition_gives(const std::vector<Leaf>& all, const std::vector<Part>& runs,
                     const Leaf& want) {
  SumTree first = reduced(all, runs.front());
  for (std::size_t r = 1; r < runs.size(); ++r) first.append(reduced(all, runs[r]));
  return same_bits(first.finish(static_cast<std::int64_t>(all.size())), want);
}

TEST(SumTree, AllPartitionsOfFewLeavesGiveTheSameBits) {
  for (int n = 1; n <= 13; ++n) {
    const std::vector<Leaf> all = leaves(n);
    const Leaf want = root(all);
    for (unsigned cuts = 0; cuts < 1u << (n - 1); ++cuts) {  // bit i: a cut after leaf i
      std::vector<Part> runs;
      std::int64_t first = 0;
      for (int i = 0; i < n; ++i)
        if (i == n - 1 || (cuts >> i & 1u)) runs.emplace_back(first, i + 1), first = i + 1;
      ASSERT_TRUE(partition_gives(all, runs, want)) << n << " leaves, cuts " << cuts;
    }
  }
}

TEST(SumTree, RandomPartitionsOfManyLeavesGiveTheSameBits) {
  std::mt19937 random(5);
  for (std::int64_t n : {14, 31, 32, 33, 100, 255, 256, 257, 1000, 4097}) {
    const std::vector<Leaf> all = leaves(n);
    const Leaf want = root(all);
    for (int trial = 0; trial < 40; ++trial) {
      const int parts = std::uniform_int_distribution<int>(1, 64)(random);
      std::vector<std::int64_t> cuts = {0, n};
      for (int i = 1; i < parts; ++i)  // runs may be empty: more threads than leaves
        cuts.push_back(std::uniform_int_distribution<std::int64_t>(0, n)(random));
      std::sort(cuts.begin(), cuts.end());
      std::vector<Part> runs;
      for (std::size_t i = 1; i < cuts.size(); ++i) runs.emplace_back(cuts[i - 1], cuts[i]);
      ASSERT_TRUE(partition_gives(all, runs, want)) << n << " leaves, " << parts << " runs";
    }
  }
}

TEST(SumTree, RunsMayBePutTogetherInAnyGrouping) {  // threads within ranks
  std::mt19937 random(6);
  const std::vector<Leaf> all = leaves(77);
  const Leaf want = root(all);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<SumTree> trees;
    for (std::int64_t first = 0; first < 77;) {
      const std::int64_t last =
          std::min<std::int64_t>(77, first + std::uniform_int_distribution<int>(1, 12)(random));
      trees.push_back(reduced(all, {first, last}));
      first = last;
    }
    while (trees.size() > 1) {
      const auto i = std::uniform_int_distribution<std::size_t>(0, trees.size() - 2)(random);
      trees[i].append(std::move(trees[i + 1]));
      trees.erase(trees.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    ASSERT_TRUE(same_bits(trees.front().finish(77), want));
  }
}

// Without this the tests above could pass on numbers whose sum does not depend on the order.
TEST(SumTree, TheNaiveSumDiffers) {
  for (std::int64_t n : {4, 7, 13, 100, 1000}) {
    const std::vector<Leaf> all = leaves(n);
    Leaf naive{};
    for (const Leaf& leaf : all)
      for (std::size_t k = 0; k < kWidth; ++k) naive[k] += leaf[k];
    EXPECT_FALSE(same_bits(naive.data(), root(all))) << n;
  }
}

TEST(SumTree, IsReusedAfterClear) {
  SumTree tree(kWidth);
  EXPECT_EQ(tree.width(), kWidth);
  for (std::int64_t n : {9, 3, 13, 1}) {
    const std::vector<Leaf> all = leaves(n);
    tree.clear();
    take(tree, all, {0, n});
    EXPECT_TRUE(same_bits(tree.finish(n), root(all)));
  }
}

TEST(SumTree, ANewLeafIsZero) {
  SumTree tree(kWidth);
  std::fill_n(tree.open(), kWidth, 7.0);
  for (std::size_t k = 0; k < kWidth; ++k) EXPECT_EQ(tree.open()[k], 0);
}

TEST(SumTree, MissingLeavesAreRefused) {
  for (int n = 1; n <= 9; ++n) {
    const std::vector<Leaf> all = leaves(n);
    const unsigned everything = (1u << n) - 1;
    for (unsigned present = 0; present < everything; ++present) {
      SumTree tree(kWidth);
      std::string which;
      for (int i = 0; i < n; ++i)
        if (present >> i & 1u) take(tree, all, {i, i + 1}), which += ' ' + std::to_string(i);
      EXPECT_THROW(tree.finish(n), std::logic_error) << "of " << n << " leaves only" << which;
    }
  }
}

}  // namespace
}  // namespace affpcl
