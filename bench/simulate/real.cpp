#include "bench/simulate/real.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::simulate {
namespace {

using Clock = std::chrono::steady_clock;

/// Takes the time. Sleeps most of a long one, so that three threads share few cores.
void take(Time time) {
  constexpr Time kSpin = std::chrono::microseconds(150);
  const auto end = Clock::now() + time;
  if (time > 2 * kSpin) std::this_thread::sleep_until(end - kSpin);
  while (Clock::now() < end) {
  }
}

Time since(Clock::time_point start) { return Clock::now() - start; }

Policy policy_of(const PolicyChoice& policy) {
  if (policy.rule == PolicyChoice::Rule::kWeir) return Policy::kThrottled;
  if (policy.barrier) return Policy::kBarrier;
  return policy.has_budget ? Policy::kBackstop : Policy::kUnbounded;
}

Shape shape_of(Bytes bytes) {
  return {std::max<std::uint64_t>(1, bytes.count / kScale / sizeof(float))};
}

PoolOptions pool_options() {
  PoolOptions options;
  options.kind = PoolKind::kPaged;
  return options;
}

class RealRun {
 public:
  RealRun(const Workload& workload, const PolicyChoice& policy, const RealOptions& options)
      : workload_(workload),
        policy_(policy),
        options_(options),
        scheduler_(device_, pool_,
                   {.budget = policy.has_budget ? std::optional(scaled_budget()) : std::nullopt,
                    .policy = policy_of(policy),
                    .run_ahead = policy.run_ahead}) {}

