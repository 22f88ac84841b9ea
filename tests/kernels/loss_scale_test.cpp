#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/precision/precision.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::flag_not_finite;
using weir::HalfKind;
using weir::kStepStateWords;
using weir::load_step_state;
using weir::scale_by;
using weir::scale_to_half;
using weir::StepState;
using weir::reference::kNan;
using weir::reference::random_numbers;

constexpr float kTooLarge = std::numeric_limits<float>::infinity();

StepState used_state(float scale) {
  return {
      .loss_scale = scale, .clean_steps = 3, .skipped_steps = 4, .steps = 5, .beta1_power = 0.5};
}

std::vector<float> as_words(const StepState& state) {
  std::vector<float> words(kStepStateWords);
  store_step_state(state, words);
  return words;
}

TEST(FlagNotFinite, SetsTheFlagForEveryPlaceOfAnInfinityOrANan) {
  const std::vector<float> finite = random_numbers(67, 1);
  for (const float bad : {kTooLarge, -kTooLarge, kNan, -kNan}) {
    for (std::size_t at = 0; at < finite.size(); ++at) {
      std::vector<float> x = finite;
      x[at] = bad;
      std::vector<float> state = as_words(used_state(2));
      flag_not_finite(x, state);
      StepState expected = used_state(2);
      expected.overflow = 1;
      ASSERT_EQ(load_step_state(state), expected) << bad << " at " << at;
    }
  }
}

TEST(FlagNotFinite, LeavesTheStateAloneForEveryFiniteNumber) {
  const std::vector<float> x{0.0F,
                             -0.0F,
                             std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::lowest(),
                             std::numeric_limits<float>::denorm_min(),
                             -std::numeric_limits<float>::min()};
  for (const std::uint32_t before : {0U, 1U}) {
    StepState expected = used_state(2);
    expected.overflow = before;
    std::vector<float> state = as_words(expected);
    flag_not_finite(x, state);
    flag_not_finite({}, state);
    EXPECT_EQ(load_step_state(state), expected);
  }
}

TEST(ScaleBy, MultipliesByTheLossScaleAndOverflowsToInfinity) {
  std::vector<float> x = random_numbers(67, 1);
  x.push_back(std::numeric_limits<float>::max());
  x.push_back(-0x1p-149F);
  const std::vector<float> before = x;
  scale_by(as_words(used_state(65536)), x);
  for (std::size_t i = 0; i + 2 < x.size(); ++i) ASSERT_EQ(x[i], 65536 * before[i]) << i;
  EXPECT_EQ(x[67], kTooLarge);
  EXPECT_EQ(x[68], -0x1p-133F);
}

TEST(ScaleToHalf, IsScaleByAndToHalf) {
  for (const HalfKind kind : weir::reference::kEachHalfKind) {
    std::vector<float> x = random_numbers(67, 1);
    x[5] = 0x1p-30F;  // would be nothing in fp16 without the scale
    std::vector<float> expected = x;
    const std::vector<float> state = as_words(used_state(65536));
    std::vector<std::uint16_t> words(x.size(), 0x7FFFU);
    scale_to_half(state, x, words, kind);
    scale_by(state, expected);
    EXPECT_EQ(x, expected);
    EXPECT_EQ(words, weir::reference::words_of(expected, kind));
    EXPECT_NE(words[5], 0);
  }
}

TEST(LossScale, RefusesOtherSizesAndChangesNothing) {
  const std::vector<float> bad(3, kNan);
  std::vector<float> state = as_words(used_state(2));
  std::vector<float> x(3, 1.0F);
  std::vector<std::uint16_t> words(2, 7);
  EXPECT_THROW(flag_not_finite(bad, std::span(state).first(15)), weir::UsageError);
  EXPECT_THROW(scale_by(std::span(state).first(15), x), weir::UsageError);
  EXPECT_THROW(scale_to_half(state, x, words, HalfKind::kFp16), weir::UsageError);
  EXPECT_EQ(load_step_state(state), used_state(2));
  EXPECT_EQ(x, std::vector<float>(3, 1.0F));
  EXPECT_EQ(words, std::vector<std::uint16_t>(2, 7));
}

}  // namespace
