// What kernels are made of: checks of sizes, Philox, and vectors of any width.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/rules.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/philox.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/sparse/losses.hpp"
#include "kernels/sparse/row_arithmetic.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace {

using weir::philox4x32;
using weir::PhiloxKey;
using weir::PhiloxWords;
using weir::VectorWidth;
using weir::reference::ClassLists;
using weir::reference::random_numbers;

constexpr weir::Operand kOperand{"some_kernel", "w"};

TEST(RequireMatrix, TakesRowsTimesColumnsAndNothingElse) {
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 6, 2, 3));
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 0, 0, 3));
  EXPECT_NO_THROW(weir::require_matrix(kOperand, 0, 3, 0));
  EXPECT_THROW(weir::require_matrix(kOperand, 5, 2, 3), weir::UsageError);
  EXPECT_THROW(weir::require_matrix(kOperand, 7, 2, 3), weir::UsageError);
}

TEST(RequireMatrix, RefusesAProductThatWrapsToTheRightSize) {
  constexpr std::size_t kHalf = std::size_t{1} << 32U;
  EXPECT_THROW(weir::require_matrix(kOperand, 0, kHalf, kHalf), weir::UsageError);
}

TEST(RequireElements, NamesTheKernelTheOperandAndBothSizes) {
  try {
    weir::require_elements(kOperand, 3, 4);
    FAIL() << "no error";
  } catch (const weir::UsageError& error) {
    EXPECT_STREQ(error.what(), "some_kernel: w has 3 elements, expected 4");
  }
}

struct KnownAnswer {
  PhiloxWords counter;
  PhiloxKey key;
  PhiloxWords result;
};

// The lines "philox4x32 10" of Random123's tests/kat_vectors.
constexpr std::array<KnownAnswer, 3> kKnownAnswers{{
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
}};

constexpr bool compiler_gives(const KnownAnswer& known) {
  return philox4x32(known.counter, known.key) == known.result;
}
static_assert(compiler_gives(kKnownAnswers[0]));
static_assert(compiler_gives(kKnownAnswers[1]));
static_assert(compiler_gives(kKnownAnswers[2]));

TEST(Philox, GivesTheKnownAnswersOfRandom123AtRunTime) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const volatile std::uint32_t first = known.counter.x;
    PhiloxWords counter = known.counter;
    counter.x = first;
    const PhiloxWords drawn = philox4x32(counter, known.key);
    EXPECT_EQ(drawn.x, known.result.x);
    EXPECT_EQ(drawn.y, known.result.y);
    EXPECT_EQ(drawn.z, known.result.z);
    EXPECT_EQ(drawn.w, known.result.w);
  }
}

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
