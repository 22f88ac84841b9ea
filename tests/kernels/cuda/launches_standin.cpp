// The number and kind of calls to the device, which only the stand-in reports.

#include "kernels/blas/blas_cuda.hpp"
#include "kernels/dense_cuda.hpp"
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

}  // namespace
