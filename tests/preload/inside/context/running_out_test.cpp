// Requests that do not fit in the budget.

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

class RunningOutInside : public Inside {
 protected:
  /// Frees the whole budget while work on a held stream still uses it.
  [[nodiscard]] static CUstream fill_and_free(std::size_t bytes) {
    const CUstream stream = make_stream();
    const CUdeviceptr block = allocate(bytes);
    keep_busy(stream, block);
    free(block);
    return stream;
  }
};

TEST_F(RunningOutInside, WaitsForTheDeviceAndSucceeds) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  release_while_waiting(fill_and_free(8 * kMib), [] { free(allocate(8 * kMib)); });
  // What has another size is given back.
  release_while_waiting(fill_and_free(8 * kMib), [] { free(allocate(kMib)); });
  release_while_waiting(fill_and_free(8 * kMib), [] { (void)allocate(kMib, make_stream()); });
  EXPECT_EQ(statistics().failures, 0U);
  EXPECT_EQ(weir_standin_peak(0), 8 * kMib);
}

TEST_F(RunningOutInside, GivesUpAfterTheLongestWaitAndSaysSoOnce) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  const weir::testing::LogCapture log;
  (void)fill_and_free(8 * kMib);
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, 16 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(pointer, 0U);
  }
  EXPECT_EQ(statistics().failures, 3U);
  ASSERT_EQ(log.containing("printed once").size(), 1U);
  EXPECT_NE(log.containing("printed once").front().find("GPU 0"), std::string::npos);
  EXPECT_EQ(log.containing("").size(), 1U);
  // It does not harm smaller requests.
  const CUdeviceptr small = allocate(4 * kMib);
  free(small);
}

// What is awaited may wait for this thread, as in a collective of two devices.
TEST_F(RunningOutInside, AfterAWaitThatRanOutTheNextOnesAreShort) {
  constexpr auto kLongest = std::chrono::milliseconds(2000);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "2s"}}));
  (void)fill_and_free(8 * kMib);
  const auto time_of_ten = [] {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(try_allocate(16 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    return std::chrono::steady_clock::now() - before;
  };
  EXPECT_LT(time_of_ten(), 5 * kLongest);
  // Once the device has moved, it is waited for again.
  release_all();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  free(allocate(16 * kMib));
  release_while_waiting(fill_and_free(16 * kMib), [] { free(allocate(8 * kMib)); });
}

// It waits as long as it may each time, if only captures in relaxed mode are open.
TEST_F(RunningOutInside, TheReportNamesACaptureThatHoldsMemoryBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  const CUstream captured = make_stream();
  const CUdeviceptr block = allocate(8 * kMib);
  begin_capture(captured);
  free(block);
  const weir::testing::LogCapture log;
  EXPECT_EQ(try_allocate(12 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  end_capture(captured);
  ASSERT_EQ(log.containing("a capture of stream 0x").size(), 1U);
  EXPECT_NE(log.containing("(mode global) has been open for").size(), 0U);
  EXPECT_EQ(try_allocate(12 * kMib), CUDA_SUCCESS);
}

TEST_F(RunningOutInside, TheReportGoesToStandardError) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  (void)allocate(kMib / 2);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string text = ::testing::internal::GetCapturedStderr();
  const auto first = text.find("weir: GPU 0: ");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("weir: ", first + 1), std::string::npos) << text;
}

TEST_F(RunningOutInside, ARequestBeyondTheBudgetIsSaidOnceAndIsNoReport) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  const weir::testing::LogCapture log;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(try_allocate(2 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  }
  ASSERT_EQ(log.containing("").size(), 1U);
  EXPECT_NE(log.containing("").front().find(
                "GPU 0: 2 MiB were requested, more than the whole budget of 1 MiB"),
            std::string::npos);
  (void)allocate(kMib / 2);
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(log.containing("printed once").size(), 1U) << "the report of what did not fit beside";
}

TEST_F(RunningOutInside, AProbeBeyondTheBudgetFailsWithoutWaiting) {
  // With a wait longer than the test.
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  (void)fill_and_free(8 * kMib);
  for (std::size_t bytes = std::size_t{1} << 40; bytes > 16 * kMib; bytes /= 2) {
    EXPECT_EQ(try_allocate(bytes), CUDA_ERROR_OUT_OF_MEMORY) << bytes;
    EXPECT_EQ(try_allocate(bytes, nullptr), CUDA_ERROR_OUT_OF_MEMORY) << bytes;
  }
  EXPECT_EQ(statistics().waits, 0U);
  EXPECT_EQ(statistics().reserved.current, mib(8));
}

TEST_F(RunningOutInside, UnboundedNeitherWaitsNorHandsOver) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_POLICY", "unbounded"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(8 * kMib, stream);
  keep_busy(stream, block);
  free(block, stream);
  EXPECT_EQ(try_allocate(8 * kMib, make_stream()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(statistics().waits, 0U);
  EXPECT_EQ(statistics().handovers, 0U);
}

TEST_F(RunningOutInside, ACallbackIsNeverMadeToWait) {
  expect_refused("cuCtxGetCurrent", CUDA_ERROR_NOT_PERMITTED);
  expect_refused("cuCtxSetCurrent", CUDA_ERROR_NOT_PERMITTED);
  expect_refused("cuMemAlloc", CUDA_ERROR_NOT_PERMITTED);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  (void)fill_and_free(8 * kMib);
  // On its own stream's thread, where it would wait practically forever.
  struct Shared {
    CUcontext context = nullptr;
    CUresult code = CUDA_SUCCESS;
  } shared;
  ASSERT_EQ(cuCtxGetCurrent(&shared.context), CUDA_SUCCESS);
  const CUstream stream = make_stream();
  ASSERT_EQ(cuLaunchHostFunc(
                stream,
                [](void* data) {
                  auto& here = *static_cast<Shared*>(data);
                  CUdeviceptr pointer = 0;
                  (void)cuCtxSetCurrent(here.context);
                  here.code = cuMemAlloc(&pointer, kMib);
                },
                &shared),
            CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NE(shared.code, CUDA_SUCCESS);
}

}  // namespace
}  // namespace weir::preload::testing
