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

/// Expects success of a call of the driver, the runtime or cuBLAS.
template <typename Code>
void ok(Code code, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  EXPECT_EQ(code, Code{}) << file << ":" << line;
}

class StandIn : public ::testing::Test {
 protected:
  StandIn() = default;
  ~StandIn() override { weir_standin_reset(); }

  static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
  }
  static cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    ok(cudaEventCreateWithFlags(&event, flags));
    return event;
  }
  static unsigned char* make_memory(std::size_t bytes = 512) {
    void* memory = nullptr;
    ok(cudaMalloc(&memory, bytes));
    return static_cast<unsigned char*>(memory);
  }
  static unsigned char* make_pinned(std::size_t bytes = 512) {
    void* memory = nullptr;
    ok(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return static_cast<unsigned char*>(memory);
  }
  /// Device memory is host memory here, so a test can read it.
  static bool all_bytes(const unsigned char* memory, unsigned char value, std::size_t bytes = 512) {
    return std::all_of(memory, memory + bytes, [=](unsigned char byte) { return byte == value; });
  }
  static void sync(cudaStream_t stream) { ok(cudaStreamSynchronize(stream)); }
  void sync() const { sync(stream_); }
  /// Holds a stream while `body` runs.
  template <typename Body>
  static void while_held(cudaStream_t stream, const Body& body) {
    weir_standin_hold(stream);
    body();
    weir_standin_release(stream);
  }
  template <typename Body>
  void while_held(const Body& body) const {
    while_held(stream_, body);
  }

 private:
  struct Begin {
    Begin() {
      weir::testing::expect_any_refused();  // most of these tests are about refused calls
      weir_standin_reset();
      ok(cudaSetDevice(0));
      (void)cudaGetLastError();
    }
  } begin_;

 protected:
  const cudaStream_t stream_ = make_stream();
};

}  // namespace weir::standin::testing
