#include "bench/faq/made_run.hpp"

#include <memory>
#include <thread>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Takes the time. Sleeps most of a long one, so that three threads share two cores.
void take(std::chrono::nanoseconds time) {
  constexpr auto kSpin = std::chrono::microseconds(150);
  const auto end = Clock::now() + time;
  if (time > 2 * kSpin) std::this_thread::sleep_until(end - kSpin);
  while (Clock::now() < end) {
  }
}

void run_batch(Scheduler& scheduler, const MadeTimes& times, const Tensor& total) {
  take(times.read);
  const Batch batch = scheduler.begin_batch("made");
  const Tensor x = scheduler.empty({mib(1).count / sizeof(float)}, "inputs");
  scheduler.submit("copy", {.writes = {x}, .stream = StreamRole::kCopyIn},
                   [&times](Stream&, Inputs, Outputs) { take(times.copy); });
  for (std::uint64_t i = 0; i < times.operations; ++i) {
    take(times.launch);
    scheduler.submit("compute", {.reads = {x, total}, .writes = {total}},
                     [&times](Stream&, Inputs, Outputs) { take(times.compute); });
  }
}

}  // namespace

MadeRunFigures run_made(const MadeTimes& times, Policy policy, std::uint64_t batches) {
  Device device{std::make_unique<CpuDevice>(gib(1))};
  Pool pool{device.memory()};
  Scheduler scheduler{device, pool, {.budget = mib(64), .policy = policy}};
  const Tensor total = scheduler.empty({1}, "total");
  scheduler.submit("begin", {.writes = {total}}, [](Stream&, Inputs, Outputs) {});
  scheduler.wait_all();
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < batches; ++i) run_batch(scheduler, times, total);
  scheduler.wait_all();
  return {.time = Clock::now() - start,
          .copying = device.backend().busy(StreamRole::kCopyIn),
          .computing = device.backend().busy(StreamRole::kCompute),
          .most_in_flight = scheduler.admission().most_submitted};
}

}  // namespace weir::bench
