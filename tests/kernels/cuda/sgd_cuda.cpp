#include "allocator/base/error.hpp"
#include "kernels/optimizer/update.hpp"
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

constexpr float kRate = 0.03F;
constexpr float kMomentum = 0.9F;

/// a + b c with product and sum rounded; b and c are floats, and a is known up to `error`.
Bounded step(double a, double b, double c, double error = 0) {
  const double product = b * c;
  const double sum = a + product;
  return {sum, error + 1.01 * kUnitRoundoff * (std::abs(product) + std::abs(sum))};
}

class SgdOnDevice : public weir::testing::GpuTest {};

TEST_F(SgdOnDevice, StepsHaveTheCpusBits) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> before = random(extent.size);
    const std::vector<float> g = random(extent.size);
    DeviceArray<float> w(before, extent.offset);
    const DeviceArray<float> device_g(g, extent.offset);
    weir::cuda::sgd(stream(), w.span(), device_g.view(), kRate);
    std::vector<float> expected = before;
    weir::sgd(expected, g, kRate);
    const std::vector<float> found = w.values();
    expect_same_bits(found, expected);
    expect_within(
        found, [&](std::size_t i) { return step(before[i], -static_cast<double>(kRate), g[i]); });
    EXPECT_TRUE(w.guards_hold());
  }
}

TEST_F(SgdOnDevice, StepsWithMomentumHaveTheCpusBits) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(describe(extent));
    const std::vector<float> w_before = random(extent.size);
    const std::vector<float> v_before = random(extent.size);
    const std::vector<float> g = random(extent.size);
    DeviceArray<float> w(w_before, extent.offset);
    DeviceArray<float> v(v_before, extent.offset);
    const DeviceArray<float> device_g(g, extent.offset);
    weir::cuda::sgd_momentum(stream(), w.span(), device_g.view(), v.span(), kRate, kMomentum);
    std::vector<float> w_expected = w_before;
    std::vector<float> v_expected = v_before;
    weir::sgd_momentum(w_expected, g, v_expected, kRate, kMomentum);
    expect_same_bits(v.values(), v_expected);
    expect_same_bits(w.values(), w_expected);
    const auto velocity = [&](std::size_t i) {
      return step(g[i], static_cast<double>(kMomentum), v_before[i]);
    };
    expect_within(v.values(), velocity);
    expect_within(w.values(), [&](std::size_t i) {
      const Bounded now = velocity(i);
      const Bounded exact = step(w_before[i], -static_cast<double>(kRate), now.value);
      return Bounded{exact.value, exact.error + 1.01 * static_cast<double>(kRate) * now.error};
    });
    EXPECT_TRUE(w.guards_hold());
    EXPECT_TRUE(v.guards_hold());
  }
}

TEST_F(SgdOnDevice, SizesThatDifferAreRefusedAndNothingChanges) {
  const std::vector<float> before = random(8);
  DeviceArray<float> w(before);
  DeviceArray<float> v(before);
  const DeviceArray<float> g(before);
  const auto refused = [&](auto weights, auto gradients, auto velocities) {
    EXPECT_THROW(
        weir::cuda::sgd_momentum(stream(), weights, gradients, velocities, kRate, kMomentum),
        weir::UsageError);
  };
  EXPECT_THROW(weir::cuda::sgd(stream(), w.span(), g.view().first(7), kRate), weir::UsageError);
  refused(w.span(), g.view().first(7), v.span());
  refused(w.span(), g.view(), v.span().first(7));
  expect_same_bits(w.values(), before);
  expect_same_bits(v.values(), before);
}

}  // namespace
