#pragma once

// A stand-in in its initial state for each test.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "tests/standin/standin.hpp"
#include "tests/support/refused.hpp"

namespace weir::standin::testing {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class StandIn : public ::testing::Test {
 protected:
  StandIn() {
    weir::testing::expect_any_refused();  // most of these tests are about refused calls
    weir_standin_reset();
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    (void)cudaGetLastError();
  }
  ~StandIn() override { weir_standin_reset(); }

  static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
  }
  static cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    return event;
  }
  static unsigned char* make_memory(std::size_t bytes = 512) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  static unsigned char* make_pinned(std::size_t bytes = 512) {
    void* memory = nullptr;
    EXPECT_EQ(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  /// Device memory is host memory here, so a test can read it.
  static bool all_bytes(const unsigned char* memory, unsigned char value, std::size_t bytes = 512) {
    return std::all_of(memory, memory + bytes, [=](unsigned char byte) { return byte == value; });
  }
};

}  // namespace weir::standin::testing