  [[nodiscard]] RealResult run() {
    const std::size_t producers = workload_.producers.size();
    moments_ = std::vector<std::deque<Moments>>(producers);
    start_ = Clock::now();
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < producers; ++i) others.emplace_back([this, i] { produce(i); });
      produce(0);
    }
    scheduler_.wait_all();
    RealResult result{.duration = since(start_),
                      .peak = pool_.statistics().reserved.peak * kScale,
                      .held = pool_.statistics().held.peak * kScale,
                      .batches = {},
                      .failed = failed_.load(),
                      .caused_idle = scheduler_.admission().run_ahead.caused_idle};
    for (const auto& of : moments_) result.batches.push_back(of.size());
    std::vector<Moments*> all;
    for (auto& of : moments_) {
      for (Moments& batch : of) all.push_back(&batch);
    }
    result.samples = samples_of(all, producers == 1);
    for (const auto& of : moments_) {
      auto& delays = result.recorded.emplace_back();
      for (const Moments& batch : of) delays.push_back(batch.delays);
    }
    return result;
  }

 private:
  [[nodiscard]] Bytes scaled_budget() const { return {options_.budget.count / kScale}; }

  void produce(std::size_t producer) {
    Batches batches(workload_, producer, options_.seed, options_.budget);
    std::deque<Tensor> kept;
    Spent from = spent();
    // As in the simulation, whoever is ready begins the next of all batches.
    while (begun_.fetch_add(1) < options_.batches) {
      Moments& moments = moments_[producer].emplace_back();
      moments.shape = batches.next();
      note_call(moments, moments.delays.host, from);
      spend(moments.shape.load, moments.delays.host, from);
      try {
        submit(moments, kept, from);
      } catch (const OutOfMemory&) {
        ++failed_;
        from = spent();
      }
      while (kept.size() > workload_.retain) kept.pop_front();
    }
  }

  /// `from`: when the batch was loaded, and at the end, when it was closed.
  void submit(Moments& moments, std::deque<Tensor>& kept, Spent& from) {
    const BatchShape& shape = moments.shape;
    BatchOptions options;
    if (shape.hint) options.hint = Bytes{shape.hint->count / kScale};
    Batch batch = scheduler_.begin_batch("kind " + std::to_string(shape.kind), options);
    note_call(moments, moments.delays.host, from);
    const auto spend_own = [&](Time time) {
      note_call(moments, moments.delays.submit, from);
      spend(time, moments.delays.submit, from);
    };
    {
      const std::uint64_t before = handovers();
      Tensor inputs = scheduler_.empty(shape_of(shape.inputs), "inputs");
      std::vector<Tensor> writes{inputs};
      if (workload_.retain > 0) {
        kept.push_back(scheduler_.empty(shape_of(shape.retained), "kept"));
        writes.push_back(kept.back());
      }
      const Time half = shape.submit / 2;
      spend_own(half);
      scheduler_.submit("copy", {.writes = writes, .stream = StreamRole::kCopyIn},
                        [this, &moments](Stream&, Inputs, Outputs) {
                          take(moments.shape.copy);
                          moments.copied = since(start_).count();
                        });
      moments.copy_enqueued = since(start_);
      const std::uint64_t between = handovers();
      moments.copy_is_handed_over = between != before;
      const Tensor work = scheduler_.empty(shape_of(shape.work), "work");
      // A batch keeps an output. Its compute writes it.
      std::vector<Tensor> outputs{work};
      if (workload_.retain > 0) outputs.push_back(kept.back());
      spend_own(shape.submit - half);
      scheduler_.submit("compute", {.reads = {inputs}, .writes = outputs},
                        [this, &moments](Stream&, Inputs, Outputs) {
                          take(moments.shape.compute);
                          moments.computed = since(start_).count();
                        });
      moments.enqueued = since(start_);
      moments.work_is_handed_over = handovers() != between;
    }
    batch.close();
    note_call(moments, moments.delays.submit, from);
  }

  /// Adds to `sum` what calls have taken since `from`, which becomes now.
  void note_call(Moments& moments, Time& sum, Spent& from) const {
    const Spent now = spent();
    const bool may_wait = policy_of(policy_) != Policy::kUnbounded;
    sum += host_time(from, now, may_wait);
    // Its longest sleep: it may also sleep for a moment where another thread has a lock.
    const Time asleep = now.wall - from.wall - (now.cpu - from.cpu);
    if (may_wait && now.sleeps != from.sleeps && asleep > moments.asleep) {
      moments.asleep = asleep;
      // The work of begin_batch after its wait delays the batch. The work before it is hidden by
      // the wait.
      const bool begins = &sum == &moments.delays.host;
      moments.slept_from = from.wall - start_.time_since_epoch();
      moments.woken = now.wall - start_.time_since_epoch();
      moments.own = begins ? Time{} : now.cpu - from.cpu;
      moments.slept_once_to_begin = begins && now.sleeps == from.sleeps + 1;
    }
    from = now;
  }
  /// Does the workload's own work. Adds to `sum` what it takes longer than `time`.
  static void spend(Time time, Time& sum, Spent& from) {
    take(time);
    const Spent now = spent();
    sum += now.wall - from.wall - time;
    from = now;
  }
  [[nodiscard]] std::uint64_t handovers() const { return pool_.statistics().handovers; }

  const Workload& workload_;
  const PolicyChoice& policy_;
  const RealOptions options_;
  std::vector<std::deque<Moments>> moments_;  ///< of each producer; outlives the scheduler
  std::atomic<std::uint64_t> begun_{0};       ///< by all producers; a bit more at the end
  weir::Device device_{std::make_unique<CpuDevice>(gib(2048))};
  Pool pool_{device_.memory(), pool_options()};
  Scheduler scheduler_;
  Clock::time_point start_;
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace

bool runs_for_real(const PolicyChoice& policy) noexcept {
  return policy.rule == PolicyChoice::Rule::kWeir || policy.rule == PolicyChoice::Rule::kNothing;
}

bool runs_for_real(const Workload& workload) noexcept { return workload.collective == 0; }

RealResult run_for_real(const Workload& workload, const PolicyChoice& policy,
                        const RealOptions& options) {
  return RealRun(workload, policy, options).run();
}

}  // namespace weir::simulate
