#include "allocator/base/error.hpp"
#include "kernels/loss.hpp"
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

class LossOnDevice : public weir::testing::GpuTest {};

TEST_F(LossOnDevice, L2LossHasTheCpusBitsAndHalfTheMeanSquare) {
  for (const Extent extent : extents()) {
    if (extent.size == 0) continue;
    SCOPED_TRACE(describe(extent));
    const std::vector<float> p = random(extent.size);
    const std::vector<float> t = random(extent.size);
    const DeviceArray<float> device_p(p, extent.offset);
    const DeviceArray<float> device_t(t, extent.offset);
    DeviceArray<float> loss(1);
    weir::cuda::l2_loss(stream(), device_p.view(), device_t.view(), loss.span(), workspace());
    std::vector<float> expected(1);
    weir::l2_loss(p, t, expected);
    expect_same_bits(loss.values(), expected);
    double exact = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double difference = static_cast<double>(p[i]) - static_cast<double>(t[i]);
      exact += difference * difference / (2.0 * static_cast<double>(p.size()));
    }
    // At most 3 * 37 roundings of the sum, 3 of a term, and those of the count and the division.
    expect_within(loss.values(), [&](std::size_t) {
      return Bounded{exact, 117 * kUnitRoundoff * exact};
    });
    EXPECT_TRUE(loss.guards_hold());
  }
}

TEST_F(LossOnDevice, L2LossGradientHasTheCpusBitsAlsoInPlace) {
  for (const Extent extent : extents()) {
    if (extent.size == 0) continue;
    SCOPED_TRACE(describe(extent));
    const std::vector<float> p = random(extent.size);
    const std::vector<float> t = random(extent.size);
    DeviceArray<float> device_p(p, extent.offset);
    const DeviceArray<float> device_t(t, extent.offset);
    DeviceArray<float> dp(extent.size, extent.offset);
    weir::cuda::l2_loss_gradient(stream(), device_p.view(), device_t.view(), dp.span());
    std::vector<float> expected(extent.size);
    weir::l2_loss_gradient(p, t, expected);
    const std::vector<float> found = dp.values();
    expect_same_bits(found, expected);
    const auto m = static_cast<double>(extent.size);
    expect_within(found, [&](std::size_t i) {
      const double exact = (static_cast<double>(p[i]) - static_cast<double>(t[i])) / m;
      return Bounded{exact, 3.03 * kUnitRoundoff * std::abs(exact)};
    });
    EXPECT_TRUE(dp.guards_hold());
    weir::cuda::l2_loss_gradient(stream(), device_p.view(), device_t.view(), device_p.span());
    expect_same_bits(device_p.values(), expected);
  }
}

TEST_F(LossOnDevice, BadSizesAreRefusedAndNothingChanges) {
  const DeviceArray<float> p(random(8));
  const DeviceArray<float> none(0);
  DeviceArray<float> loss(1);
  DeviceArray<float> dp(8);
  const auto loss_refused = [&](auto a, auto b, auto out, auto scratch) {
    EXPECT_THROW(weir::cuda::l2_loss(stream(), a, b, out, scratch), weir::UsageError);
  };
  loss_refused(none.view(), none.view(), loss.span(), workspace());
  loss_refused(p.view(), p.view().first(7), loss.span(), workspace());
  loss_refused(p.view(), p.view(), dp.span(), workspace());
  loss_refused(p.view(), p.view(), loss.span(), workspace().first(100));
  const auto gradient_refused = [&](auto a, auto b, auto out) {
    EXPECT_THROW(weir::cuda::l2_loss_gradient(stream(), a, b, out), weir::UsageError);
  };
  gradient_refused(none.view(), none.view(), dp.span().first(0));
  gradient_refused(p.view(), p.view().first(7), dp.span());
  gradient_refused(p.view(), p.view(), dp.span().first(7));
  EXPECT_TRUE(std::isnan(loss.values()[0]));
  EXPECT_TRUE(std::isnan(dp.values()[0]));
}

}  // namespace
