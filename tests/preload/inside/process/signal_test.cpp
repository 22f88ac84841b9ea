// CUDA calls in a signal handler that interrupts one of ours on the same thread, with our locks
// held and our tables half changed.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

/// What the handler does, and its result. A handler takes no argument of ours.
struct Handler {
  void (*run)() = nullptr;
  int runs = 0;
  CUresult code = CUDA_SUCCESS;
  CUdeviceptr pointer = 0;
  CUstream stream = nullptr;
  bool child_ended_well = false;
};
Handler handler;

void on_signal(int /*signal*/) {
  ++handler.runs;
  handler.run();
}

/// When the signal comes: just before the driver's answer to a call of Weir's own, or of the
/// program's.
class SignalHandler : public Inside {
 protected:
  static void start_with(void (*run)(), Variables variables = {}) {
    handler = {};
    handler.run = run;
    struct sigaction action {};
    action.sa_handler = &on_signal;
    action.sa_flags = SA_NODEFER;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    start(variables);
  }
  ~SignalHandler() override { stop(); }
  static void interrupt(const char* call) {
    weir_standin_set_interrupt(
        call, [](void*) { (void)raise(SIGUSR1); }, nullptr);
  }
  static void stop() { weir_standin_set_interrupt(nullptr, nullptr, nullptr); }
  /// The signal comes while the driver serves this request.
  static CUdeviceptr allocate_interrupted(std::size_t bytes = kMib) {
    interrupt("cuMemAlloc");
    const CUdeviceptr block = allocate(bytes);
    stop();
    return block;
  }
};

void allocate_there() { handler.code = cuMemAlloc(&handler.pointer, kBytes); }
void allocate_in_order_there() {
  handler.code = cuMemAllocAsync(&handler.pointer, kBytes, handler.stream);
}
void free_there() { handler.code = cuMemFree(handler.pointer); }
void free_in_order_there() { handler.code = cuMemFreeAsync(handler.pointer, handler.stream); }
void set_there() { handler.code = cuMemsetD8Async(handler.pointer, 1, kBytes, handler.stream); }

/// The driver calls that Weir makes while it serves these, each with the locks held.
constexpr std::array kOwnCalls{"cuCtxGetCurrent", "cuMemAlloc", "cuStreamQuery", "cuEventRecord",
                               "cuEventQuery"};

TEST_F(SignalHandler, AllocatesFromTheDriverAndItIsCounted) {
  ASSERT_NO_FATAL_FAILURE(start_with(&allocate_there, {{"WEIR_BUDGET", "64MiB"}}));
  const CUdeviceptr block = allocate_interrupted();
  EXPECT_EQ(handler.runs, 1);
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_NE(handler.pointer, block);
  EXPECT_EQ(passed("direct"), Bytes{kBytes});
  EXPECT_EQ(statistics().allocated.current, mib(1));
  weir_standin_clear_counters();
  free(handler.pointer);  // by the driver, who served it
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
  EXPECT_EQ(passed("direct"), Bytes{});
  free(block);
  settle();
  EXPECT_EQ(arena().account().used(), mib(1));
}

