// Offsets by liveness: right for every small case, and near what no layout can undercut.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/random_seed.hpp"
#include "trainer/static/batch_plan.hpp"

namespace weir::testing {
namespace {

using Lifetimes = std::vector<Lifetime>;

/// Most elements alive in one step: no layout is smaller.
std::size_t most_alive(const Lifetimes& tensors) {
  std::size_t most = 0;
  for (const Lifetime& at : tensors) {
    std::size_t alive = 0;
    for (const Lifetime& other : tensors) {
      if (other.first <= at.first && at.first <= other.last) alive += other.size;
    }
    most = std::max(most, alive);
  }
  return most;
}

/// Checks alignment, size and that no two overlap in a step.
void expect_valid(const Lifetimes& tensors, const Layout& layout, std::size_t alignment) {
  ASSERT_EQ(layout.offsets.size(), tensors.size());
  std::size_t end = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_EQ(layout.offsets[i] % alignment, 0U);
    end = std::max(end, layout.offsets[i] + tensors[i].size);
    for (std::size_t j = 0; j < i; ++j) {
      if (tensors[i].first > tensors[j].last || tensors[j].first > tensors[i].last) continue;
      ASSERT_TRUE(layout.offsets[i] + tensors[i].size <= layout.offsets[j] ||
                  layout.offsets[j] + tensors[j].size <= layout.offsets[i])
          << "tensors " << j << " and " << i << " overlap";
    }
  }
  ASSERT_EQ(layout.size, end);
  ASSERT_GE(layout.size, most_alive(tensors));
}

/// Calls `check` for every list of `count` tensors of 1 to 3 elements in three steps.
template <typename Check>
void for_every_small_case(std::size_t count, Lifetimes& tensors, const Check& check) {
  if (tensors.size() == count) return check(tensors);
  for (std::size_t size = 1; size <= 3; ++size) {
    for (std::size_t first = 0; first < 3; ++first) {
      for (std::size_t last = first; last < 3; ++last) {
        tensors.push_back({.size = size, .first = first, .last = last});
        for_every_small_case(count, tensors, check);
        tensors.pop_back();
      }
    }
  }
}

TEST(StaticLayout, OfEverySmallCaseIsValidAndWithoutAlignmentAsSmallAsCanBe) {
  for (std::size_t count = 0; count <= 3; ++count) {
    Lifetimes tensors;
    for_every_small_case(count, tensors, [](const Lifetimes& all) {
      const Layout dense = plan_layout(all, 1);
      expect_valid(all, dense, 1);
      ASSERT_EQ(dense.size, most_alive(all));
      expect_valid(all, plan_layout(all, 4), 4);
    });
  }
}

TEST(StaticLayout, OfRandomListsIsValidAndOnAverageATenthAboveTheBound) {
  SCOPED_TRACE(seed_message(random_seed()));
  std::mt19937_64 random(random_seed());
  double sum = 0;
  constexpr int kLists = 300;
  for (int list = 0; list < kLists; ++list) {
    Lifetimes tensors(1 + random() % 30);
    for (Lifetime& tensor : tensors) {
      tensor.size = 1 + random() % 1000;
      tensor.first = random() % 30;
      tensor.last = tensor.first + random() % 10;
    }
    const Layout layout = plan_layout(tensors, 1);
    expect_valid(tensors, layout, 1);
    sum += static_cast<double>(layout.size) / static_cast<double>(most_alive(tensors));
    expect_valid(tensors, plan_layout(tensors, 64), 64);
  }
  EXPECT_LT(sum / kLists, 1.1);
}

TEST(StaticLayout, ReusesWhatAChainLeavesBehind) {
  // Each step reads one tensor and writes the next, as inference does: two are alive at a time.
  Lifetimes chain;
  for (std::size_t i = 0; i < 10; ++i) chain.push_back({.size = 64, .first = i, .last = i + 1});
  EXPECT_EQ(plan_layout(chain, 64).size, 128U);
}

}  // namespace
}  // namespace weir::testing
