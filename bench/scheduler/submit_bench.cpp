// Measures what `submit` costs the frontend while the worker is busy, and separately what waking a
// sleeping worker costs.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Operations to queue before the worker may process them; the processing is not measured.
constexpr int kSubmitted = 1000;

/// Calls `submit_one(scheduler)` repeatedly, in an open batch, behind a busy worker.
template <typename SubmitOne>
void worker_busy(benchmark::State& state, Rig& rig, const SubmitOne& submit_one) {
  const Batch batch = rig.scheduler.begin_batch("bench");
  auto busy = std::make_unique<Busy>(rig.scheduler);
  while (state.KeepRunningBatch(kSubmitted)) {
    for (int i = 0; i < kSubmitted; ++i) submit_one();
    state.PauseTiming();
    busy.reset();
    busy = std::make_unique<Busy>(rig.scheduler);
    state.ResumeTiming();
  }
}

Tensor written_tensor(Scheduler& scheduler) {
  Tensor tensor = scheduler.empty({1024});
  scheduler.submit("fill", {.writes = {tensor}}, [](Stream&, Inputs, Outputs) {});
  return tensor;
}

/// Two tensors read, one updated; all have their memory.
void operation(benchmark::State& state) {
  Rig rig;
  const Tensor x = written_tensor(rig.scheduler);
  const Tensor w = written_tensor(rig.scheduler);
  const Tensor y = written_tensor(rig.scheduler);
  worker_busy(state, rig, [&] {
    rig.scheduler.submit("dense", {.reads = {x, w}, .writes = {y}},
                         [](Stream&, Inputs, Outputs) {});
  });
}

/// A new output: its handle, its memory and its free are part of the cost.
void new_output(benchmark::State& state) {
  Rig rig;
  const Tensor x = written_tensor(rig.scheduler);
  const Tensor w = written_tensor(rig.scheduler);
  worker_busy(state, rig, [&] {
    const Tensor y = rig.scheduler.empty({1024}, "y");
    rig.scheduler.submit("dense", {.reads = {x, w}, .writes = {y}},
                         [](Stream&, Inputs, Outputs) {});
  });
}

/// Submits to a sleeping worker. Measures the call, or with `until_begun` the time until the
/// operation runs.
void worker_asleep(benchmark::State& state, bool until_begun) {
  Rig rig;
  std::atomic<Clock::time_point> begun;
  for ([[maybe_unused]] auto _ : state) {
    rig.scheduler.wait_all();
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // until it certainly sleeps
    const Clock::time_point start = Clock::now();
    rig.scheduler.submit("wake", {}, [&begun](Stream&, Inputs, Outputs) { begun = Clock::now(); });
    Clock::time_point end = Clock::now();
    rig.scheduler.wait_all();
    if (until_begun) end = begun;
    state.SetIterationTime(std::chrono::duration<double>(end - start).count());
  }
}

}  // namespace

void add_submit(Table& table) {
  table.add({.figure = "submit/worker_busy", .most_ns = 1000}, operation)->UseRealTime();
  table.add({.figure = "submit/worker_busy/new_output", .most_ns = 1000}, new_output)
      ->UseRealTime();
  for (const bool until_begun : {false, true}) {
    const std::string name =
        std::string("submit/worker_asleep/") + (until_begun ? "until_begun" : "call");
    table
        .add({.figure = name},
             [until_begun](benchmark::State& state) { worker_asleep(state, until_begun); })
        ->UseManualTime()
        ->Iterations(300);
  }
}

}  // namespace weir::bench
