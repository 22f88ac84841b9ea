// How a bias gradient is cut, and its cost by counting. The time on a device is measured there.

#include "kernels/bias_gradient_cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace {

using weir::DenseShape;
using weir::cuda::bias_gradient_runs;
using weir::cuda::BiasGradientCut;
using weir::cuda::cut_bias_gradient;

constexpr std::size_t kWorkspace = 1U << 20U;  // 4 MiB, the least

constexpr std::size_t ceiling(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

/// The cost of the sums' order, without the bytes of dy.
struct Steps {
  std::size_t launches = 0;
  std::size_t additions = 0;  ///< dependent additions of run totals, over all launches
  std::size_t tiles = 0;      ///< loads that no addition hides: the first of each launch
  std::size_t blocks = 0;     ///< of the second launch of a piece, at most
};

constexpr Steps steps_of(DenseShape shape) {
  const BiasGradientCut cut = cut_bias_gradient(shape, kWorkspace);
  const std::size_t down = ceiling(shape.m, cut.rows);
  const std::size_t across = ceiling(shape.n, cut.columns);
  return {.launches = 2 * down * across,
          .additions = bias_gradient_runs(shape.m) * across,
          .tiles = down * across,
          .blocks = ceiling(cut.columns, weir::cuda::bias_gradient_width(
                                             bias_gradient_runs(std::min(cut.rows, shape.m))))};
}

TEST(BiasGradientCut, FitsTheWorkspaceAndReachesEveryElement) {
  for (const std::size_t m : {1U, 31U, 32U, 33U, 1024U, 8193U, 65536U, 1U << 24U}) {
    for (const std::size_t n : {1U, 3U, 1000U, 1024U, 4096U, 4097U, 200'000U, 1U << 22U}) {
      const DenseShape shape{.m = m, .k = 1, .n = n};
      SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
      const BiasGradientCut cut = cut_bias_gradient(shape, kWorkspace);
      ASSERT_GT(cut.columns, 0U);
      ASSERT_GT(cut.rows, 0U);
      EXPECT_LE(cut.columns, n);
      EXPECT_EQ(cut.rows % weir::kBiasGradientRows, 0U);
      EXPECT_LE(cut.columns * bias_gradient_runs(cut.rows), kWorkspace);
    }
  }
}

TEST(BiasGradientCut, OnePieceIsEnoughWhereAllRunsFit) {
  for (const DenseShape shape :
       {DenseShape{.m = 1024, .k = 1, .n = 2048}, DenseShape{.m = 32768, .k = 1, .n = 1024},
        DenseShape{.m = 128, .k = 1, .n = 200'000}}) {
    EXPECT_EQ(steps_of(shape).launches, 2U) << shape.m << " x " << shape.n;
  }
}

TEST(BiasGradientCut, ATileHasAllRunsOfAPieceOrTheFewestColumns) {
  using weir::cuda::bias_gradient_width;
  using weir::cuda::kBiasGradientTile;
  for (std::size_t runs = 1; runs <= 2 * kBiasGradientTile; ++runs) {
    const std::size_t width = bias_gradient_width(runs);
    ASSERT_EQ(256 % width, 0U) << runs << " runs";
    ASSERT_TRUE(width == 8 || runs * width <= kBiasGradientTile) << runs << " runs";
  }
}

// The bound is 1.3 times the time of the bytes alone. Assumed for an H100: 3.0 TB/s (its data sheet
// says 3.35), 2.5 us for a launch that depends on the one before it, 6 cycles at 1.7 GHz for an
// addition, 1 us for a load that nothing hides. `weir-gpu bench` measures it.
TEST(BiasGradientCut, OfManyRowsStaysNearItsFloorByCount) {
  const DenseShape shape{.m = 65536, .k = 1, .n = 1024};
  const Steps steps = steps_of(shape);
  EXPECT_EQ(steps.launches, 4U);
  EXPECT_EQ(steps.additions, 2048U);
  EXPECT_EQ(steps.blocks, 128U);
  const double bytes = 4.0 * 65536 * 1024;
  const double sums = 2 * bytes / weir::kBiasGradientRows;  // written and read
  const double floor_us = bytes / 3.0e6;
  const double steps_us = 2.5 * static_cast<double>(steps.launches) +
                          6 / 1.7e3 * static_cast<double>(steps.additions) +
                          1.0 * static_cast<double>(steps.tiles);
  EXPECT_LE(floor_us + sums / 3.0e6 + steps_us, 1.3 * floor_us);
}

}  // namespace
