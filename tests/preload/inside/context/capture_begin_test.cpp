// The moment before a capture is the last at which the device may be asked how far it is.

#include <array>
#include <string>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::array kModes{CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                            CU_STREAM_CAPTURE_MODE_RELAXED};

/// A way to begin a capture.
struct Beginning {
  const char* name;
  bool per_thread;  ///< captures the thread's own default stream
  CUresult (*begin)(CUstream stream, CUstreamCaptureMode mode);
};

#if CUDA_VERSION >= 12030
CUgraph new_graph() {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  return graph;
}
#endif

constexpr std::array kBeginnings {
  Beginning{"cuStreamBeginCapture", false,
            [](CUstream stream, CUstreamCaptureMode mode) {
              return cuStreamBeginCapture_v2(stream, mode);
            }},
      Beginning{"cuStreamBeginCapture_ptsz", true,
                [](CUstream stream, CUstreamCaptureMode mode) {
                  return cuStreamBeginCapture_v2_ptsz(stream, mode);
                }},
#if CUDA_VERSION >= 12030
      Beginning{"cuStreamBeginCaptureToGraph", false,
                [](CUstream stream, CUstreamCaptureMode mode) {
                  return cuStreamBeginCaptureToGraph(stream, new_graph(), nullptr, nullptr, 0,
                                                     mode);
                }},
      Beginning{
          "cuStreamBeginCaptureToGraph_ptsz", true, [](CUstream stream, CUstreamCaptureMode mode) {
            return cuStreamBeginCaptureToGraph_ptsz(stream, new_graph(), nullptr, nullptr, 0, mode);
          }},
#endif
};

class BeginningOfCapture : public Inside {
 protected:
  /// Frees both, and the device passes the work that used them.
  static void free_passed(CUdeviceptr block, CUdeviceptr ordered, CUstream stream) {
    keep_busy(stream, block);
    free(block);
    free(ordered, stream);
    release_all();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  /// Calls `act(begin)` for each way to begin a capture, with nothing cached. `act` calls `begin`
  /// once; the capture ends afterwards.
  template <typename Act>
  static void each_way(const Act& act) {
    const CUstream own = make_stream();
    for (const Beginning& way : kBeginnings) {
      for (const CUstreamCaptureMode mode : kModes) {
        SCOPED_TRACE(std::string(way.name) + ", mode " + std::to_string(mode));
        settle();
        (void)trim(0);
        ASSERT_EQ(statistics().reserved.current, Bytes{});
        const CUstream stream = way.per_thread ? CU_STREAM_PER_THREAD : own;
        act([&] { ASSERT_EQ(way.begin(stream, mode), CUDA_SUCCESS); });
        end_capture(stream);
      }
    }
  }
};

// PyTorch frees its cache before a capture, and asks for as much again in it.
TEST_F(BeginningOfCapture, WhatTheDeviceHasPassedServesTheCapture) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream side = make_stream();
  const CUstream other = make_stream();
  each_way([&](const auto& begin) {
    const CUdeviceptr block = allocate(3 * kMib);
    const CUdeviceptr ordered = allocate(3 * kMib, side);
    const Bytes reserved = statistics().reserved.current;
    free_passed(block, ordered, side);
    ASSERT_NO_FATAL_FAILURE(begin());
    weir_standin_clear_counters();
    const CUdeviceptr in_capture = allocate(3 * kMib);
    const CUdeviceptr in_order = allocate(3 * kMib, other);
    EXPECT_EQ(statistics().reserved.current, reserved);
    for (const char* call : {"cuEventQuery", "cuStreamQuery", "cuEventRecord"}) {
      EXPECT_EQ(weir_standin_calls(call), 0U) << call;
    }
    free(in_capture);
    free(in_order, other);
  });
}

TEST_F(BeginningOfCapture, WhereRoomIsShortWhatIsCachedMakesRoomForOtherSizes) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "10MiB"}}));
  const CUstream side = make_stream();
  each_way([&](const auto& begin) {
    const CUdeviceptr block = allocate(4 * kMib);
    const CUdeviceptr ordered = allocate(4 * kMib, side);
    free_passed(block, ordered, side);
    ASSERT_NO_FATAL_FAILURE(begin());
    free(allocate(10 * kMib));
  });
}

TEST_F(BeginningOfCapture, DuringAnotherAsksForNothing) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream first = make_stream();
  each_way([&](const auto& begin) {
    const CUdeviceptr block = allocate(kBytes);
    begin_capture(first);
    free(block);
    weir_standin_clear_counters();
    ASSERT_NO_FATAL_FAILURE(begin());
    EXPECT_EQ(weir_standin_calls("cuStreamQuery"), 0U);
    EXPECT_EQ(statistics().awaiting.current, Bytes{kBytes});
    end_capture(first);
  });
}

}  // namespace
}  // namespace weir::preload::testing
