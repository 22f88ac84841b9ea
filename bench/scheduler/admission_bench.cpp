// Measures the cost of beginning and closing a batch that nothing holds back. `begin_batch` settles
// what the device has passed, joins the queue, decides and opens a charge. The end of the scope
// hands the charge over. The batch submits nothing.

#include <benchmark/benchmark.h>

#include <optional>
#include <vector>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"

namespace weir::bench {
namespace {

void begin_and_close(benchmark::State& state, Scheduler& scheduler) {
  for ([[maybe_unused]] auto _ : state) {
    const Batch batch = scheduler.begin_batch("train");
    benchmark::DoNotOptimize(batch.joined());
  }
}

void uncontended(benchmark::State& state) {
  Rig rig;
  begin_and_close(state, rig.scheduler);
}

/// Behind a late device: each decision examines 100 unsettled batches.
void behind_100_batches(benchmark::State& state) {
  Rig rig({.run_ahead = {.batches = std::nullopt, .time = {}}});
  { const Batch first = rig.scheduler.begin_batch("train"); }  // so that the kind is known
  const Busy busy(rig.scheduler);
  for (int i = 0; i < 100; ++i) {
    const Batch batch = rig.scheduler.begin_batch("train");
    rig.scheduler.submit("queued", {}, [](Stream&, Inputs, Outputs) {});
  }
  begin_and_close(state, rig.scheduler);
}

/// All threads begin batches of one scheduler.
std::unique_ptr<Rig> shared;

void contended(benchmark::State& state) { begin_and_close(state, shared->scheduler); }

}  // namespace

void add_admission(Table& table) {
  benchmark::RegisterBenchmark("admission/uncontended", uncontended)->UseRealTime();
  table.add({.figure = "admission/uncontended", .most_ns = 200});
  benchmark::RegisterBenchmark("admission/behind_100_batches", behind_100_batches)->UseRealTime();
  table.add({.figure = "admission/behind_100_batches", .against = "admission/uncontended"});
  benchmark::RegisterBenchmark("admission/two_threads", contended)
      ->Threads(2)
      ->UseRealTime()
      ->Setup([](const benchmark::State& /*state*/) { shared = std::make_unique<Rig>(); })
      ->Teardown([](const benchmark::State& /*state*/) { shared.reset(); });
  table.add({.figure = "admission/two_threads", .against = "admission/uncontended"});
}

}  // namespace weir::bench
