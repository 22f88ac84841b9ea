// The number and kind of calls to the device, which only the stand-in reports.

#include "allocator/base/error.hpp"
#include "tests/kernels/device.hpp"
#include "tests/standin/standin.hpp"

namespace {

using weir::DenseShape;
using weir::testing::Array;

class LaunchesOnStandIn : public weir::testing::KernelTest {};

TEST_F(LaunchesOnStandIn, ABiasGradientTakesTwoForEachPiece) {
  struct Case {
    DenseShape shape;
    std::uint64_t launches;
  };
  for (const Case& one :
       {Case{{.m = 1024, .k = 1, .n = 256}, 2}, Case{{.m = 1, .k = 1, .n = (1U << 20U) + 4}, 4}}) {
    const Array<float> dy(one.shape.m * one.shape.n);
    Array<float> db(one.shape.n);
    weir_standin_clear_counters();
    weir::cuda::dense_bias_gradient(stream(), one.shape, dy.view(), db.span(), workspace());
    EXPECT_EQ(weir_standin_calls("cuLaunchKernel"), one.launches)
        << one.shape.m << " x " << one.shape.n;
  }
}

TEST_F(LaunchesOnStandIn, AProductUsesTheWorkspaceItIsGivenEachTime) {
  const Array<float> a(random(6));
  const Array<float> b(random(6));
  Array<float> c(4);
  weir::cuda::CublasHandle blas;
  weir_standin_clear_counters();
  for (int i = 0; i < 2; ++i) {
    weir::cuda::gemm(blas, stream(), weir::Precision::kFloat32, {.m = 2, .n = 2, .k = 3}, a.view(),
                     b.view(), c.span(), {}, workspace());
  }
  EXPECT_EQ(weir_standin_calls("cublasSgemm"), 2U);
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 0U);
}

TEST_F(LaunchesOnStandIn, AProductAsksForItsPrecisionAndUsesTheWorkspaceItIsGiven) {
  weir::cuda::CublasHandle blas;
  const weir::GemmShape shape{.m = 1, .n = 1, .k = 1};
  const Array<float> a(std::vector<float>{1 + 0x1p-12F});
  const Array<float> b(std::vector<float>{1});
  Array<float> c(1);
  weir_standin_clear_counters();
  weir::cuda::gemm(blas, stream(), weir::Precision::kTf32, shape, a.view(), b.view(), c.span(), {},
                   workspace());
  EXPECT_EQ(c.values()[0], 1.0F) << "not rounded to tf32";
  EXPECT_EQ(weir_standin_calls("cublasGemmEx"), 1U);
  weir::cuda::gemm(blas, stream(), weir::Precision::kFloat32, shape, a.view(), b.view(), c.span(),
                   {}, workspace());
  EXPECT_EQ(c.values()[0], 1 + 0x1p-12F);
  EXPECT_EQ(weir_standin_calls("cublasSgemm"), 1U);
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 0U);
}

TEST_F(LaunchesOnStandIn, AProductThatCublasRefusesThrowsAndTheNextOneRuns) {
  weir::cuda::CublasHandle blas;
  const Array<std::uint16_t> one(std::vector<std::uint16_t>{0x3F80U});
  Array<float> c(1);
  const auto multiply = [&] {
    weir::cuda::gemm(blas, stream(), weir::HalfKind::kBf16, {.m = 1, .n = 1, .k = 1}, one.view(),
                     one.view(), c.span(), {}, workspace());
  };
  weir_standin_fail("cublasGemmEx", 1, 15, kWeirStandinOnce);  // CUBLAS_STATUS_NOT_SUPPORTED
  EXPECT_THROW(multiply(), weir::Error);
  multiply();
  EXPECT_EQ(c.values()[0], 1.0F);
}

}  // namespace
