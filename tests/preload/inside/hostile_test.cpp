// A program that takes and frees memory at random, from many threads and on many streams, and looks
// whether anybody else had a block while it was in use. 10^6 operations, in half a minute; fewer
// where blocking streams are few, and under a sanitizer.

#include <array>
#include <atomic>
#include <mutex>
#include <random>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/sanitized.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::size_t kMostStreams = 16;
constexpr std::size_t kMostLive = 24;  // blocks of a thread
constexpr std::size_t kMostBytes = 16384;

/// All operations together; WEIR_TEST_OPERATIONS says otherwise.
std::uint64_t operations() {
  const char* text = std::getenv("WEIR_TEST_OPERATIONS");
  if (text != nullptr && *text != '\0') return std::strtoull(text, nullptr, 10);
  return WEIR_TEST_SANITIZED != 0 ? 100'000 : 1'000'000;
}

/// Which threads use their per-thread default stream. Fences take other events in each case, and
/// the process remembers who used one. So each case is a test of its own.
enum class PerThread { kNobody, kOneThread, kAll };

/// What the threads of a test do.
struct Mix {
  PerThread per_thread = PerThread::kAll;
  int threads = 8;
  int streams = 16;                ///< at most kMostStreams
  std::uint32_t per_blocking = 2;  ///< one stream in so many is a blocking one
  std::uint32_t per_default = 50;  ///< one use in so many is of a default stream
  bool memory_is_short = false;    ///< so that requests may fail
};

/// With so few blocking streams the legacy stream often works while no blocking stream does. Only
/// then does a fence need an event on the legacy stream itself (tools/preload/legacy_event.hpp).
Mix mostly_non_blocking(PerThread per_thread) {
  return {
      .per_thread = per_thread, .threads = 4, .streams = 6, .per_blocking = 4, .per_default = 4};
}

struct Held {
  CUdeviceptr pointer = 0;
  std::uint32_t words = 0;
  std::uint32_t pattern = 0;
  int stream = 0;  ///< whose order its last use is in
};

std::atomic<std::uint64_t> corrupted{0};

/// What a stream is asked to look at when it comes there.
struct Look {
  CUdeviceptr pointer;
  std::uint32_t words;
  std::uint32_t pattern;
};

/// Runs in the stream's order, behind the work that wrote the pattern and before whatever the
/// block's next owner enqueues. Every word costs more than it says: the ends and one in the middle.
void look(void* data) {
  const Look what = *static_cast<Look*>(data);
  delete static_cast<Look*>(data);
  const auto* words = reinterpret_cast<const std::uint32_t*>(what.pointer);
  for (const std::uint32_t at : {std::uint32_t{0}, what.words / 2, what.words - 1}) {
    if (words[at] != what.pattern) ++corrupted;
  }
}

/// Streams that all threads use, each of them replaced now and then.
struct Streams {
  std::array<std::mutex, kMostStreams> locks;
  std::vector<CUstream> handles;
};

class HostileThread {
 public:
  HostileThread(std::uint64_t seed, int number, const Mix& mix, Streams& streams)
      : random_(seed * 31 + static_cast<std::uint64_t>(number)),
        number_(static_cast<std::uint32_t>(number)),
        mix_(mix),
        streams_(streams) {}

  void run(std::uint64_t count) {
    EXPECT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    for (std::uint64_t i = 0; i < count; ++i) step();
    while (!held_.empty()) give(held_.size() - 1);
    EXPECT_EQ(cuEventDestroy(event_), CUDA_SUCCESS);
  }

