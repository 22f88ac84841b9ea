// Launches that wait: the decision for each small state, and which calls wait by it.

#include <array>
#include <functional>
#include <vector>

#include "tests/preload/inside/inside.hpp"
#include "tools/preload/context/pacer.hpp"

namespace weir::preload::testing {
namespace {

using std::chrono::milliseconds;

/// Of a budget of 6400: more than 100 must await the device, held is hard from 6080 on, and the
/// rest must be below 5440.
struct State {
  Bytes held;
  Bytes awaiting;
  bool worth_it;
  bool hard;
};
constexpr std::array kStates{
    State{{0}, {0}, false, false},      State{{6400}, {0}, false, false},
    State{{6400}, {100}, false, false}, State{{6400}, {101}, true, false},
    State{{101}, {101}, true, false},   State{{6079}, {6079}, true, false},
    State{{6080}, {640}, true, false},  State{{6080}, {641}, true, true},
    State{{6400}, {6400}, true, true},  State{{9000}, {3000}, true, false},
    State{{9000}, {9000}, true, true},
};

TEST(Pace, DecidesEverySmallState) {
  const RunAhead by_default{};
  const RunAhead off{.batches = std::nullopt};
  const RunAhead batches_alone{.batches = 4, .time = std::chrono::nanoseconds(0)};
  for (const Policy policy :
       {Policy::kThrottled, Policy::kBackstop, Policy::kUnbounded, Policy::kBarrier}) {
    for (const State& state : kStates) {
      for (const auto behind : {milliseconds(0), milliseconds(20), milliseconds(21)}) {
        for (const RunAhead& run_ahead : {by_default, off, batches_alone}) {
          Pace expected = Pace::kGo;
          const bool by_time = run_ahead == by_default && behind > milliseconds(20);
          if (policy == Policy::kThrottled && state.worth_it) {
            if (by_time) expected = Pace::kWaitSoft;
            if (state.hard) expected = Pace::kWaitHard;
          }
          const Pressure pressure{.held = state.held, .budget = {6400}, .awaiting = state.awaiting};
          EXPECT_EQ(pace(pressure, behind, policy, run_ahead), expected)
              << to_string(policy) << " held " << state.held << " awaiting " << state.awaiting
              << " behind " << behind.count() << "ms " << format_run_ahead(run_ahead);
        }
      }
    }
  }
}

class Pacing : public Inside {
 protected:
  static constexpr std::size_t kBudget = 8 * kMib;
  static constexpr int kOfAPoint = 32;  // launches of a thread

  /// Frees the whole budget while a held stream still uses it: the pressure is hard, because of
  /// queued work.
  [[nodiscard]] static CUstream queue_the_budget() {
    const CUstream stream = make_stream();
    const CUdeviceptr block = allocate(kBudget);
    keep_busy(stream, block);
    free(block);
    return stream;
  }
  static void launch(int count, CUstream stream) {
    // Page-locked: from other memory the host would wait for the copy. Two bytes for each call.
    static CUdeviceptr at = pinned();
    at += 2;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(cuMemcpyAsync(at, at + 1, 1, stream), CUDA_SUCCESS);
    }
  }

 private:
  static CUdeviceptr pinned() {
    void* memory = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&memory, 4096, 0), CUDA_SUCCESS);
    return reinterpret_cast<CUdeviceptr>(memory);
  }
};

TEST_F(Pacing, QueuedWorkThatHoldsMemoryHoldsLaunchesBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream other = make_stream();
  release_while_waiting(queue_the_budget(), [&] { launch(kOfAPoint, other); });
  EXPECT_EQ(arena().paced().count, 1U);
  EXPECT_EQ(statistics().awaiting.current, Bytes{});
  launch(10 * kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 1U);
}

TEST_F(Pacing, EveryLaunchLooksWhereItMayHaveToWaitAtTheHardLimit) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream other = make_stream();
  launch(1, other);
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
  const CUstream busy = queue_the_budget();
  EXPECT_TRUE(PoolSums::any_wait_at_limit());
  release_while_waiting(busy, [&] { launch(1, other); });
  EXPECT_EQ(arena().paced().count, 1U);
  EXPECT_FALSE(PoolSums::any_wait_at_limit()) << "the wait has ended the level";
  const Statistics now = statistics();
  EXPECT_GT(time_at(now.pressure, PressureLevel::kHard), std::chrono::nanoseconds(0));
}

