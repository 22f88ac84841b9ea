// Host buffers that batches are staged in: the trainer's free list. A step returns the oldest of a
// reader's five buffers and takes the next one. No buffer is touched.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/shared/table.hpp"
#include "trainer/data/staging.hpp"

namespace weir::bench {
namespace {

/// Two ready, one being filled, two being copied.
constexpr std::size_t kBuffers = 5;
constexpr Bytes kRowBytes{513 * sizeof(float)};
constexpr std::uint64_t kMostRows = 1024;

/// The sizes that the reader of `thread` asks for, in turn.
using StagedSizes = std::vector<Bytes> (*)(int thread);

std::vector<Bytes> one_size(int /*thread*/) { return {kRowBytes * kMostRows}; }

std::vector<Bytes> size_of_each_reader(int thread) {
  return {kRowBytes * (kMostRows >> static_cast<unsigned>(thread))};
}

std::vector<Bytes> variable_batches(int thread) {
  std::vector<Bytes> sizes(1U << 14U);
  std::minstd_rand random(static_cast<unsigned>(thread) + 1);
  std::uniform_int_distribution<std::uint64_t> rows(1, kMostRows);
  for (Bytes& size : sizes) size = kRowBytes * rows(random);
  return sizes;
}

/// Shared by the threads of one run.
struct StagedHeap {
  MappedUpstream upstream{gib(1)};
  StagingBuffers buffers{upstream};
};
std::unique_ptr<StagedHeap> staged_heap;

void stage(benchmark::State& state, StagedSizes sizes_of) {
  StagingBuffers& heap = staged_heap->buffers;
  const std::vector<Bytes> sizes = sizes_of(state.thread_index());
  std::size_t step = 0;
  const auto next = [&] { return sizes[step++ % sizes.size()]; };
  std::array<StagingBuffers::Buffer, kBuffers> in_use;
  for (auto& buffer : in_use) buffer = heap.allocate(next());
  for ([[maybe_unused]] auto _ : state) {
    auto& oldest = in_use.at(step % kBuffers);
    heap.deallocate(oldest);
    oldest = heap.allocate(next());
    benchmark::DoNotOptimize(oldest);
  }
  if (state.thread_index() == 0) {
    state.counters["MiB"] = static_cast<double>(heap.reserved().peak.count) / (1U << 20U);
    state.counters["calls"] = static_cast<double>(heap.upstream_calls());
  }
  for (auto& buffer : in_use) heap.deallocate(buffer);
}

void add_staging_case(Table& table, const std::string& what, int threads, StagedSizes sizes) {
  const std::string name = "staging/" + what + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), stage, sizes)
      ->Threads(threads)
      ->UseRealTime()
      ->Setup([](const benchmark::State&) { staged_heap = std::make_unique<StagedHeap>(); })
      ->Teardown([](const benchmark::State&) { staged_heap.reset(); });
  table.add({.figure = name, .most_ns = 150});
  table.add({.figure = name, .counter = "MiB"});
  table.add({.figure = name, .counter = "calls"});
}

}  // namespace

void add_staging(Table& table) {
  add_staging_case(table, "one_size", 1, one_size);
  for (const int threads : {2, 4}) add_staging_case(table, "readers", threads, size_of_each_reader);
  for (const int threads : {1, 2, 4})
    add_staging_case(table, "variable", threads, variable_batches);
}

}  // namespace weir::bench
