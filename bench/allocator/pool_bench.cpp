// Compares allocate and free of a cached block, with other blocks live, to jemalloc's malloc and
// free.
//
// The pool uses the cpu device's Progress (real streams and points) and addresses without memory,
// so that any number of blocks of any size can be live. jemalloc's blocks are not touched either.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "bench/shared/jemalloc.hpp"
#include "bench/shared/table.hpp"
#include "scheduler/device/cpu_device.hpp"

namespace weir::bench {
namespace {

struct Held {
  void* pointer = nullptr;
  Bytes size;
};

/// Returns sizes of `live` mixed blocks, including the measured ones, to be divided among threads.
std::vector<Bytes> mixed_sizes(std::size_t live) {
  const std::array<Bytes, 5> sizes{kib(16), kib(64), kib(256), mib(1), mib(8)};
  std::vector<Bytes> drawn(live);
  std::minstd_rand random(1);
  for (Bytes& size : drawn) size = sizes.at(random() % sizes.size());
  return drawn;
}

/// A pool shared by all threads, each with its own stream.
class PoolHeap {
 public:
  PoolHeap(std::size_t threads, std::size_t live)
      : device_(gib(1), std::make_unique<SimulatedUpstream>(gib(4096))),
        pool_({device_.upstream(), device_.progress()}, {}),
        held_(threads) {
    std::size_t i = 0;
    for (const Bytes size : mixed_sizes(live)) {
      const std::size_t thread = i++ % threads;
      held_[thread].push_back({allocate(size, thread), size});
    }
  }
  ~PoolHeap() {
    for (std::size_t thread = 0; thread < held_.size(); ++thread) {
      for (const Held& block : held_[thread]) free(block.pointer, thread);
    }
  }
  PoolHeap(const PoolHeap&) = delete;
  PoolHeap& operator=(const PoolHeap&) = delete;

  void enter(std::size_t /*thread*/) {}
  void leave(std::size_t /*thread*/) {}
  void* allocate(Bytes size, std::size_t thread) {
    return pool_.allocate(size, streams_.at(thread), "activations");
  }
  void free(void* pointer, std::size_t thread) { pool_.deallocate(pointer, streams_.at(thread)); }
  std::vector<Held>& held(std::size_t thread) { return held_[thread]; }

 private:
  CpuDevice device_;
  const std::array<StreamId, kStreamRoles> streams_{
      device_.stream(StreamRole::kCompute), device_.stream(StreamRole::kCompute2),
      device_.stream(StreamRole::kCopyIn), device_.stream(StreamRole::kCopyOut)};
  Pool pool_;
  std::vector<std::vector<Held>> held_;
};

/// jemalloc's heap with its default settings, where each of so few threads has its own arena.
class JemallocHeap {
 public:
  JemallocHeap(std::size_t threads, std::size_t live) : arenas_(threads), held_(threads) {
    const std::vector<Bytes> sizes = mixed_sizes(live);
    for (std::size_t thread = 0; thread < threads; ++thread) {
      enter(thread);
      for (std::size_t i = thread; i < live; i += threads) {
        held_[thread].push_back({allocate(sizes[i], thread), sizes[i]});
      }
      leave(thread);
    }
  }

  void enter(std::size_t thread) { arenas_[thread].enter(); }
  void leave(std::size_t thread) { arenas_[thread].leave(); }
  static void* allocate(Bytes size, std::size_t /*thread*/) {
    return Jemalloc::kMalloc(size.count);
  }
  static void free(void* pointer, std::size_t /*thread*/) { Jemalloc::kFree(pointer); }
  std::vector<Held>& held(std::size_t thread) { return held_[thread]; }

 private:
  std::vector<Jemalloc::Arena> arenas_;
  std::vector<std::vector<Held>> held_;
};

/// Shared by the threads of one run; one thread makes and destroys it.
template <typename Heap>
std::unique_ptr<Heap> the_heap;

std::size_t thread_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.thread_index());
}

