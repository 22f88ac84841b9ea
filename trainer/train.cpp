#include "trainer/train.hpp"

#include <utility>

#include "allocator/error.hpp"
#include "kernels/blas.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/mlp.hpp"
#include "trainer/reader.hpp"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// Everything that a run stands on, in the order in which it must be torn down backwards: the
/// scheduler first waits for the device, which still reads the reader's buffers.
struct Bench {
  explicit Bench(const TrainSettings& s)
      : device(open_device(s.device.value, {.memory = s.device_memory.value})),
        pool(device.memory(), s.pool),
        reader(fitting(s)),
        scheduler(device, pool,
                  {.policy = s.policy.policy.value, .run_ahead = s.policy.run_ahead.value}) {}

  Device device;
  Pool pool;
  Reader reader;
  Scheduler scheduler;

 private:
  /// A reader whose batches the pool can hold at all: OutOfMemory with the pool's report otherwise,
  /// before host memory is spent on them.
  Reader fitting(const TrainSettings& s) {
    const Shape inputs{s.batch_size.value, s.widths.front()};
    const StreamId copy_in = device.backend().stream(StreamRole::kCopyIn);
    pool.deallocate(pool.allocate(inputs.bytes(), copy_in, "inputs"), copy_in);
    return {{device.backend().host_upstream(), device.memory().progress},
            {.rows = s.batch_size.value, .inputs = s.widths.front(), .targets = s.widths.back()},
            generated_source(s.seed.value),
            s.made_beforehand};
  }
};

void train_batch(Bench& bench, const TrainSettings& settings, Mlp& model, const Tensor& total,
                 const std::stop_token& stop) {
  const HostBatch host = bench.reader.next();
  Scheduler& scheduler = bench.scheduler;
  const Batch batch = scheduler.begin_batch("train", {.stop = stop});
  Mlp::Tape tape =
      model.forward(scheduler.copy_in(host.inputs, {host.rows, settings.widths.front()}, "inputs"));
  const Tensor targets =
      scheduler.copy_in(host.targets, {host.rows, settings.widths.back()}, "targets");
  bench.reader.give_back(host, scheduler.written(targets));  // the later of the two copies
  accumulate(scheduler, total, l2_loss(scheduler, tape.back(), targets));
  Tensor gradient = l2_loss_gradient(scheduler, tape.back(), targets);
  model.backward(std::move(tape), std::move(gradient));
  model.step(static_cast<float>(settings.learning_rate.value),
             static_cast<float>(settings.momentum.value));
}

void collect(TrainResult& result, Bench& bench, Clock::time_point start,
             std::chrono::nanoseconds busy_before) {
  const auto wall = Clock::now() - start;
  const auto busy = bench.device.backend().busy(StreamRole::kCompute) - busy_before;
  result.seconds = seconds_of(wall);
  result.idle_share = 1 - seconds_of(busy) / result.seconds;
  result.pool = bench.pool.statistics();
  result.admission = bench.scheduler.admission();
  result.staging = bench.reader.staging_memory();
  const AdmissionStatistics& a = result.admission;
  for (const Stalls& s : {a.hard, a.soft, a.turn, a.grace, bench.scheduler.barriers(),
                          Stalls{result.pool.waits, result.pool.waited}}) {
    result.stalls.count += s.count;
    result.stalls.total += s.total;
  }
}

/// The loop. What it throws leaves the bench usable, and `result` with what was done.
void run_batches(TrainResult& result, Bench& bench, const TrainSettings& settings,
                 const TrainHooks& hooks, Clock::time_point& start,
                 std::chrono::nanoseconds& busy_before) {
  Mlp model(bench.scheduler, settings.widths, settings.seed.value);
  const Tensor total = filled(bench.scheduler, {1}, 0, "loss total");
  bench.scheduler.wait_all();
  busy_before = bench.device.backend().busy(StreamRole::kCompute);
  start = Clock::now();
  while (result.batches < settings.batches.value && !hooks.stop.stop_requested()) {
    try {
      train_batch(bench, settings, model, total, hooks.stop);
    } catch (const Cancelled&) {
      break;  // held back at its begin: nothing of it was submitted
    }
    ++result.batches;
    result.samples.push_back({bench.pool.pressure().held, bench.reader.staging_memory()});
    if (hooks.progress) hooks.progress(result.batches, settings.batches.value);
  }
  bench.scheduler.wait_all();
  collect(result, bench, start, busy_before);
  if (result.batches != 0) {
    result.mean_loss = static_cast<double>(bench.scheduler.read(total).front()) /
                       static_cast<double>(result.batches);
  }
  if (result.batches == settings.batches.value) {
    result.weights = model.read_parameters();
  } else {
    result.outcome = Outcome::kInterrupted;
  }
}

void run_on_bench(TrainResult& result, const TrainSettings& settings, const TrainHooks& hooks) {
  Bench bench(settings);
  Clock::time_point start = Clock::now();
  std::chrono::nanoseconds busy_before{};
  try {
    run_batches(result, bench, settings, hooks, start, busy_before);
    return;
  } catch (const OutOfMemory& error) {
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
  bench.scheduler.wait_all();
  collect(result, bench, start, busy_before);
}

}  // namespace

TrainResult train(const TrainSettings& settings, const TrainHooks& hooks) {
  settings.validate();
  reserve_blas_memory();
  set_blas_threads(1);
  TrainResult result;
  try {
    run_on_bench(result, settings, hooks);
  } catch (const OutOfMemory& error) {  // not even one batch's inputs fit
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
  return result;
}

std::string describe_outcome(const TrainResult& result) {
  switch (result.outcome) {
    case Outcome::kFinished:
      return "finished";
    case Outcome::kOutOfMemory:
      return "out of memory in batch " + std::to_string(result.batches + 1);
    case Outcome::kInterrupted:
      return "interrupted after " + std::to_string(result.batches) + " batches";
  }
  return "unknown";
}

}  // namespace weir