TEST_F(SignalHandler, AllocatesWhereverWeirIsInterrupted) {
  ASSERT_NO_FATAL_FAILURE(start_with(&allocate_there));
  all_is_counted = false;    // counting is interrupted too, more often than can be postponed
  std::size_t bytes = kMib;  // different each time, so that nothing is cached
  for (const char* call : kOwnCalls) {
    SCOPED_TRACE(call);
    bytes += 2 * kMib;
    const CUstream stream = make_stream();
    const CUdeviceptr busy = allocate(bytes);
    keep_busy(stream, busy);
    handler.runs = 0;
    std::vector<CUdeviceptr> served;
    const auto serve = [&] {
      served.push_back(allocate(bytes));
      if (handler.pointer != 0) served.push_back(std::exchange(handler.pointer, 0));
    };
    interrupt(call);
    free(busy);
    serve();  // its fence is recorded
    serve();  // and asked for
    stop();
    EXPECT_NE(handler.runs, 0);
    EXPECT_EQ(handler.code, CUDA_SUCCESS);
    release_all();
    for (const CUdeviceptr pointer : served) {
      EXPECT_NE(pointer, busy);
      free(pointer);
    }
    settle();
    EXPECT_EQ(statistics().allocated.current, Bytes{});
  }
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(SignalHandler, FreesWhatWeirServedOnceTheInterruptedCallHasEnded) {
  ASSERT_NO_FATAL_FAILURE(start_with(&free_there));
  handler.pointer = allocate(kBytes);
  const CUdeviceptr block = allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  EXPECT_EQ(statistics().allocated.current, mib(1));
  EXPECT_EQ(cuMemFree(handler.pointer), CUDA_ERROR_INVALID_VALUE) << "it was freed";
  free(block);
}

TEST_F(SignalHandler, FreesInStreamOrderToo) {
  ASSERT_NO_FATAL_FAILURE(start_with(&free_in_order_there));
  handler.stream = make_stream();
  handler.pointer = allocate(kBytes, handler.stream);
  keep_busy(handler.stream, handler.pointer);
  (void)allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(statistics().allocated.current, mib(1));
  EXPECT_FALSE(is_handed_out(handler.pointer, kBytes)) << "its stream still uses it";
}

TEST_F(SignalHandler, FreesWhatItTookWithoutAWait) {
  ASSERT_NO_FATAL_FAILURE(start_with([] {
    allocate_there();
    free_there();
  }));
  (void)allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
  EXPECT_EQ(passed("direct"), Bytes{});
  EXPECT_EQ(weir_standin_used(0), kMib);
}

TEST_F(SignalHandler, MoreFreesThanThereIsRoomForFailAndLoseNothing) {
  ASSERT_NO_FATAL_FAILURE(start_with([] {
    for (int i = 0; i < 1000; ++i) {
      const CUresult code = cuMemFree(handler.pointer + static_cast<CUdeviceptr>(i) * 512);
      if (code != CUDA_SUCCESS) handler.code = code;
    }
  }));
  const weir::testing::LogCapture log;
  handler.pointer = allocate(kMib);
  (void)allocate_interrupted(2 * kMib);
  EXPECT_EQ(handler.code, CUDA_ERROR_OUT_OF_MEMORY);
  // The first one was the block, the others are addresses inside it.
  EXPECT_EQ(statistics().allocated.current, mib(2));
  EXPECT_FALSE(log.containing("cuMemFree in a signal handler failed (1)").empty());
}

TEST_F(SignalHandler, TakesMemoryInStreamOrderFromTheDriver) {
  ASSERT_NO_FATAL_FAILURE(start_with(&allocate_in_order_there));
  handler.stream = make_stream();
  (void)allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  EXPECT_EQ(passed("direct"), Bytes{kBytes});
  all_is_counted = false;  // the driver's default pool keeps more than what is asked
  free(handler.pointer, handler.stream);
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 1U);
  EXPECT_EQ(passed("direct"), Bytes{});
}