template <typename Heap>
void same_block(benchmark::State& state, Bytes size) {
  Heap& heap = *the_heap<Heap>;
  const std::size_t thread = thread_of(state);
  heap.enter(thread);
  for ([[maybe_unused]] auto _ : state) {
    void* pointer = heap.allocate(size, thread);
    benchmark::DoNotOptimize(pointer);
    heap.free(pointer, thread);
  }
  heap.leave(thread);
}

template <typename Heap>
void random_blocks(benchmark::State& state) {
  Heap& heap = *the_heap<Heap>;
  const std::size_t thread = thread_of(state);
  std::vector<Held>& held = heap.held(thread);
  // Drawn in advance, to keep it out of the measurement.
  std::vector<std::uint32_t> draws(1U << 15U);
  std::minstd_rand random(static_cast<unsigned>(thread) + 1);
  std::uniform_int_distribution<std::uint32_t> any(0, static_cast<std::uint32_t>(held.size()) - 1);
  for (std::uint32_t& draw : draws) draw = any(random);
  std::size_t step = 0;
  heap.enter(thread);
  for ([[maybe_unused]] auto _ : state) {
    Held& block = held[draws[step++ % draws.size()]];
    // Likewise a cache miss of the list of blocks.
    __builtin_prefetch(&held[draws[step % draws.size()]], 1);
    heap.free(block.pointer, thread);
    block.pointer = heap.allocate(block.size, thread);
  }
  heap.leave(thread);
}

template <typename Heap, typename Function>
void add(const std::string& name, int threads, std::int64_t live, const Function& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->Args({live})
      ->Threads(threads)
      ->UseRealTime()
      ->Setup([](const benchmark::State& state) {
        the_heap<Heap> = std::make_unique<Heap>(static_cast<std::size_t>(state.threads()),
                                                static_cast<std::size_t>(state.range(0)));
      })
      ->Teardown([](const benchmark::State& /*state*/) { the_heap<Heap>.reset(); });
}

std::string name_of(const std::string& what, std::int64_t live, int threads) {
  return "pool/" + what + "/live:" + std::to_string(live) + "/threads:" + std::to_string(threads);
}

void add_same_block(Table& table, Bytes size, std::int64_t live, int threads) {
  std::string text = format_bytes(size);
  std::erase(text, ' ');
  const std::string name = name_of("same/" + text, live, threads);
  const std::string peer = name + "/jemalloc";
  add<PoolHeap>(name, threads, live, [size](auto& state) { same_block<PoolHeap>(state, size); });
  add<JemallocHeap>(peer, threads, live,
                    [size](auto& state) { same_block<JemallocHeap>(state, size); });
  const bool alone = threads == 1;
  table.add({.figure = name,
             .against = peer,
             .most_ns = alone ? 150.0 : 0,
             .most_ratio = alone ? 1.0 : 0});
  if (alone && live == 100'000) {
    table.add({.figure = name, .against = name_of("same/" + text, 10, 1), .most_ratio = 1.5});
  }
}

void add_random_blocks(Table& table, std::int64_t live, int threads) {
  const std::string name = name_of("random", live, threads);
  const std::string peer = name + "/jemalloc";
  add<JemallocHeap>(peer, threads, live, random_blocks<JemallocHeap>);
  add<PoolHeap>(name, threads, live, random_blocks<PoolHeap>);
  table.add({.figure = name, .against = peer});
  if (threads == 1 && live == 100'000) {
    table.add({.figure = name, .against = name_of("random", 10, 1), .most_ratio = 4.0});
  }
}

}  // namespace

void add_pool(Table& table) {
  for (const Bytes size : {kib(64), mib(1), mib(8)}) {
    for (const std::int64_t live : {10, 1000, 100'000}) add_same_block(table, size, live, 1);
  }
  for (const std::int64_t live : {10, 1000, 100'000}) add_random_blocks(table, live, 1);
  for (const int threads : {2, 4}) {
    for (const std::int64_t live : {10, 1000, 100'000}) {
      add_same_block(table, kib(64), live, threads);
      add_random_blocks(table, live, threads);
    }
  }
}

}  // namespace weir::bench