TEST_F(Pacing, MemoryThatIsInUseLetsNoLaunchLook) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUdeviceptr block = allocate(kBudget);
  EXPECT_EQ(arena().pool().pressure().level, PressureLevel::kHard);
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
  const CUstream busy = make_stream();
  keep_busy(busy, block);
  free(block);
  EXPECT_TRUE(PoolSums::any_wait_at_limit()) << "until it awaits the device, at the same level";
  release_while_waiting(busy, [&] { launch(1, busy); });
}

TEST_F(Pacing, WithoutThrottlingNoLaunchLooks) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_POLICY", "backstop"}}));
  (void)queue_the_budget();
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
}

TEST_F(Pacing, OnceABatchIsMarkedNoLaunchLooks) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}}));
  const auto batch = begin_batch_in(arena(), "step");
  ASSERT_TRUE(batch.has_value());
  end_batch_in(arena());
  (void)queue_the_budget();
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
}

TEST_F(Pacing, PoolsOfAContextThatHasEndedCountNoLonger) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}}));
  (void)queue_the_budget();
  EXPECT_TRUE(PoolSums::any_wait_at_limit());
  arena().forget();
  all_is_counted = false;  // the driver still has the context
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
  EXPECT_EQ(arena().pool().pressure().level, PressureLevel::kNone);
}

#if CUDA_VERSION >= 12080
class PacingBatches : public Pacing {
 protected:
  /// Each way to enqueue one copy as a batch.
  using Enqueue = std::function<CUresult(CUdeviceptr to, CUdeviceptr from, CUstream stream)>;
  static void expect_held_back(const std::vector<Enqueue>& ways) {
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
    void* memory = nullptr;
    ASSERT_EQ(cuMemHostAlloc(&memory, 4096, 0), CUDA_SUCCESS);
    const auto at = reinterpret_cast<CUdeviceptr>(memory);
    const CUstream other = make_stream();
    std::uint64_t waits = 0;
    for (const Enqueue& enqueue : ways) {
      release_while_waiting(queue_the_budget(), [&] {
        for (int i = 0; i < kOfAPoint; ++i) ASSERT_EQ(enqueue(at, at + 1, other), CUDA_SUCCESS);
      });
      EXPECT_EQ(arena().paced().count, ++waits);
    }
  }
  /// A copy of one byte by such a function, and the last arguments that its version takes.
  template <typename Call, typename... Last>
  static Enqueue flat(Call call, Last... last) {
    return [=](CUdeviceptr to, CUdeviceptr from, CUstream stream) {
      CUmemcpyAttributes in_order{};
      in_order.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
      std::size_t bytes = 1;
      std::size_t first = 0;
      return call(&to, &from, &bytes, 1, &in_order, &first, 1, last..., stream);
    };
  }
  template <typename Call, typename... Last>
  static Enqueue deep(Call call, Last... last) {
    return [=](CUdeviceptr to, CUdeviceptr from, CUstream stream) {
      CUDA_MEMCPY3D_BATCH_OP copy{};
      copy.dst.type = copy.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
      copy.dst.op.ptr.ptr = to;
      copy.src.op.ptr.ptr = from;
      copy.extent = {1, 1, 1};
      copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
      return call(1, &copy, last..., stream);
    };
  }
};

// As in CUDA 12.8.
TEST_F(PacingBatches, OfCopiesAreHeldBack) {
  std::size_t* const none = nullptr;
  expect_held_back({flat(&cuMemcpyBatchAsync, none), flat(&cuMemcpyBatchAsync_ptsz, none),
                    deep(&cuMemcpy3DBatchAsync, none, 0ULL),
                    deep(&cuMemcpy3DBatchAsync_ptsz, none, 0ULL)});
}
#endif
#if CUDA_VERSION >= 13000
TEST_F(PacingBatches, OfCopiesAreHeldBackInTheirLaterForm) {
  expect_held_back({flat(&cuMemcpyBatchAsync_v2), flat(&cuMemcpyBatchAsync_v2_ptsz),
                    deep(&cuMemcpy3DBatchAsync_v2, 0ULL),
                    deep(&cuMemcpy3DBatchAsync_v2_ptsz, 0ULL)});
}
#endif

