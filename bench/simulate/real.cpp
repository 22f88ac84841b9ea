#include "bench/simulate/real.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

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

/// When a batch's parts happened, since the run began.
struct Moments {
  BatchShape shape{};
  Time loaded_from{};
  Time asked{};
  Time copy_enqueued{};
  Time enqueued{};
  Time closed{};
  Time waited{};  ///< end of the wait after it
  std::atomic<std::int64_t> copied{0};
  std::atomic<std::int64_t> computed{0};
};

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
                      .batches = {},
                      .failed = failed_.load(),
                      .caused_idle = scheduler_.admission().run_ahead.caused_idle};
    for (const auto& of : moments_) result.batches.push_back(of.size());
    if (producers == 1 && failed_ == 0) result.samples = samples();
    return result;
  }

 private:
  [[nodiscard]] Bytes scaled_budget() const { return {options_.budget.count / kScale}; }

  void produce(std::size_t producer) {
    Batches batches(workload_, producer, options_.seed, options_.budget);
    std::deque<Tensor> kept;
    // As in the simulation, whoever is ready begins the next of all batches.
    while (begun_.fetch_add(1) < options_.batches) {
      Moments& moments = moments_[producer].emplace_back();
      moments.shape = batches.next();
      moments.loaded_from = since(start_);
      take(moments.shape.load);
      moments.asked = since(start_);
      try {
        submit(moments, kept);
      } catch (const OutOfMemory&) {
        ++failed_;
      }
      while (kept.size() > workload_.retain) kept.pop_front();
      moments.waited = since(start_);
    }
  }

  void submit(Moments& moments, std::deque<Tensor>& kept) {
    const BatchShape& shape = moments.shape;
    BatchOptions options;
    if (shape.hint) options.hint = Bytes{shape.hint->count / kScale};
    Batch batch = scheduler_.begin_batch("kind " + std::to_string(shape.kind), options);
    {
      Tensor inputs = scheduler_.empty(shape_of(shape.inputs), "inputs");
      std::vector<Tensor> writes{inputs};
      if (workload_.retain > 0) {
        kept.push_back(scheduler_.empty(shape_of(shape.retained), "kept"));
        writes.push_back(kept.back());
      }
      const Time half = shape.submit / 2;
      take(half);
      scheduler_.submit("copy", {.writes = writes, .stream = StreamRole::kCopyIn},
                        [this, &moments](Stream&, Inputs, Outputs) {
                          take(moments.shape.copy);
                          moments.copied = since(start_).count();
                        });
      moments.copy_enqueued = since(start_);
      const Tensor work = scheduler_.empty(shape_of(shape.work), "work");
      take(shape.submit - half);
      // What a batch keeps is an output: the compute writes it too.
      std::vector<Tensor> outputs{work};
      if (workload_.retain > 0) outputs.push_back(kept.back());
      scheduler_.submit("compute", {.reads = {inputs}, .writes = outputs},
                        [this, &moments](Stream&, Inputs, Outputs) {
                          take(moments.shape.compute);
                          moments.computed = since(start_).count();
                        });
      moments.enqueued = since(start_);
    }
    moments.closed = since(start_);
    batch.close();
  }

  [[nodiscard]] JitterSamples samples() const {
    JitterSamples samples;
    Time copied{};
    Time computed{};
    for (const Moments& moments : moments_.front()) {
      const BatchShape& shape = moments.shape;
      const auto add = [](std::vector<Time>& to, Time sample) {
        to.push_back(std::max(sample, Time{}));
      };
      const Time copy_end(moments.copied.load());
      add(samples.copy, copy_end - std::max(copied, moments.copy_enqueued) - shape.copy);
      const Time ready = std::max(copy_end, moments.enqueued);
      const Time end(moments.computed.load());
      add(computed >= ready ? samples.device : samples.device_idle,
          end - std::max(computed, ready) - shape.compute);
      if (!policy_.has_budget) {
        add(samples.host, moments.closed - moments.loaded_from - shape.load - shape.submit);
      }
      if (policy_.barrier) add(samples.wake_up, moments.waited - end);
      copied = copy_end;
      computed = end;
    }
    return samples;
  }

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

void JitterSamples::add(const JitterSamples& other) {
  const auto append = [](std::vector<Time>& to, const std::vector<Time>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(wake_up, other.wake_up);
  append(host, other.host);
  append(copy, other.copy);
  append(device, other.device);
  append(device_idle, other.device_idle);
}

Jitter JitterSamples::distributions() const {
  Jitter jitter;
  jitter.wake_up = Distribution(histogram(wake_up));
  jitter.host = Distribution(histogram(host));
  jitter.copy = Distribution(histogram(copy));
  jitter.device = Distribution(histogram(device));
  jitter.device_idle = Distribution(histogram(device_idle));
  return jitter;
}

bool runs_for_real(const PolicyChoice& policy) noexcept {
  return policy.rule == PolicyChoice::Rule::kWeir || policy.rule == PolicyChoice::Rule::kNothing;
}

bool runs_for_real(const Workload& workload) noexcept { return workload.collective == 0; }

RealResult run_for_real(const Workload& workload, const PolicyChoice& policy,
                        const RealOptions& options) {
  return RealRun(workload, policy, options).run();
}

}  // namespace weir::simulate
