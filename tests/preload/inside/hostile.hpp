#pragma once

// A program that allocates and frees at random, on many threads and streams, and checks that nobody
// else had a block while it was in use.

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <random>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/sanitized.hpp"

namespace weir::preload::testing {

inline constexpr std::size_t kMostStreams = 16;
inline constexpr std::size_t kMostLive = 24;  // blocks of a thread
inline constexpr std::size_t kMostBytes = 16384;

/// Number of operations; WEIR_TEST_OPERATIONS overrides it. A tenth of them where
/// WEIR_TEST_FEWER_OPERATIONS is set.
inline std::uint64_t operations() {
  const char* text = std::getenv("WEIR_TEST_OPERATIONS");
  if (text != nullptr && *text != '\0') return std::strtoull(text, nullptr, 10);
  const bool fewer =
      WEIR_TEST_SANITIZED != 0 || std::getenv("WEIR_TEST_FEWER_OPERATIONS") != nullptr;
  return fewer ? 100'000 : 1'000'000;
}

/// Which threads use their per-thread default stream. Fences take other events in each case, and
/// the process remembers who used one, so each case is a separate test.
enum class PerThread { kNobody, kOneThread, kAll };

/// What the threads of a test do.
struct Mix {
  PerThread per_thread = PerThread::kAll;
  int threads = 8;
  int streams = 16;                ///< at most kMostStreams
  std::uint32_t per_blocking = 2;  ///< one stream in so many is blocking
  std::uint32_t per_default = 50;  ///< one use in so many is of a default stream
  bool memory_is_short = false;    ///< so that requests may fail
  int devices = 1;                 ///< the streams and the threads are spread over
  std::uint32_t per_capture = 0;   ///< one step in so many is a capture; 0 for none
};

struct Held {
  CUdeviceptr pointer = 0;
  std::uint32_t words = 0;
  std::uint32_t pattern = 0;
  int stream = 0;  ///< of its last use
};

inline std::atomic<std::uint64_t> corrupted{0};

/// What a host function on a stream checks.
struct Look {
  CUdeviceptr pointer;
  std::uint32_t words;
  std::uint32_t pattern;
};

/// Runs in the stream's order, behind the work that wrote the pattern and before any work of the
/// block's next owner. Each word is slow to check, so it checks the ends and one in the middle.
inline void check(const Look& what) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(what.pointer);
  for (const std::uint32_t at : {std::uint32_t{0}, what.words / 2, what.words - 1}) {
    if (words[at] != what.pattern) ++corrupted;
  }
}
inline void look(void* data) {
  check(*static_cast<Look*>(data));
  delete static_cast<Look*>(data);
}

/// Streams that all threads use, each replaced now and then. Stream `i` is of device `i` modulo
/// their number.
struct Streams {
  std::array<std::mutex, kMostStreams> locks;
  std::vector<CUstream> handles;
  std::vector<CUcontext> contexts;  ///< of the devices
};

class HostileThread {
 public:
  HostileThread(std::uint64_t seed, int number, const Mix& mix, Streams& streams)
      : random_(seed * 31 + static_cast<std::uint64_t>(number)),
        number_(static_cast<std::uint32_t>(number)),
        mix_(mix),
        device_(number % mix.devices),
        streams_(streams) {}

  void run(std::uint64_t count) {
    for (const CUcontext context : streams_.contexts) {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      EXPECT_EQ(cuEventCreate(&events_.emplace_back(), CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSetCurrent(streams_.contexts.at(at(device_))), CUDA_SUCCESS);
    for (std::uint64_t i = 0; i < count; ++i) step();
    while (!held_.empty()) give(held_.size() - 1);
    for (const CUevent event : events_) EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  }

  /// Graphs whose host functions checked, and the actual and expected number of checks.
  [[nodiscard]] std::uint64_t looks_due() const { return looks_due_; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  std::uint32_t below(std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(0, most - 1)(random_);
  }
  /// Calls `body` with stream `index`, which nobody destroys meanwhile. The indexes after the
  /// created streams are the legacy stream and this thread's default stream.
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] int device_of(int index) const {
    return index < mix_.streams ? index % mix_.devices : device_;
  }
  [[nodiscard]] CUevent event_for(int index) const { return events_.at(at(device_of(index))); }

  template <typename Body>
  void with(int index, const Body& body) {
    if (index == mix_.streams) {
      body(CU_STREAM_LEGACY);
    } else if (index > mix_.streams) {
      body(CU_STREAM_PER_THREAD);
    } else {
      const std::lock_guard lock(streams_.locks.at(at(index)));
      body(streams_.handles.at(at(index)));
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
    if (mix_.per_capture != 0 && below(mix_.per_capture) == 0) return capture();
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

  /// Frees a block behind a check: on its stream, on another one that waits for it, or by
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
        EXPECT_EQ(cuEventRecord(event_for(block.stream), stream), CUDA_SUCCESS);
        freed_on = any_stream();
      } else {
        EXPECT_EQ(cuMemFreeAsync(block.pointer, stream), CUDA_SUCCESS);
      }
    });
    if (how != 1) return;
    with(freed_on, [&](CUstream stream) {
      EXPECT_EQ(cuStreamWaitEvent(stream, event_for(block.stream), 0), CUDA_SUCCESS);
      if (below(2) == 0) enqueue_look(block, stream);
      EXPECT_EQ(cuMemFreeAsync(block.pointer, stream), CUDA_SUCCESS);
    });
  }

