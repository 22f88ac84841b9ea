#pragma once

// How much longer than its floor each kernel of the bench may take.

#include <array>
#include <string>
#include <vector>

#include "tools/gpu_check/report/bench_figures.hpp"

namespace weir::gpu_check {

/// Times its floor, for a kernel that memory bounds and no row below names.
inline constexpr double kMemoryBound = 1.15;
/// The same for a product.
inline constexpr double kProductBound = 1.1;
/// A launch takes some microseconds (unverified), which is more than those bounds leave of a
/// shorter floor. A kernel of such a shape needs a row below.
inline constexpr double kLeastFloorUs = 20;

struct NamedBound {
  const char* kernel;
  const char* shape;
  double most;         ///< times its floor
  const char* reason;  ///< why it may take that long
};
/// Calculated with an H100's figures (tests/gpu_check/kernel_bounds_test.cpp); none of these bounds
/// was tried on a GPU (unverified).
inline constexpr std::array kNamedBounds{
    NamedBound{"fill_normal", "2^26", 2.5,
               "some 60 instructions for each number, which take longer than to write its 4 bytes"},
    NamedBound{"dense_bias_gradient", "65536x1024", 1.3,
               "the sums of a column have a fixed order, so steps depend on each other"},
    NamedBound{"dense_forward", "8192x1024x4096", 1.2,
               "the bias and the relu take another pass over the output"},
    NamedBound{"softmax_cross_entropy", "4194304x16", 7.5,
               "one warp a row: some 130 instructions and 11 shuffles for 16 logits"},
    NamedBound{"softmax_cross_entropy", "65536x1024", 1.5,
               "some 40 instructions a logit take as long as to read it"},
    NamedBound{"softmax_cross_entropy_gradient", "4194304x16", 3.8,
               "one warp a row: some 130 instructions and 11 shuffles for 16 logits"},
    NamedBound{"softmax_cross_entropy_gradient", "65536x1024", 1.5,
               "some 90 instructions a logit, with two divisions, take longer than its bytes"},
    NamedBound{"count_correct", "4194304x16", 6,
               "one warp a row: some 100 instructions and 20 shuffles for 16 logits"},
    NamedBound{"dense_forward", "1024x1024x1024", 2.6,
               "too few tiles for all multiprocessors, and another pass over the output"},
    NamedBound{"dense_weight_gradient", "1024x1024x1024", 2.4,
               "64 tiles of 128 x 128 are too few for all multiprocessors"},
    NamedBound{"dense_input_gradient", "1024x1024x1024", 2.4,
               "64 tiles of 128 x 128 are too few for all multiprocessors"},
};

/// A kernel's time against its bound.
struct JudgedKernel {
  KernelFigures kernel;
  double most = 0;     ///< times its floor; 0 where it has no bound
  std::string reason;  ///< why it has another bound than the others, or none

  [[nodiscard]] bool has_bound() const { return most > 0; }
  [[nodiscard]] bool within() const { return has_bound() && kernel.ratio() <= most; }
};
[[nodiscard]] JudgedKernel judge_kernel(KernelFigures kernel);

/// `name shape` of each row above whose kernel is not among these.
[[nodiscard]] std::vector<std::string> bounds_without_kernel(
    const std::vector<KernelFigures>& kernels);

}  // namespace weir::gpu_check
