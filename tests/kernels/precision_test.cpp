// Arrays in the formats of 16 bits, and the two ends of loss scaling.

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/parts/step_state.hpp"
#include "tests/kernels/device.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::HalfKind;
using weir::StepState;
using weir::UsageError;
using weir::reference::kEachHalfKind;
using weir::reference::kNan;
using weir::reference::words_of;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::Extent;
using weir::testing::for_each_extent;

using Words = std::vector<std::uint16_t>;

constexpr float kTooLarge = std::numeric_limits<float>::infinity();
constexpr std::array<std::size_t, 7> kHalfSizes{0, 1, 7, 8, 9, 1027, 100003};
/// Of floats and of words. Also where they reach a boundary at different elements, or never
/// together.
constexpr std::array<std::pair<std::size_t, std::size_t>, 4> kHalfOffsets{
    {{0, 0}, {3, 3}, {1, 5}, {1, 0}}};

std::vector<float> state_words(const StepState& state) {
  std::vector<float> words(weir::kStepStateWords);
  store_step_state(state, words);
  return words;
}
StepState used_state(std::uint32_t overflow = 0) {
  return {.loss_scale = 65536,
          .clean_steps = 3,
          .skipped_steps = 4,
          .overflow = overflow,
          .steps = 5,
          .beta1_power = 0.5};
}
std::uint16_t word_of(float value, HalfKind kind) {
  return kind == HalfKind::kBf16 ? weir::bf16_of_float(value) : weir::fp16_of_float(value);
}

class Halves : public weir::testing::KernelTest {
 protected:
  /// Floats of every kind: their bits are random.
  static std::vector<float> any_bits(std::size_t count) {
    std::mt19937_64 draw(weir::testing::fresh_seed());
    std::vector<float> x(count);
    for (float& value : x) value = std::bit_cast<float>(static_cast<std::uint32_t>(draw()));
    return x;
  }
};

TEST_F(Halves, AreTheRoundedFloats) {
  for (const auto& [x_offset, words_offset] : kHalfOffsets) {
    for (const HalfKind kind : kEachHalfKind) {
      for (const std::size_t size : kHalfSizes) {
        SCOPED_TRACE(std::to_string(size) + " at " + std::to_string(x_offset));
        const std::vector<float> x = any_bits(size);
        Array<std::uint16_t> words(size, words_offset);
        to_half(Array<float>(x, x_offset).view(), words.span(), kind);
        Words expected(size);
        std::ranges::transform(x, expected.begin(), [&](float v) { return word_of(v, kind); });
        EXPECT_TRUE(words.values() == expected);
      }
    }
  }
}

class LossScaling : public weir::testing::KernelTest {
 protected:
  StepState flagged(const std::vector<float>& x, const StepState& before, std::size_t offset = 0) {
    Array<float> state(state_words(before));
    flag_not_finite(Array<float>(x, offset).view(), state.span());
    return weir::load_step_state(state.values());
  }
};

TEST_F(LossScaling, FlagsAnInfinityOrANanAnywhereAndChangesNothingElse) {
  for_each_extent([&](Extent extent) {
    std::vector<float> x = random(extent.size);
    const std::array<float, 5> finite{
        -0.0F, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
        std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::min()};
    if (x.size() > 5) std::ranges::copy(finite, x.begin());
    EXPECT_EQ(flagged(x, used_state(), extent.offset), used_state()) << "all are finite";
    EXPECT_EQ(flagged(x, used_state(1), extent.offset), used_state(1)) << "it stays";
    // Everywhere if there are few, otherwise the first, one in the middle and the last.
    const std::size_t step = x.size() > 50 ? x.size() / 2 : 1;
    for (std::size_t at = 0; at < x.size(); at += step) {
      for (const float bad : {kTooLarge, -kTooLarge, kNan, -kNan}) {
        const std::size_t place = at + step >= x.size() ? x.size() - 1 : at;
        std::vector<float> with_one = x;
        with_one[place] = bad;
        ASSERT_EQ(flagged(with_one, used_state(), extent.offset), used_state(1))
            << bad << " at " << place;
      }
    }
  });
}

TEST_F(LossScaling, ScalesAndRoundsInOnePassAndOverflowsToInfinity) {
  const Array<float> state(state_words(used_state()));
  for (const auto& [x_offset, words_offset] : kHalfOffsets) {
    for (const std::size_t size : kHalfSizes) {
      SCOPED_TRACE(std::to_string(size) + " at " + std::to_string(x_offset));
      for (const HalfKind kind : kEachHalfKind) {
        std::vector<float> x = random(size);
        if (size > 5) x[5] = 0x1p-30F;  // would be nothing in fp16 without the scale
        if (size > 2) {
          x[1] = std::numeric_limits<float>::max();
          x[2] = -0x1p-149F;
        }
        Array<float> scaled(x, x_offset);
        Array<std::uint16_t> words(size, words_offset);
        scale_to_half(state.view(), scaled.span(), words.span(), kind);
        for (float& value : x) value *= 65536;
        expect_same_bits(scaled.values(), x);
        EXPECT_TRUE(words.values() == words_of(x, kind));
      }
    }
  }
}

TEST_F(LossScaling, AndConversionsRefuseOtherSizesAndChangeNothing) {
  const std::vector<float> before{1, kNan, 3};
  Array<float> x(before);
  Array<float> state(state_words(used_state()));
  Array<std::uint16_t> words(Words(2, 7));
  const auto fifteen = state.span().first(15);
  EXPECT_THROW(to_half(x.view(), words.span(), HalfKind::kBf16), UsageError);
  EXPECT_THROW(flag_not_finite(x.view(), fifteen), UsageError);
  EXPECT_THROW(scale_to_half(state.view(), x.span(), words.span(), HalfKind::kFp16), UsageError);
  expect_same_bits(x.values(), before);
  EXPECT_EQ(words.values(), Words(2, 7));
  EXPECT_EQ(weir::load_step_state(state.values()), used_state());
}

}  // namespace