 private:
  std::uint32_t below(std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(0, most - 1)(random_);
  }
  /// Calls `body` with stream `index`, which nobody destroys meanwhile. Behind the created streams
  /// come the legacy stream and this thread's default stream.
  template <typename Body>
  void with(int index, const Body& body) {
    if (index == mix_.streams) {
      body(CU_STREAM_LEGACY);
    } else if (index > mix_.streams) {
      body(CU_STREAM_PER_THREAD);
    } else {
      const auto at = static_cast<std::size_t>(index);
      const std::lock_guard lock(streams_.locks.at(at));
      body(streams_.handles.at(at));
    }
  }
  int any_stream() {
    if (below(mix_.per_default) != 0) return any_created();
    const bool per_thread = mix_.per_thread == PerThread::kAll ||
                            (mix_.per_thread == PerThread::kOneThread && number_ == 0);
    return mix_.streams + static_cast<int>(per_thread ? below(2) : 0);
  }
  int any_created() { return static_cast<int>(below(static_cast<std::uint32_t>(mix_.streams))); }

  void step() {
    const std::uint32_t what = below(10'000);
    if (what == 0) {
      replace_a_stream();
    } else if (what == 1) {
      trim_some();
    } else if (what < 12) {
      EXPECT_EQ(cuMemGetInfo(nullptr, nullptr), CUDA_SUCCESS);
    } else if (held_.size() < kMostLive && (held_.empty() || below(2) == 0)) {
      take();
    } else {
      give(below(static_cast<std::uint32_t>(held_.size())));
    }
  }

  void take() {
    Held block;
    const bool in_order = below(2) == 0;
    const std::size_t bytes = 4 + below(kMostBytes - 4);
    block.words = static_cast<std::uint32_t>(bytes / 4);
    block.pattern = number_ << 24U | (++patterns_ & 0xFFFFFFU);
    block.stream = any_stream();
    with(block.stream, [&](CUstream stream) {
      const CUresult code = in_order ? cuMemAllocAsync(&block.pointer, bytes, stream)
                                     : cuMemAlloc(&block.pointer, bytes);
      if (mix_.memory_is_short && code == CUDA_ERROR_OUT_OF_MEMORY) return;
      ASSERT_EQ(code, CUDA_SUCCESS);
      // Memory in stream order belongs to that stream; any stream may use the other kind at once.
      EXPECT_EQ(cuMemsetD32Async(block.pointer, block.pattern, block.words, stream), CUDA_SUCCESS);
    });
    if (block.pointer != 0) held_.push_back(block);
  }

  /// Frees a block behind a look at it: on its stream, on another one that waits for that, or by
  /// cuMemFree. None of them waits on the host.
  void give(std::size_t index) {
    const Held block = held_.at(index);
    held_.at(index) = held_.back();
    held_.pop_back();
    const std::uint32_t how = below(4);
    int freed_on = block.stream;
    with(block.stream, [&](CUstream stream) {
      enqueue_look(block, stream);
      if (how == 0) {
        EXPECT_EQ(cuMemFree(block.pointer), CUDA_SUCCESS);
      } else if (how == 1) {
        EXPECT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
        freed_on = any_stream();
      } else {
        EXPECT_EQ(cuMemFreeAsync(block.pointer, stream), CUDA_SUCCESS);
      }
    });
    if (how != 1) return;
    with(freed_on, [&](CUstream stream) {
      EXPECT_EQ(cuStreamWaitEvent(stream, event_, 0), CUDA_SUCCESS);
      if (below(2) == 0) enqueue_look(block, stream);
      EXPECT_EQ(cuMemFreeAsync(block.pointer, stream), CUDA_SUCCESS);
    });
  }

  void enqueue_look(const Held& block, CUstream stream) {
    auto* const data = new Look{block.pointer, block.words, block.pattern};
    EXPECT_EQ(cuLaunchHostFunc(stream, &look, data), CUDA_SUCCESS);
  }

  void replace_a_stream() {
    const auto index = static_cast<std::size_t>(any_created());
    const std::lock_guard lock(streams_.locks.at(index));
    CUstream& stream = streams_.handles.at(index);
    // What blocks were used for on the old stream goes on being in order on the new one.
    EXPECT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    const bool blocking = below(mix_.per_blocking) == 0;
    EXPECT_EQ(cuStreamCreate(&stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING),
              CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(stream, event_, 0), CUDA_SUCCESS);
    if (below(4) == 0) weir_standin_delay(stream, 20'000);
  }

  void trim_some() {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(pool, below(2) == 0 ? 0 : kMib), CUDA_SUCCESS);
  }

  std::mt19937_64 random_;
  const std::uint32_t number_;
  const Mix& mix_;
  Streams& streams_;
  std::vector<Held> held_;
  std::uint32_t patterns_ = 0;
  CUevent event_ = nullptr;
};

class Hostile : public Inside {
 protected:
  static void run_all(std::uint64_t seed, std::uint64_t count, const Mix& mix) {
    Streams streams;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(mix.streams); ++i) {
      const bool blocking = i % mix.per_blocking == 0;
      streams.handles.push_back(make_stream(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
      const std::uint64_t late = mix.memory_is_short ? 100'000 : 5'000;
      if (i % 4 == 3) weir_standin_delay(streams.handles.back(), late);
    }
    std::vector<std::thread> threads;
    for (int number = 0; number < mix.threads; ++number) {
      threads.emplace_back([&, number] {
        ASSERT_NO_FATAL_FAILURE(use_device(0));
        HostileThread(seed, number, mix, streams)
            .run(count / static_cast<std::uint64_t>(mix.threads));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const CUstream stream : streams.handles) {
      EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    }
  }
  static void expect_nothing_left() {
    settle();
    EXPECT_EQ(books().allocated.current, Bytes{});
    EXPECT_EQ(books().requested.current, Bytes{});
    EXPECT_EQ(books().awaiting.current, Bytes{});
    EXPECT_EQ(books().held.current, Bytes{});
    (void)trim(0);
    EXPECT_EQ(books().reserved.current, Bytes{});
    EXPECT_EQ(arena().account().used(), Bytes{});
    EXPECT_EQ(weir_standin_live().device_blocks, 0U);
    EXPECT_EQ(weir_standin_used(0), 0U);
  }
  /// With enough memory for all.
  static void expect_no_block_in_two_hands(std::uint64_t count, const Mix& mix) {
    const std::uint64_t seed = weir::testing::random_seed();
    SCOPED_TRACE(weir::testing::seed_message(seed));
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
    run_all(seed, count, mix);
    EXPECT_EQ(corrupted, 0U);
    EXPECT_EQ(weir_standin_late_uses(), 0U);
    EXPECT_EQ(books().failures, 0U);
    expect_nothing_left();
  }
};

TEST_F(Hostile, NobodyHasABlockThatIsInUseAndNothingIsLeft) {
  expect_no_block_in_two_hands(operations(), {});
}

TEST_F(Hostile, NobodyHasABlockThatIsInUseWhereNobodyUsesAPerThreadStream) {
  expect_no_block_in_two_hands(operations() / 5, mostly_non_blocking(PerThread::kNobody));
}

TEST_F(Hostile, NobodyHasABlockThatIsInUseWhereOneThreadUsesAPerThreadStream) {
  expect_no_block_in_two_hands(operations() / 5, mostly_non_blocking(PerThread::kOneThread));
}

/// Less memory than the threads would have: releases, handovers, waits and failures on the way.
TEST_F(Hostile, NobodyHasABlockThatIsInUseWhereMemoryIsShort) {
  const std::uint64_t seed = weir::testing::random_seed() + 1;
  SCOPED_TRACE(weir::testing::seed_message(seed - 1));
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}}));
  run_all(seed, operations() / 10, {.memory_is_short = true});
  EXPECT_EQ(corrupted, 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
  EXPECT_GT(books().handovers, 0U);
  EXPECT_GT(books().waits, 0U);
  EXPECT_LE(weir_standin_peak(0), kMib);
  expect_nothing_left();
}

}  // namespace
}  // namespace weir::preload::testing
