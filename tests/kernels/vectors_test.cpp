#include "kernels/parts/vectors.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/optimizer/rules.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/sparse/losses.hpp"
#include "kernels/sparse/row_arithmetic.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::VectorWidth;
using weir::reference::ClassLists;
using weir::reference::random_numbers;

TEST(Vectors, RunTheWorkOnceAtEachWidthThatTheProcessorHas) {
  for (const VectorWidth width :
       {VectorWidth::kFourFloats, VectorWidth::kEightFloats, VectorWidth::kSixteenFloats}) {
    if (width > weir::widest_vectors()) continue;
    int runs = 0;
    weir::with_vectors([&runs] { ++runs; }, width);
    EXPECT_EQ(runs, 1) << static_cast<int>(width);
  }
}

// This file is compiled for one float at a time, without optimization.
TEST(Vectors, GiveASoftmaxGradientTheBitsOfOneFloatAtATime) {
  constexpr std::size_t kClasses = 3001;
  std::vector<float> z = random_numbers(kClasses, 5);
  for (std::size_t j = 0; j < z.size(); j += 7) z[j] *= 60.0F;  // some are out of range
  const ClassLists labels{kClasses, {0, 1}, {17}};
  std::vector<float> statistics(weir::kSoftmaxStatistics);
  std::vector<float> dz(kClasses);
  softmax_statistics(labels.view(), z, statistics);
  softmax_gradient(labels.view(), z, statistics, dz);
  const weir::SoftmaxSlope slope(statistics.data(), 1.0F);
  for (std::size_t j = 0; j < kClasses; ++j) {
    const float expected = j == 17 ? slope.share(z[j]) - slope.target : slope.share(z[j]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(dz[j]), std::bit_cast<std::uint32_t>(expected)) << j;
  }
}

TEST(Vectors, GiveAnUpdateTheBitsOfOneFloatAtATime) {
  constexpr std::size_t kWeights = 1501;
  std::vector<float> w = random_numbers(kWeights, 1);
  std::vector<float> first = random_numbers(kWeights, 2);
  std::vector<float> second = random_numbers(kWeights, 3);
  for (float& value : second) value *= value;
  const std::vector<float> g = random_numbers(kWeights, 4);
  const weir::OptimizerOptions options{.optimizer = weir::Optimizer::kAdam};
  const weir::StepState state = weir::begun({}, options.beta1, options.beta2);
  std::vector<float> words(weir::kStepStateWords);
  weir::store_step_state(state, words);
  std::vector<weir::Element> expected(kWeights);
  const auto rule = weir::AdamRule::of(options, state);
  for (std::size_t i = 0; i < kWeights; ++i) {
    expected[i] = {w[i], first[i], second[i]};
    rule.step(expected[i], g[i]);
  }
  update(options, {.w = w, .first = first, .second = second, .copy = {}}, g, words);
  for (std::size_t i = 0; i < kWeights; ++i) {
    ASSERT_EQ(w[i], expected[i].w) << i;
    ASSERT_EQ(first[i], expected[i].first) << i;
    ASSERT_EQ(second[i], expected[i].second) << i;
  }
}

}  // namespace