TEST_F(SignalHandler, LaunchesOnAStreamThatIsFollowedFromThenOn) {
  ASSERT_NO_FATAL_FAILURE(start_with(&set_there));
  const Driver& driver = Process::get()->driver();  // past the hooks
  ASSERT_EQ(driver.cuStreamCreate(&handler.stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  handler.pointer = allocate(kBytes);
  hold(handler.stream);
  (void)allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  free(handler.pointer);
  EXPECT_FALSE(is_handed_out(handler.pointer, kBytes));
}

TEST_F(SignalHandler, EndsAStreamWhoseLastWorkIsFenced) {
  ASSERT_NO_FATAL_FAILURE(start_with([] { handler.code = cuStreamDestroy(handler.stream); }));
  handler.stream = make_stream();
  const CUdeviceptr block = allocate(kBytes);
  weir_standin_hold(
      weir_standin_all_streams());  // a stream that has ended cannot be released by its handle
  EXPECT_EQ(cuMemsetD8Async(block, 1, 1, handler.stream), CUDA_SUCCESS);
  (void)allocate_interrupted();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_live().streams, 0U);
  free(block);
  settle();
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
}

/// Nothing in the child would ever do deferred work: it has no driver either.
TEST_F(SignalHandler, AChildThatItForksIsToldWhatTheDriverSaysOfAStreamsEnd) {
  ASSERT_NO_FATAL_FAILURE(start_with([] {
    const pid_t child = fork();
    if (child == 0) {
      _exit(cuStreamDestroy(handler.stream) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = -1;
    handler.child_ended_well = waitpid(child, &status, 0) == child && status == 0;
  }));
  handler.stream = make_stream();
  const CUdeviceptr block = allocate_interrupted();
  EXPECT_TRUE(handler.child_ended_well);
  EXPECT_EQ(weir_standin_live().streams, 1U) << "the parent's";
  free(block);
}

TEST_F(SignalHandler, DuringTheDriversOwnWorkIsServedAsEver) {
  ASSERT_NO_FATAL_FAILURE(start_with(&allocate_there));
  const CUdeviceptr cached = allocate(kBytes);
  free(cached);
  settle();
  interrupt("cuArrayCreate");  // passed: does not touch our tables
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = flat.Height = 16;
  flat.Format = CU_AD_FORMAT_FLOAT;
  flat.NumChannels = 4;
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate(&array, &flat), CUDA_SUCCESS);
  stop();
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(handler.pointer, cached);
}

/// It takes none of our locks, and makes no summary and no timeline end. Each runs in a process
/// that starts anew: a forked one would pass everything.
TEST_F(SignalHandler, EndsTheProgramWhereverWeirIsInterrupted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = ::testing::TempDir() + "ends_in_call_%p.json";
  // Threads of Weir's may be starting at that exit, on which GCC 12's search for leaks has crashed.
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  const std::string no_leaks =
      std::string(sanitizer == nullptr ? "" : sanitizer) + ":detect_leaks=0";
  setenv("ASAN_OPTIONS", no_leaks.c_str(), 1);
  for (const char* call : kOwnCalls) {
    SCOPED_TRACE(call);
    const auto end_there = [&] {
      start_with([] { std::exit(0); },
                 {{"WEIR_SUMMARY", "-"}, {"WEIR_PUBLISH", "1"}, {"WEIR_TIMELINE", file.c_str()}});
      const CUstream stream = make_stream();
      hold(stream);
      interrupt(call);
      for (std::size_t bytes = kMib; bytes < 16 * kMib; bytes += kMib) {
        const CUdeviceptr block = allocate(bytes);
        EXPECT_EQ(cuMemsetD8Async(block, 1, 1, stream), CUDA_SUCCESS);
        free(block);
      }
    };
    EXPECT_EXIT(end_there(), ::testing::ExitedWithCode(0),
                "timeline's last tenth of a second may be missing(.|\n)*no summary: exit");
  }
}

/// The settings are read, with a warning, while all other threads wait for that.
TEST_F(SignalHandler, DuringTheSetUpAllocatesFromTheDriver) {
  static CUcontext context = nullptr;
  static const Driver* driver = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  driver = preload::driver();
  ASSERT_NE(driver, nullptr);
  ASSERT_EQ(driver->cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  use(context);
  handler = {};
  handler.run = &allocate_there;
  ASSERT_NE(std::signal(SIGUSR1, &on_signal), SIG_ERR);
  setenv("WEIR_BUDGTE", "1GiB", 1);
  setenv("WEIR_PUBLISH", "0", 1);
  set_log_sink([](LogLevel /*level*/, std::string_view /*text*/) { (void)raise(SIGUSR1); });
  const CUdeviceptr block = allocate(kMib);
  set_log_sink(nullptr);
  EXPECT_EQ(handler.runs, 1);
  EXPECT_EQ(handler.code, CUDA_SUCCESS);
  EXPECT_EQ(statistics().allocated.current, mib(1));
  EXPECT_EQ(passed("direct"), Bytes{kBytes});
  free(handler.pointer);
  free(block);
}

}  // namespace
}  // namespace weir::preload::testing
