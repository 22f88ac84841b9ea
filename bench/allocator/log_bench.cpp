// Measures the cost of the allocation log: one event, including its share of the copies to the
// file; and an allocate+free of a cached block (two events) with and without the log.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>

#include "allocator/log/allocation_log.hpp"
#include "allocator/pool.hpp"
#include "bench/shared/table.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "tools/program/temporary_folder.hpp"

namespace weir::bench {
namespace {

void event(benchmark::State& state) {
  const TemporaryFolder folder(process_environment(), "weir-bench");
  AllocationLog log("log", folder.path() + "/log", gib(64));
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
  // The log is open until the process ends; its space is freed then.
  const TemporaryFolder folder(process_environment(), "weir-bench");
  PoolOptions options;
  options.log = {folder.path() + "/log", "the benchmark"};
  options.log_limit.value = gib(64);
  allocate_and_free(state, options);
}

}  // namespace

void add_log(Table& table) {
  table.add({.figure = "log/event", .most_ns = 50}, event)->UseRealTime();
  table.add({.figure = "log/pool_without"}, pool_without)->UseRealTime();
  table.add({.figure = "log/pool_with", .against = "log/pool_without"}, pool_with)->UseRealTime();
}

}  // namespace weir::bench
