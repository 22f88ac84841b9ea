// Measures the cost of the allocation log: one event, including its share of the copies to the
// file; and an allocate+free of a cached block (two events) with and without the log.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "allocator/log/allocation_log.hpp"
#include "allocator/pool.hpp"
#include "bench/shared/table.hpp"
#include "scheduler/device/cpu_device.hpp"

namespace weir::bench {
namespace {

/// Returns a unique name for a log. Each benchmark deletes its file.
std::string fresh_path() {
  static int made = 0;
  return (std::filesystem::temp_directory_path() /
          ("weir-bench." + std::to_string(getpid()) + "." + std::to_string(++made)))
      .string();
}

void event(benchmark::State& state) {
  const std::string path = fresh_path();
  {
    AllocationLog log("log", path, gib(64));
    std::uint64_t sequence = 0;
    for ([[maybe_unused]] auto _ : state) {
      log.write({.sequence = ++sequence,
                 .address = sequence,
                 .bytes = 4096,
                 .stream = 1,
                 .pool = 1,
                 .event = AllocationEvent::kFree});
    }
    if (log.lost() != 0) state.SkipWithError("the disk is full: events were lost");
  }
  std::filesystem::remove(path);
}

void allocate_and_free(benchmark::State& state, const PoolOptions& options) {
  CpuDevice device(gib(1), std::make_unique<SimulatedUpstream>(gib(1)));
  Pool pool({device.upstream(), device.progress()}, options);
  const StreamId stream = device.stream(StreamRole::kCompute);
  for ([[maybe_unused]] auto _ : state) {
    void* pointer = pool.allocate(kib(64), stream, "bench");
    benchmark::DoNotOptimize(pointer);
    pool.deallocate(pointer, stream);
  }
}

void pool_without(benchmark::State& state) { allocate_and_free(state, {}); }

void pool_with(benchmark::State& state) {
  const std::string path = fresh_path();
  PoolOptions options;
  options.log = {path, "the benchmark"};
  options.log_limit.value = gib(64);
  allocate_and_free(state, options);
  std::filesystem::remove(path);  // the log is open until the process ends; its space is freed then
}

}  // namespace

void add_log(Table& table) {
  benchmark::RegisterBenchmark("log/event", event)->UseRealTime();
  table.add({.figure = "log/event", .most_ns = 50});
  benchmark::RegisterBenchmark("log/pool_without", pool_without)->UseRealTime();
  table.add({.figure = "log/pool_without"});
  benchmark::RegisterBenchmark("log/pool_with", pool_with)->UseRealTime();
  table.add({.figure = "log/pool_with", .against = "log/pool_without"});
}

}  // namespace weir::bench
