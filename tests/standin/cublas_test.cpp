// The stand-in cuBLAS.

#include <cublas_v2.h>

#include <cstdint>
#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInCublas : public StandIn {
 protected:
  StandInCublas() {
    ok(cublasCreate(&handle_));
    ok(cublasSetStream(handle_, stream_));
  }
  ~StandInCublas() override { ok(cublasDestroy(handle_)); }

  static float* to_device(const std::vector<float>& host) {
    void* memory = make_memory(host.size() * sizeof(float));
    ok(cudaMemcpy(memory, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return static_cast<float*>(memory);
  }
  /// c = alpha a b + beta c for columns of two: a = [1 3; 2 4], b = [5 7; 6 8].
  cublasStatus_t multiply(float alpha, float beta, float* c) {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, a_, 2, b_, 2, &beta, c,
                       2);
  }

  cublasHandle_t handle_ = nullptr;
  float* a_ = to_device({1, 2, 3, 4});
  float* b_ = to_device({5, 6, 7, 8});
};

TEST_F(StandInCublas, MultipliesColumnsLateOnItsStream) {
  float* c = to_device({100, 100, 100, 100});
  while_held([&] {
    ok(multiply(2, 1, c));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
    EXPECT_EQ(c[0], 100.0F);
  });
  sync();
  EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{146, 168, 162, 192}));
}

TEST_F(StandInCublas, RoundsFactorsToTheirFormatAndResultsToTheirs) {
  const float one = 1;
  const float zero = 0;
  const auto multiply_one = [&](const void* a, cudaDataType factors, void* c, cudaDataType result,
                                cublasComputeType_t compute) {
    return cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, factors, 1, a, factors,
                        1, &zero, c, result, 1, compute, CUBLAS_GEMM_DEFAULT);
  };
  float* const factor = to_device({1 + 0x1p-12F});
  float* const c = to_device({0});
  ok(multiply_one(factor, CUDA_R_32F, c, CUDA_R_32F, CUBLAS_COMPUTE_32F));
  sync();
  EXPECT_EQ(*c, (1 + 0x1p-12F) * (1 + 0x1p-12F));
  ok(multiply_one(factor, CUDA_R_32F, c, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32));
  sync();
  EXPECT_EQ(*c, 1.0F);
  auto* const word = reinterpret_cast<std::uint16_t*>(factor);
  *word = 0x5C00U;  // fp16's 256, bf16's 2^57
  ok(multiply_one(word, CUDA_R_16F, c, CUDA_R_32F, CUBLAS_COMPUTE_32F));
  sync();
  EXPECT_EQ(*c, 65536.0F);
  auto* const result = reinterpret_cast<std::uint16_t*>(c);
  ok(multiply_one(word, CUDA_R_16F, c, CUDA_R_16F, CUBLAS_COMPUTE_32F));
  sync();
  EXPECT_EQ(*result, 0x7C00U) << "an infinity";
  ok(multiply_one(word, CUDA_R_16BF, c, CUDA_R_16BF, CUBLAS_COMPUTE_32F));
  sync();
  EXPECT_EQ(*result, 0x7880U) << "2^114";
  EXPECT_EQ(multiply_one(word, CUDA_R_16F, c, CUDA_R_16BF, CUBLAS_COMPUTE_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(multiply_one(word, CUDA_R_16F, c, CUDA_R_16F, CUBLAS_COMPUTE_16F),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(StandInCublas, CountsAsALaunchAndFailsAsOne) {
  float* c = to_device({0, 0, 0, 0});
  const auto before = weir_standin_calls("cuLaunchKernel");
  ok(multiply(1, 0, c));
  EXPECT_EQ(weir_standin_calls("cuLaunchKernel"), before + 1);
  EXPECT_EQ(weir_standin_calls("cublasSgemm"), 1U);
  weir_standin_fail("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, kWeirStandinOnce);
  EXPECT_EQ(multiply(1, 0, c), CUBLAS_STATUS_EXECUTION_FAILED);
}

TEST_F(StandInCublas, CountsTheProductsThatUseItsOwnWorkspace) {
  float* c = to_device({0, 0, 0, 0});
  ok(multiply(1, 0, c));
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 1U) << "none was given";
  ok(cublasSetWorkspace(handle_, c, 16));
  ok(multiply(1, 0, c));
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 1U);
  ok(cublasSetStream(handle_, stream_));
  ok(multiply(1, 0, c));
  EXPECT_EQ(weir_standin_calls("cublasOwnWorkspace"), 2U) << "a stream takes it back";
}

TEST_F(StandInCublas, RefusesWhatCannotBe) {
  float* c = to_device({0, 0, 0, 0});
  const float one = 1;
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a_, 1, b_, 2, &one, c, 2),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(
      cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, -1, 2, 2, &one, a_, 2, b_, 2, &one, c, 2),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetWorkspace(handle_, c + 1, 1024), CUBLAS_STATUS_INVALID_VALUE);
  ok(cublasSetWorkspace(handle_, c, 16));
  EXPECT_EQ(cublasSetMathMode(nullptr, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
}  // namespace weir::standin::testing
