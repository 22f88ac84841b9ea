#include "tools/gpu_check/report/kernel_bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weir::gpu_check {
namespace {

// An H100, by its data sheet: nothing here was measured.
constexpr double kMultiprocessors = 132;
constexpr double kClocksPerUs = 1755;
constexpr double kWarpInstructionsPerUs = 4 * kMultiprocessors * kClocksPerUs;
constexpr double kShufflesPerUs = kMultiprocessors * kClocksPerUs;  // of a warp
constexpr double kBytesPerUs = 3e6;
constexpr double kFlopsPerUs = 50e6;      // of a large product
constexpr double kDependentLaunch = 2.5;  // us

constexpr double kElements = 1 << 26;
constexpr double kMatrix = 4 * kElements;  // bytes
constexpr double kRows = 1 << 22;          // of 16
constexpr double kSquare = 2.0 * 1024 * 1024 * 1024 / kFlopsPerUs;
constexpr double kWide = 2.0 * 8192 * 1024 * 4096 / kFlopsPerUs;

/// The least that a kernel of the bench can take there.
struct Cost {
  const char* kernel;
  const char* shape;
  const char* floor_of;
  double floor;             ///< us
  double launches;          ///< one behind the other
  double instructions = 0;  ///< of warps
  double shuffles = 0;      ///< of warps
  double more = 0;          ///< us, of what cannot overlap with the rest

  [[nodiscard]] double least() const {
    return std::max({floor, instructions / kWarpInstructionsPerUs, shuffles / kShufflesPerUs}) +
           launches * kDependentLaunch + more;
  }
};

// One warp takes a row of 16, and so half of its lanes have nothing to do. Instructions are counted
// in the source, and are rough. Sums: two launches for each 2^19 rows, and two for the sums of
// tiles.
constexpr double kGiven16 = (kMatrix + 4 * kRows) / kBytesPerUs;
constexpr double kGiven1024 = (kMatrix + 4 * 65536) / kBytesPerUs;
constexpr double kTile = kSquare * kMultiprocessors / 64 - kSquare;
const std::vector<Cost> kCosts{
    {"fill", "2^26", "copy", kMatrix / kBytesPerUs, 1},
    {"sum", "2^26", "copy", kMatrix / kBytesPerUs, 3},
    {"fill_normal", "2^26", "copy", kMatrix / kBytesPerUs, 1, kElements / 32 * 60},
    {"softmax_cross_entropy", "4194304x16", "copy", kGiven16, 18, kRows * 130, kRows * 11},
    {"softmax_cross_entropy", "65536x1024", "copy", kGiven1024, 3, kElements / 32 * 40},
    {"softmax_cross_entropy_gradient", "4194304x16", "copy", kGiven16 + kMatrix / kBytesPerUs, 1,
     kRows * 130, kRows * 11},
    {"softmax_cross_entropy_gradient", "65536x1024", "copy", kGiven1024 + kMatrix / kBytesPerUs, 1,
     kElements / 32 * 90},
    {"count_correct", "4194304x16", "copy", kGiven16, 18, kRows * 100, kRows * 20},
    {"count_correct", "65536x1024", "copy", kGiven1024, 3, kElements / 32 * 12},
    {"dense_bias_gradient", "65536x1024", "copy", kMatrix / kBytesPerUs, 3},
    // The bias takes another pass, and 64 tiles of 128 x 128 keep 64 of 132 multiprocessors busy.
    {"dense_forward", "8192x1024x4096", "sgemm", kWide, 2, 0, 0, 8.0 * 8192 * 4096 / kBytesPerUs},
    {"dense_forward", "1024x1024x1024", "sgemm", kSquare, 2, 0, 0,
     kTile + 8.0 * 1024 * 1024 / kBytesPerUs},
    {"dense_weight_gradient", "1024x1024x1024", "sgemm", kSquare, 1, 0, 0, kTile},
    {"dense_input_gradient", "1024x1024x1024", "sgemm", kSquare, 1, 0, 0, kTile},
};

TEST(GpuKernelBounds, NoBoundIsBelowWhatItsKernelNeedsAtLeast) {
  for (const Cost& cost : kCosts) {
    KernelFigures figures;
    figures.name = cost.kernel;
    figures.shape = cost.shape;
    figures.floor_of = cost.floor_of;
    figures.floor_us = cost.floor;
    figures.median_us = cost.least();
    const JudgedKernel judged = judge_kernel(figures);
    EXPECT_TRUE(judged.within()) << cost.kernel << " " << cost.shape << " takes at least "
                                 << judged.kernel.ratio() << ", bound " << judged.most;
  }
}

TEST(GpuKernelBounds, EachBoundByNameIsCalculated) {
  for (const NamedBound& bound : kNamedBounds) {
    EXPECT_TRUE(std::ranges::any_of(kCosts,
                                    [&](const Cost& cost) {
                                      return std::string(cost.kernel) == bound.kernel &&
                                             std::string(cost.shape) == bound.shape;
                                    }))
        << bound.kernel << " " << bound.shape;
  }
}

}  // namespace
}  // namespace weir::gpu_check
