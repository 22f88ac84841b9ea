#include "allocator/base/error.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"

namespace {

using weir::reference::Bounded;
using weir::reference::kUnitRoundoff;
using weir::testing::describe;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::Extent;
using weir::testing::extents;

constexpr float kAlpha = -1.3F;

/// `value`, rounded once.
Bounded rounded_once(double value) { return {value, kUnitRoundoff * std::abs(value)}; }

class ElementwiseOnDevice : public weir::testing::GpuTest {};

TEST_F(ElementwiseOnDevice, FillWritesEveryElementAndNothingElse) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const float value = random(1)[0];
    DeviceArray<float> out(extent.size, extent.offset);
    weir::cuda::fill(stream(), out.span(), value);
    expect_same_bits(out.values(), std::vector<float>(extent.size, value));
    EXPECT_TRUE(out.guards_hold());
  }
}

TEST_F(ElementwiseOnDevice, AddHasTheCpusBitsAndTheSum) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> x = random(extent.size);
    const std::vector<float> before = random(extent.size);
    const DeviceArray<float> device_x(x, extent.offset);
    DeviceArray<float> total(before, extent.offset);
    weir::cuda::add(stream(), device_x.view(), total.span());
    std::vector<float> expected = before;
    weir::add(x, expected);
    const std::vector<float> found = total.values();
    expect_same_bits(found, expected);
    expect_within(found, [&](std::size_t i) {
      return rounded_once(static_cast<double>(before[i]) + static_cast<double>(x[i]));
    });
    EXPECT_TRUE(total.guards_hold());
    expect_same_bits(device_x.values(), x);
  }
}

TEST_F(ElementwiseOnDevice, AxpyHasTheCpusBitsAndRoundsTheProductAndTheSum) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> x = random(extent.size);
    const std::vector<float> before = random(extent.size);
    const DeviceArray<float> device_x(x, extent.offset);
    DeviceArray<float> y(before, extent.offset);
    weir::cuda::axpy(stream(), kAlpha, device_x.view(), y.span());
    std::vector<float> expected = before;
    weir::axpy(kAlpha, x, expected);
    const std::vector<float> found = y.values();
    expect_same_bits(found, expected);
    expect_within(found, [&](std::size_t i) {
      const double product = static_cast<double>(kAlpha) * static_cast<double>(x[i]);
      const double sum = static_cast<double>(before[i]) + product;
      return Bounded{sum, 1.01 * kUnitRoundoff * (std::abs(product) + std::abs(sum))};
    });
    EXPECT_TRUE(y.guards_hold());
  }
}

TEST_F(ElementwiseOnDevice, ScaleHasTheCpusBitsAndTheProduct) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> before = random(extent.size);
    DeviceArray<float> x(before, extent.offset);
    weir::cuda::scale(stream(), kAlpha, x.span());
    std::vector<float> expected = before;
    weir::scale(kAlpha, expected);
    const std::vector<float> found = x.values();
    expect_same_bits(found, expected);
    expect_within(found, [&](std::size_t i) {
      return rounded_once(static_cast<double>(kAlpha) * static_cast<double>(before[i]));
    });
    EXPECT_TRUE(x.guards_hold());
  }
}

TEST_F(ElementwiseOnDevice, SpansThatReachABoundaryAtDifferentElementsGiveTheSameBits) {
  for (const std::size_t size : {5U, 1025U}) {
    for (std::size_t x_offset = 0; x_offset < 4; ++x_offset) {
      for (std::size_t y_offset = 0; y_offset < 4; ++y_offset) {
        const std::vector<float> x = random(size);
        std::vector<float> expected = random(size);
        const DeviceArray<float> device_x(x, x_offset);
        DeviceArray<float> y(expected, y_offset);
        weir::cuda::axpy(stream(), kAlpha, device_x.view(), y.span());
        weir::axpy(kAlpha, x, expected);
        expect_same_bits(y.values(), expected);
        EXPECT_TRUE(y.guards_hold());
      }
    }
  }
}

TEST_F(ElementwiseOnDevice, AnInputMayBeTheOutputItself) {
  for (const Extent extent : {Extent{5, 1}, Extent{1025, 0}}) {
    std::vector<float> expected = random(extent.size);
    DeviceArray<float> x(expected, extent.offset);
    weir::cuda::add(stream(), x.view(), x.span());
    weir::cuda::axpy(stream(), kAlpha, x.view(), x.span());
    weir::add(expected, expected);
    weir::axpy(kAlpha, expected, expected);
    expect_same_bits(x.values(), expected);
  }
}

TEST_F(ElementwiseOnDevice, SizesThatDifferAreRefusedAndNothingChanges) {
  const std::vector<float> before = random(8);
  const DeviceArray<float> x(before);
  DeviceArray<float> y(before);
  const auto seven = x.view().first(7);
  EXPECT_THROW(weir::cuda::add(stream(), seven, y.span()), weir::UsageError);
  EXPECT_THROW(weir::cuda::axpy(stream(), kAlpha, seven, y.span()), weir::UsageError);
  expect_same_bits(y.values(), before);
}

}  // namespace
