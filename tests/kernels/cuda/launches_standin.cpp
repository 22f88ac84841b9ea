// The number and kind of calls to the device, which only the stand-in reports.

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"
#include "tests/standin/standin.hpp"

namespace {

using weir::DenseShape;
using weir::testing::DeviceArray;

class LaunchesOnStandIn : public weir::testing::GpuTest {};

TEST_F(LaunchesOnStandIn, ABiasGradientTakesTwoForEachPiece) {
  struct Case {
    DenseShape shape;
    std::uint64_t launches;
  };
  for (const Case& one :
       {Case{{.m = 1024, .k = 1, .n = 256}, 2}, Case{{.m = 1, .k = 1, .n = (1U << 20U) + 4}, 4}}) {
    const DeviceArray<float> dy(one.shape.m * one.shape.n);
    DeviceArray<float> db(one.shape.n);
    weir_standin_clear_counters();
    weir::cuda::dense_bias_gradient(stream(), one.shape, dy.view(), db.span(), workspace());
    EXPECT_EQ(weir_standin_calls("cuLaunchKernel"), one.launches)
        << one.shape.m << " x " << one.shape.n;
  }
}

TEST_F(LaunchesOnStandIn, AProductUsesTheWorkspaceItIsGivenEachTime) {
  const DeviceArray<float> a(random(6));
  const DeviceArray<float> b(random(6));
  DeviceArray<float> c(4);
  weir::cuda::CublasHandle blas;
  weir_standin_clear_counters();
  for (int i = 0; i < 2; ++i) {
    gemm(blas, stream(), {.m = 2, .n = 2, .k = 3}, a.view(), b.view(), c.span(), {}, workspace());
  }
  EXPECT_EQ(weir_standin_calls("cublasSgemm"), 2U);
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 0U);
}

TEST_F(LaunchesOnStandIn, AProductAsksForItsPrecisionAndUsesTheWorkspaceItIsGiven) {
  weir::cuda::CublasHandle blas;
  const weir::GemmShape shape{.m = 1, .n = 1, .k = 1};
  const DeviceArray<float> a(std::vector<float>{1 + 0x1p-12F});
  const DeviceArray<float> b(std::vector<float>{1});
  DeviceArray<float> c(1);
  weir_standin_clear_counters();
  gemm(blas, stream(), weir::Precision::kTf32, shape, a.view(), b.view(), c.span(), {},
       workspace());
  EXPECT_EQ(c.values()[0], 1.0F) << "not rounded to tf32";
  EXPECT_EQ(weir_standin_calls("cublasGemmEx"), 1U);
  gemm(blas, stream(), weir::Precision::kFloat32, shape, a.view(), b.view(), c.span(), {},
       workspace());
  EXPECT_EQ(c.values()[0], 1 + 0x1p-12F);
  EXPECT_EQ(weir_standin_calls("cublasSgemm"), 1U);
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 0U);
}

TEST_F(LaunchesOnStandIn, AProductThatCublasRefusesThrowsAndTheNextOneRuns) {
  weir::cuda::CublasHandle blas;
  const DeviceArray<std::uint16_t> one(std::vector<std::uint16_t>{0x3F80U});
  DeviceArray<float> c(1);
  const auto multiply = [&] {
    gemm(blas, stream(), weir::HalfKind::kBf16, {.m = 1, .n = 1, .k = 1}, one.view(), one.view(),
         c.span(), {}, workspace());
  };
  weir_standin_fail("cublasGemmEx", 1, 15, kWeirStandinOnce);  // CUBLAS_STATUS_NOT_SUPPORTED
  EXPECT_THROW(multiply(), weir::Error);
  multiply();
  EXPECT_EQ(c.values()[0], 1.0F);
}

}  // namespace
