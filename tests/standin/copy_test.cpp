// Copies and sets: what they wait for, and what they refuse.

#include <numeric>
#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInCopy : public StandIn {};

TEST_F(StandInCopy, GoesThereAndBack) {
  std::vector<unsigned char> out(512);
  std::iota(out.begin(), out.end(), static_cast<unsigned char>(0));
  std::vector<unsigned char> in(512);
  unsigned char* first = make_memory();
  unsigned char* second = make_memory();
  ASSERT_EQ(cudaMemcpy(first, out.data(), 512, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(second, first, 512, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(in.data(), second, 512, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(in, out);
  std::vector<unsigned char> again(512);
  ASSERT_EQ(cudaMemcpy(again.data(), second, 512, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(again, out);
}

TEST_F(StandInCopy, FromPinnedMemoryReadsLate) {
  unsigned char* memory = make_memory();
  unsigned char* pinned = make_pinned();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  std::fill_n(pinned, 512, static_cast<unsigned char>(1));
  ASSERT_EQ(cudaMemcpyAsync(memory, pinned, 512, cudaMemcpyHostToDevice, stream), cudaSuccess);
  std::fill_n(pinned, 512, static_cast<unsigned char>(2));
  weir_standin_release(stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInCopy, FromPageableMemoryReadsAtOnce) {
  unsigned char* memory = make_memory();
  std::vector<unsigned char> pageable(512, 1);
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ASSERT_EQ(cudaMemcpyAsync(memory, pageable.data(), 512, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  std::fill(pageable.begin(), pageable.end(), static_cast<unsigned char>(2));
  weir_standin_release(stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 1));
}

TEST_F(StandInCopy, ToPageableMemoryIsDoneWhenItReturns) {
  unsigned char* memory = make_memory();
  std::vector<unsigned char> pageable(512);
  cudaStream_t stream = make_stream();
  ASSERT_EQ(cudaMemsetAsync(memory, 3, 512, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pageable.data(), memory, 512, cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_TRUE(all_bytes(pageable.data(), 3));
}

TEST_F(StandInCopy, ToPinnedMemoryIsNot) {
  unsigned char* memory = make_memory();
  unsigned char* pinned = make_pinned();
  cudaStream_t stream = make_stream();
  weir_standin_hold(stream);
  ASSERT_EQ(cudaMemcpyAsync(pinned, memory, 512, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  weir_standin_release(stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_TRUE(all_bytes(pinned, 0xA5));
}

TEST_F(StandInCopy, BeyondTheEndOfABlockIsRefused) {
  unsigned char* memory = make_memory(1000);
  std::vector<unsigned char> host(2000);
  EXPECT_EQ(cudaMemcpy(memory, host.data(), 1001, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory + 500, host.data(), 501, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory + 500, host.data(), 500, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, 1001), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory, 0, 1000), cudaSuccess);
}

TEST_F(StandInCopy, InTheWrongDirectionIsRefused) {
  unsigned char* memory = make_memory();
  std::vector<unsigned char> host(512);
  EXPECT_EQ(cudaMemcpy(host.data(), memory, 512, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory, host.data(), 512, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 512), cudaErrorInvalidValue);
}

TEST_F(StandInCopy, OfFreedMemoryIsRefused) {
  unsigned char* memory = make_memory();
  unsigned char* other = make_memory();
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(other, memory, 512, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
}

TEST_F(StandInCopy, OfWordsSetsWords) {
  unsigned char* memory = make_memory();
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  ASSERT_EQ(cuMemsetD32_v2(address, 0x01020304, 128), CUDA_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(memory + 508), 0x01020304U);
  EXPECT_EQ(cuMemsetD32_v2(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace weir::standin::testing