TEST_F(Pacing, WithoutMemoryToBeReleasedNothingIsHeldBack) {
  // With waits longer than the test: it ends, so there were none.
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}, {"WEIR_RUN_AHEAD", "1us"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kBudget);
  keep_busy(stream, block);
  launch(10 * kOfAPoint, stream);
  launch(10 * kOfAPoint, make_stream());
  EXPECT_EQ(arena().paced().count, 0U);
}

TEST_F(Pacing, WithRoomLeftTheRunAheadDecides) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}, {"WEIR_RUN_AHEAD", "1us"}}));
  const CUstream other = make_stream();
  // The first look records the fence of the frees, so the second is late for certain.
  release_while_waiting(queue_the_budget(), [&] { launch(2 * kOfAPoint, other); });
  EXPECT_GE(arena().paced().count, 1U);
}

TEST_F(Pacing, WithRoomLeftAndNoRunAheadLaunchesGo) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}, {"WEIR_RUN_AHEAD", "off"}}));
  const CUstream other = make_stream();
  (void)queue_the_budget();
  launch(10 * kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 0U);
}

TEST_F(Pacing, OtherPoliciesHoldNothingBack) {
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}, {"WEIR_POLICY", "backstop"}}));
  const CUstream other = make_stream();
  (void)queue_the_budget();
  launch(10 * kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 0U);
}

TEST_F(Pacing, EndsAfterTheLongestWaitAndIsNotRepeatedForTheSamePoint) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  const CUstream other = make_stream();
  (void)queue_the_budget();
  launch(kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 1U);
  EXPECT_TRUE(PoolSums::any_wait_at_limit());
  launch(20 * kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 1U);
}

TEST_F(Pacing, AfterTwoWaitsThatRanOutNoLaunchLooks) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  const CUstream other = make_stream();
  std::vector<CUstream> busy;
  const auto queue_half = [&] {
    busy.push_back(make_stream());
    const CUdeviceptr block = allocate(kBudget / 2);
    keep_busy(busy.back(), block);
    free(block);
  };
  queue_half();
  queue_half();
  launch(1, other);
  EXPECT_TRUE(PoolSums::any_wait_at_limit()) << "one wait ran out";
  weir_standin_release(busy.front());
  queue_half();
  launch(1, other);
  EXPECT_EQ(arena().paced().count, 2U);
  EXPECT_FALSE(PoolSums::any_wait_at_limit());
}

TEST_F(Pacing, ACaptureIsNotHeldBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream captured = make_stream();
  const CUstream other = make_stream();
  launch(1, other);
  (void)queue_the_budget();
  begin_capture(captured);
  weir_standin_clear_counters();
  launch(10 * kOfAPoint, captured);
  launch(10 * kOfAPoint, other);
  EXPECT_EQ(weir_standin_calls("cuEventQuery"), 0U);
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), 0U);
  end_capture(captured);
  EXPECT_EQ(arena().paced().count, 0U);
}

TEST_F(Pacing, AThreadThatServesTheDeviceIsNotHeldBack) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream other = make_stream();
  (void)queue_the_budget();
  const InCallback mark;
  launch(10 * kOfAPoint, other);
  EXPECT_EQ(arena().paced().count, 0U);
}

TEST_F(Pacing, ACallbackIsMarkedAsServingTheDevice) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const auto look = [](void* marked) { *static_cast<bool*>(marked) = InCallback::now(); };
  bool function = false;
  bool callback = false;
  ASSERT_EQ(cuLaunchHostFunc(stream, look, &function), CUDA_SUCCESS);
  ASSERT_EQ(
      cuStreamAddCallback(
          stream,
          [](CUstream, CUresult, void* marked) { *static_cast<bool*>(marked) = InCallback::now(); },
          &callback, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_TRUE(function);
  EXPECT_TRUE(callback);
}

}  // namespace
}  // namespace weir::preload::testing
