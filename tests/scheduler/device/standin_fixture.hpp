#pragma once

// The base of tests of the CUDA code on the stand-in driver: no faults at the start, and at the end
// nothing unreleased.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "allocator/memory/upstream_cuda.hpp"
#include "allocator/progress/progress_cuda.hpp"
#include "scheduler/device/device_cuda.hpp"
#include "standin/standin.hpp"
#include "support/log_capture.hpp"
#include "support/print.hpp"

namespace weir::testing {

class StandinTest : public ::testing::Test {
 protected:
  StandinTest() {
    weir_standin_reset();
    // A runtime whose first call finds no GPU never finds one.
    int devices = 0;
    EXPECT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  }
  ~StandinTest() override {
    weir_standin_clear_faults();
    const WeirStandinLive live = weir_standin_live();
    EXPECT_EQ(live.streams, 0U);
    EXPECT_EQ(live.events, 0U);
    EXPECT_EQ(live.device_blocks, 0U);
    EXPECT_EQ(live.host_blocks, 0U);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "a stale error was left behind";
    weir_standin_reset();
  }

  /// The `nth` call from now on fails, once.
  static void fail(const char* call, std::uint64_t nth, CUresult code) {
    weir_standin_fail(call, nth, static_cast<int>(code), kWeirStandinOnce);
  }
  static void fail_from_now_on(const char* call, CUresult code) {
    weir_standin_fail(call, 1, static_cast<int>(code), kWeirStandinFromThenOn);
  }
};

/// A stream made by the program, as users do.
class UserStream {
 public:
  UserStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~UserStream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A capture of a stream by the program, which must not be broken by our calls.
class Capture {
 public:
  explicit Capture(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
      : stream_(stream) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  }
  ~Capture() { (void)end(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  /// Ends it. Returns how many nodes it has.
  std::size_t end() {
    if (stream_ == nullptr) return 0;
    cudaGraph_t graph = nullptr;
    std::size_t nodes = 0;
    EXPECT_EQ(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph), cudaSuccess)
        << "the capture was broken";
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return nodes;
  }

 private:
  cudaStream_t stream_;
};

}  // namespace weir::testing