  void enqueue_look(const Held& block, CUstream stream) {
    auto* const data = new Look{block.pointer, block.words, block.pattern};
    EXPECT_EQ(cuLaunchHostFunc(stream, &look, data), CUDA_SUCCESS);
  }

  void replace_a_stream() {
    const int index = any_created();
    const std::lock_guard lock(streams_.locks.at(at(index)));
    CUstream& stream = streams_.handles.at(at(index));
    // Work on a block's old stream must stay ordered before the new one's.
    EXPECT_EQ(cuEventRecord(event_for(index), stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    const bool blocking = below(mix_.per_blocking) == 0;
    EXPECT_EQ(cuCtxSetCurrent(streams_.contexts.at(at(device_of(index)))), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING),
              CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(streams_.contexts.at(at(device_))), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(stream, event_for(index), 0), CUDA_SUCCESS);
    if (below(4) == 0) weir_standin_delay(stream, 20'000);
  }

  void trim_some() {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemPoolTrimTo(pool, below(2) == 0 ? 0 : kMib), CUDA_SUCCESS);
  }

  /// Captures work on a stream of each of two devices, and launches the graph. Meanwhile every
  /// other stream and this thread's other memory continue.
  void capture() {
    const int first = any_created();
    const int second = any_created();
    if (device_of(first) == device_of(second)) return;
    const std::scoped_lock locks(streams_.locks.at(at(first)), streams_.locks.at(at(second)));
    const CUstream origin = streams_.handles.at(at(first));
    const CUstream joined = streams_.handles.at(at(second));
    // A capture that waits for the legacy stream would stop the threads that use it.
    if (!is_alone(origin) || !is_alone(joined)) return;
    constexpr std::array kModes{CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                CU_STREAM_CAPTURE_MODE_RELAXED};
    EXPECT_EQ(cuStreamBeginCapture(origin, kModes.at(below(kModes.size()))), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(event_for(first), origin), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(joined, event_for(first), 0), CUDA_SUCCESS);
    const std::uint64_t looks = capture_work(joined) + capture_work(origin);
    const bool merged = captures_++ != 0 && below(8) != 0;
    if (merged) {
      EXPECT_EQ(cuEventRecord(event_for(second), joined), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamWaitEvent(origin, event_for(second), 0), CUDA_SUCCESS);
    }
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(origin, &graph),
              merged ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    if (graph != nullptr) launch(graph, looks, origin);
  }

  static bool is_alone(CUstream stream) {
    unsigned int flags = 0;
    EXPECT_EQ(cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
    return (flags & CU_STREAM_NON_BLOCKING) != 0;
  }

  /// Captures memory of the graph's own with a pattern and a check, and memory that is not the
  /// graph's. Returns the number of checks of each launch.
  std::uint64_t capture_work(CUstream stream) {
    CUdeviceptr block = 0;
    const std::uint32_t words = 1 + below(kMostBytes / 4 - 1);
    const std::uint32_t pattern = number_ << 24U | (++patterns_ & 0xFFFFFFU);
    EXPECT_EQ(cuMemAllocAsync(&block, words * std::size_t{4}, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32Async(block, pattern, words, stream), CUDA_SUCCESS);
    graph_looks_.push_back({{block, words, pattern}, &looks_});
    EXPECT_EQ(cuLaunchHostFunc(stream, &look_again, &graph_looks_.back()), CUDA_SUCCESS);
    CUdeviceptr other = 0;
    EXPECT_EQ(cuMemAlloc(&other, 4 + below(kMostBytes)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(block, stream), CUDA_SUCCESS);
    return 1;
  }

  void launch(CUgraph graph, std::uint64_t looks, CUstream stream) {
    CUgraphExec launchable = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&launchable, graph, 0), CUDA_SUCCESS);
    for (std::uint32_t left = below(4); left > 0; --left) {
      EXPECT_EQ(cuGraphLaunch(launchable, stream), CUDA_SUCCESS);
      looks_due_ += looks;
    }
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(launchable), CUDA_SUCCESS);
  }

  /// A check by each launch of a graph.
  struct GraphLook {
    Look look;
    std::atomic<std::uint64_t>* count;
  };
  static void look_again(void* data) {
    const auto& mine = *static_cast<GraphLook*>(data);
    check(mine.look);
    ++*mine.count;
  }

  std::mt19937_64 random_;
  const std::uint32_t number_;
  const Mix& mix_;
  const int device_;
  Streams& streams_;
  std::vector<Held> held_;
  std::uint32_t patterns_ = 0;
  std::vector<CUevent> events_;  ///< one for each device
  std::uint64_t captures_ = 0;
  std::deque<GraphLook> graph_looks_;  ///< for as long as the graphs are there
  std::uint64_t looks_due_ = 0;
  std::atomic<std::uint64_t> looks_{0};
};

class Hostile : public Inside {
 protected:
  static void run_all(std::uint64_t seed, std::uint64_t count, const Mix& mix) {
    Streams streams;
    for (int device = mix.devices; device-- > 0;) {
      ASSERT_NO_FATAL_FAILURE(use_device(device));
      ASSERT_EQ(cuCtxGetCurrent(&*streams.contexts.emplace(streams.contexts.begin())),
                CUDA_SUCCESS);
    }
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(mix.streams); ++i) {
      ASSERT_EQ(cuCtxSetCurrent(streams.contexts.at(i % streams.contexts.size())), CUDA_SUCCESS);
      const bool blocking = i / streams.contexts.size() % mix.per_blocking == 0;
      streams.handles.push_back(make_stream(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
      const std::uint64_t late = mix.memory_is_short ? 100'000 : 5'000;
      if (i % 4 == 3) weir_standin_delay(streams.handles.back(), late);
    }
    run_threads(seed, count, mix, streams);
    for (const CUstream stream : streams.handles) {
      EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuCtxSetCurrent(streams.contexts.front()), CUDA_SUCCESS);
  }
  static void expect_nothing_left() {
    settle();
    EXPECT_EQ(cuMemGetInfo(nullptr, nullptr), CUDA_SUCCESS);  // learns what graphs have
    EXPECT_EQ(statistics().allocated.current, Bytes{});
    EXPECT_EQ(statistics().requested.current, Bytes{});
    EXPECT_EQ(statistics().awaiting.current, Bytes{});
    EXPECT_EQ(statistics().held.current, Bytes{});
    (void)trim(0);
    (void)trim(1);
    EXPECT_EQ(statistics().reserved.current, Bytes{});
    EXPECT_EQ(arena().account().used(), Bytes{});
  }
  static void expect_nothing_left_at_the_driver() {
    EXPECT_EQ(weir_standin_live().device_blocks, 0U);
    EXPECT_EQ(weir_standin_used(0), 0U);
  }
  /// With enough memory for all.
  static void expect_no_block_in_two_hands(std::uint64_t count, const Mix& mix) {
    const std::uint64_t seed = weir::testing::random_seed();
    SCOPED_TRACE(weir::testing::seed_message(seed));
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
    ASSERT_NO_FATAL_FAILURE(run_all(seed, count, mix));
    EXPECT_EQ(corrupted, 0U);
    EXPECT_EQ(weir_standin_late_uses(), 0U);
    EXPECT_EQ(statistics().failures, 0U);
    expect_nothing_left();
    expect_nothing_left_at_the_driver();
  }

 private:
  static void run_threads(std::uint64_t seed, std::uint64_t count, const Mix& mix,
                          Streams& streams) {
    std::vector<std::unique_ptr<HostileThread>> programs;
    std::vector<std::thread> threads;
    for (int number = 0; number < mix.threads; ++number) {
      programs.push_back(std::make_unique<HostileThread>(seed, number, mix, streams));
      threads.emplace_back([&, program = programs.back().get()] {
        program->run(count / static_cast<std::uint64_t>(mix.threads));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const CUcontext context : streams.contexts) {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    std::uint64_t due = 0;
    for (const auto& program : programs) {
      EXPECT_EQ(program->looks(), program->looks_due());
      due += program->looks_due();
    }
    if (mix.per_capture != 0) {
      EXPECT_GT(due, 0U) << "no graph was launched";
    }
  }
};

}  // namespace weir::preload::testing
