// Copies and sets: what they wait for, and what they refuse.

#include <vector>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInCopy : public StandIn {};

TEST_F(StandInCopy, FromPinnedMemoryReadsLate) {
  unsigned char* memory = make_memory();
  unsigned char* pinned = make_pinned();
  while_held([&] {
    std::fill_n(pinned, 512, static_cast<unsigned char>(1));
    ok(cudaMemcpyAsync(memory, pinned, 512, cudaMemcpyHostToDevice, stream_));
    std::fill_n(pinned, 512, static_cast<unsigned char>(2));
  });
  sync();
  EXPECT_TRUE(all_bytes(memory, 2));
}

TEST_F(StandInCopy, FromPageableMemoryReadsAtOnce) {
  unsigned char* memory = make_memory();
  std::vector<unsigned char> pageable(512, 1);
  while_held([&] {
    ok(cudaMemcpyAsync(memory, pageable.data(), 512, cudaMemcpyHostToDevice, stream_));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
    std::fill(pageable.begin(), pageable.end(), static_cast<unsigned char>(2));
  });
  sync();
  EXPECT_TRUE(all_bytes(memory, 1));
}

TEST_F(StandInCopy, ToPinnedMemoryIsNot) {
  unsigned char* memory = make_memory();
  unsigned char* pinned = make_pinned();
  while_held([&] {
    ok(cudaMemcpyAsync(pinned, memory, 512, cudaMemcpyDeviceToHost, stream_));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  });
  sync();
  EXPECT_TRUE(all_bytes(pinned, 0xA5));
}

TEST_F(StandInCopy, BeyondTheEndOfABlockIsRefused) {
  unsigned char* memory = make_memory(1000);
  std::vector<unsigned char> host(2000);
  EXPECT_EQ(cudaMemcpy(memory, host.data(), 1001, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(memory + 500, host.data(), 501, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  ok(cudaMemcpy(memory + 500, host.data(), 500, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaMemset(memory, 0, 1001), cudaErrorInvalidValue);
  ok(cudaMemset(memory, 0, 1000));
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
  ok(cudaFree(memory));
  EXPECT_EQ(cudaMemcpy(other, memory, 512, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
}

TEST_F(StandInCopy, OfRowsLeavesWhatIsBetweenThem) {
  std::vector<unsigned char> out(4 * 100, 7);
  unsigned char* memory = make_memory(1024);
  ok(cudaMemsetAsync(memory, 1, 1024, stream_));
  ok(cudaMemcpy2DAsync(memory, 256, out.data(), 100, 90, 4, cudaMemcpyHostToDevice, stream_));
  std::fill(out.begin(), out.end(), static_cast<unsigned char>(0));
  ok(cudaMemcpy2DAsync(out.data(), 100, memory, 256, 90, 4, cudaMemcpyDefault, stream_));
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_TRUE(all_bytes(memory + row * 256, 7, 90));
    EXPECT_TRUE(all_bytes(memory + row * 256 + 90, 1, 166));
    EXPECT_TRUE(all_bytes(out.data() + row * 100, 7, 90));
    EXPECT_TRUE(all_bytes(out.data() + row * 100 + 90, 0, 10));
  }
}

TEST_F(StandInCopy, OfRowsThatDoNotFitIsRefused) {
  unsigned char* memory = make_memory(1000);
  unsigned char* other = make_memory(1000);
  const auto copy = [&](std::size_t to_pitch, std::size_t from_pitch, std::size_t width,
                        std::size_t height) {
    return cudaMemcpy2DAsync(memory, to_pitch, other, from_pitch, width, height,
                             cudaMemcpyDeviceToDevice, nullptr);
  };
  ok(copy(250, 250, 250, 4));
  ok(copy(300, 250, 100, 4));
  EXPECT_EQ(copy(300, 250, 101, 4), cudaErrorInvalidValue);
  EXPECT_EQ(copy(250, 250, 250, 5), cudaErrorInvalidValue);
  EXPECT_EQ(copy(100, 250, 101, 2), cudaErrorInvalidValue);
  ok(copy(250, 250, 250, 0));
  CUDA_MEMCPY2D of_array{};
  of_array.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  of_array.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  EXPECT_EQ(cuMemcpy2DAsync_v2(&of_array, nullptr), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(StandInCopy, OfHalfWordsSetsHalfWords) {
  unsigned char* memory = make_memory();
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  while_held([&] {
    ok(cuMemsetD16Async(address, 0x0102, 256, stream_));
    EXPECT_TRUE(all_bytes(memory, 0xA5));
  });
  ok(cudaDeviceSynchronize());
  EXPECT_EQ(*reinterpret_cast<unsigned short*>(memory + 510), 0x0102U);
  EXPECT_EQ(cuMemsetD16_v2(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD16_v2(address, 0, 257), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace weir::standin::testing
