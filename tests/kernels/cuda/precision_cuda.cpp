// Conversions and the loss's scale on a device.

#include <algorithm>
#include <limits>

#include "allocator/base/error.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/precision/precision.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"
#include "tests/kernels/mixed_reference.hpp"

namespace {

using weir::HalfKind;
using weir::kStepStateWords;
using weir::StepState;
using weir::reference::floats_of;
using weir::reference::kEachHalfKind;
using weir::reference::words_of;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::Extent;
using weir::testing::extents;

using Words = std::vector<std::uint16_t>;

/// Also where floats and words reach a boundary at different elements, or never together.
constexpr std::array<std::pair<std::size_t, std::size_t>, 4> kOffsets{
    {{0, 0}, {3, 3}, {1, 5}, {1, 0}}};

class PrecisionOnDevice : public weir::testing::GpuTest {
 protected:
  /// Floats of every kind: their bits are random.
  std::vector<float> any_bits(std::size_t count) {
    std::mt19937_64 draw(weir::testing::fresh_seed());
    std::vector<float> x(count);
    for (float& value : x) value = std::bit_cast<float>(static_cast<std::uint32_t>(draw()));
    return x;
  }
};

TEST_F(PrecisionOnDevice, ToHalfHasTheCpusBits) {
  for (const auto& [x_offset, words_offset] : kOffsets) {
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 1027U, 100003U}) {
      SCOPED_TRACE(std::to_string(size) + " at " + std::to_string(x_offset));
      const std::vector<float> x = any_bits(size);
      const DeviceArray<float> device_x(x, x_offset);
      for (const HalfKind kind : kEachHalfKind) {
        DeviceArray<std::uint16_t> words(size, words_offset);
        weir::cuda::to_half(stream(), device_x.view(), words.span(), kind);
        EXPECT_TRUE(words.values() == words_of(x, kind));
        EXPECT_TRUE(words.guards_hold());
      }
    }
  }
}

TEST_F(PrecisionOnDevice, FromHalfHasTheCpusBitsForEveryWord) {
  Words words(0x10000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  for (const auto& [x_offset, words_offset] : kOffsets) {
    const DeviceArray<std::uint16_t> device_words(words, words_offset);
    for (const HalfKind kind : kEachHalfKind) {
      DeviceArray<float> x(words.size(), x_offset);
      weir::cuda::from_half(stream(), device_words.view(), x.span(), kind);
      expect_same_bits(x.values(), floats_of(words, kind));
      EXPECT_TRUE(x.guards_hold());
    }
  }
}

std::vector<float> state_words(const StepState& state) {
  std::vector<float> words(kStepStateWords);
  store_step_state(state, words);
  return words;
}
const StepState kUsedState{
    .loss_scale = 65536, .clean_steps = 3, .skipped_steps = 4, .steps = 5, .beta1_power = 0.5};

TEST_F(PrecisionOnDevice, FlagNotFiniteFindsOneAnywhereAndChangesNothingElse) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(weir::testing::describe(extent));
    DeviceArray<float> state(state_words(kUsedState));
    std::vector<float> x = random(extent.size);
    if (extent.size > 2) {
      x[0] = std::numeric_limits<float>::max();
      x[1] = -std::numeric_limits<float>::denorm_min();
    }
    weir::cuda::flag_not_finite(stream(), DeviceArray<float>(x, extent.offset).view(),
                                state.span());
    EXPECT_EQ(weir::load_step_state(state.values()), kUsedState) << "all are finite";
    StepState expected = kUsedState;
    expected.overflow = 1;
    // The first, one in the middle and the last.
    for (const std::size_t at : {std::size_t{0}, extent.size / 2, extent.size - 1}) {
      if (extent.size == 0) break;
      for (const float bad : {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(), weir::reference::kNan}) {
        std::vector<float> with_one = x;
        with_one[at] = bad;
        state.assign(state_words(kUsedState));
        weir::cuda::flag_not_finite(stream(), DeviceArray<float>(with_one, extent.offset).view(),
                                    state.span());
        EXPECT_EQ(weir::load_step_state(state.values()), expected) << bad << " at " << at;
      }
    }
    // It stays.
    if (extent.size == 0) continue;
    weir::cuda::flag_not_finite(stream(), DeviceArray<float>(x, extent.offset).view(),
                                state.span());
    EXPECT_EQ(weir::load_step_state(state.values()), expected);
    EXPECT_TRUE(state.guards_hold());
  }
}

TEST_F(PrecisionOnDevice, ScaleByHasTheCpusBits) {
  const std::vector<float> words = state_words(kUsedState);
  const DeviceArray<float> state(words);
  for (const Extent extent : extents()) {
    SCOPED_TRACE(weir::testing::describe(extent));
    std::vector<float> expected = random(extent.size);
    if (extent.size > 2) expected[2] = std::numeric_limits<float>::max();
    DeviceArray<float> x(expected, extent.offset);
    weir::cuda::scale_by(stream(), state.view(), x.span());
    weir::scale_by(words, expected);
    expect_same_bits(x.values(), expected);
    EXPECT_TRUE(x.guards_hold());
  }
}

TEST_F(PrecisionOnDevice, ScaleToHalfHasTheCpusBits) {
  const std::vector<float> state_of = state_words(kUsedState);
  const DeviceArray<float> state(state_of);
  for (const auto& [x_offset, words_offset] : kOffsets) {
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 100003U}) {
      SCOPED_TRACE(std::to_string(size) + " at " + std::to_string(x_offset));
      for (const HalfKind kind : kEachHalfKind) {
        std::vector<float> expected = random(size);
        DeviceArray<float> x(expected, x_offset);
        DeviceArray<std::uint16_t> words(size, words_offset);
        weir::cuda::scale_to_half(stream(), state.view(), x.span(), words.span(), kind);
        Words expected_words(size);
        weir::scale_to_half(state_of, expected, expected_words, kind);
        expect_same_bits(x.values(), expected);
        EXPECT_TRUE(words.values() == expected_words);
        EXPECT_TRUE(x.guards_hold());
        EXPECT_TRUE(words.guards_hold());
      }
    }
  }
}

TEST_F(PrecisionOnDevice, OtherSizesAreRefusedAndNothingChanges) {
  DeviceArray<float> x(random(3));
  const std::vector<float> before = x.values();
  DeviceArray<float> state(state_words(kUsedState), 1);
  DeviceArray<std::uint16_t> words(Words(2, 7));
  EXPECT_THROW(weir::cuda::to_half(stream(), x.view(), words.span(), HalfKind::kBf16),
               weir::UsageError);
  EXPECT_THROW(weir::cuda::from_half(stream(), words.view(), x.span(), HalfKind::kBf16),
               weir::UsageError);
  // The state is not aligned.
  EXPECT_THROW(weir::cuda::flag_not_finite(stream(), x.view(), state.span()), weir::UsageError);
  EXPECT_THROW(weir::cuda::scale_by(stream(), state.view(), x.span()), weir::UsageError);
  EXPECT_THROW(weir::cuda::scale_by(stream(), state.view().first(15), x.span()), weir::UsageError);
  expect_same_bits(x.values(), before);
  EXPECT_EQ(words.values(), Words(2, 7));
}

}  // namespace
