// Real time: the host and the streams of the cpu device sleep.

#include <atomic>
#include <optional>
#include <thread>

#include "allocator/pool.hpp"
#include "bench/run_ahead/run.hpp"
#include "scheduler/device_link.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::run_ahead {
namespace {

using Clock = std::chrono::steady_clock;

/// Memory is smaller by this, and shown as if not: free run-ahead holds that of all batches.
constexpr std::uint64_t kScale = 8;

void sleep(Time time) {
  if (time > Time{}) std::this_thread::sleep_until(Clock::now() + time);
}

/// A device of its own.
struct Place {
  explicit Place(const RunAhead& run_ahead)
      : scheduler(device, pool,
                  {.budget = gib(3),
                   .policy = run_ahead.batches ? Policy::kThrottled : Policy::kUnbounded,
                   .run_ahead = run_ahead}) {}

  Device device = open_device("cpu", {.memory = gib(4)});
  Pool pool{device.memory(), {}};
  Scheduler scheduler;
};

class RealCase {
 public:
  RealCase(const RunAhead& run_ahead, bool linked) : first_(run_ahead) {
    if (!linked) return;
    second_.emplace(run_ahead);
    link_.emplace(first_.scheduler, second_->scheduler);
  }

  CaseRun run(const std::vector<std::vector<CaseBatch>>& producers) {
    all_ = producers.front().size();
    const auto start = Clock::now();
    {
      std::vector<std::jthread> threads;
      threads.reserve(producers.size());
      for (const auto& batches : producers) {
        threads.emplace_back([this, &batches] { produce(batches); });
      }
    }
    first_.scheduler.wait_all();
    if (second_) second_->scheduler.wait_all();
    const Bytes held = take_peak();
    return {.duration = Clock::now() - start,
            .work = Time(work_.load()),
            .held = held,
            .peak = std::max(first_peak_, held),
            .lost = first_.scheduler.admission().run_ahead.caused_idle};
  }

 private:
  /// Returns the most held since the last call, the sum over the devices.
  Bytes take_peak() {
    Bytes peak;
    for (Place* place : {&first_, second_ ? &*second_ : nullptr}) {
      if (place == nullptr) continue;
      peak += place->pool.statistics().held.peak;
      place->pool.reset_peaks();
    }
    return peak * kScale;
  }
  void produce(const std::vector<CaseBatch>& batches) {
    Tensor state = first_.scheduler.empty({16}, "state");
    const auto add = [](Stream&, Inputs, Outputs out) { out[0][0] += 1; };
    first_.scheduler.submit("init", {.writes = {state}}, add);
    for (const CaseBatch& batch : batches) {
      const std::uint64_t number = begun_++;
      if (number >= all_) break;
      work_ += work_of(batch).count();
      sleep(batch.load);
      if (3 * number >= 2 * all_ && !is_late_.exchange(true)) {
        first_peak_ = take_peak();
      }
      if (batch.new_thread) {
        std::jthread([&] { step(batch, state); }).join();
      } else {
        step(batch, state);
      }
      if (batch.read) (void)first_.scheduler.read(state);
    }
  }
  void step(const CaseBatch& batch, const Tensor& state) {
    Scheduler& scheduler = first_.scheduler;
    const Batch open = scheduler.begin_batch(batch.kind);
    sleep(batch.before);
    const std::uint64_t bytes = batch.memory.count / kScale;
    const Tensor input = scheduler.empty({bytes}, DType::kUInt8, "input");
    const auto take = [](Time time) { return [time](Stream&, Inputs, Outputs) { sleep(time); }; };
    scheduler.submit("copy", {.writes = {input}, .stream = StreamRole::kCopyIn}, take(batch.copy));
    sleep(batch.between);
    const Tensor result = scheduler.empty({16}, DType::kUInt8, "result");
    if (batch.first != Time{}) {
      scheduler.submit("first", {.reads = {input}, .writes = {result}}, take(batch.first));
    }
    if (batch.second == Time{}) {
      scheduler.submit("step", {.reads = {state}, .writes = {state}},
                       [](Stream&, Inputs, Outputs out) { out[0][0] += 1; });
      return;
    }
    if (batch.linked) {
      Scheduler& elsewhere = second_->scheduler;
      const Batch other = elsewhere.begin_batch(batch.kind);
      const Tensor copied = link_->copy_to(elsewhere, result);
      const Tensor second = elsewhere.empty({bytes}, DType::kUInt8, "second");
      elsewhere.submit("second", {.reads = {copied}, .writes = {second}}, take(batch.second));
      return;
    }
    const Tensor second = scheduler.empty({16}, DType::kUInt8, "second");
    const std::array both{input, result};
    scheduler.submit("second",
                     {.reads = std::span(both).first(batch.first != Time{} ? 2 : 1),
                      .writes = {second},
                      .stream = StreamRole::kCompute2},
                     take(batch.second));
  }

  Place first_;
  std::optional<Place> second_;
  std::optional<DeviceLink> link_;
  std::uint64_t all_ = 0;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::int64_t> work_{0};
  std::atomic<bool> is_late_{false};
  Bytes first_peak_{};
};

}  // namespace

CaseRun run_case(const std::vector<std::vector<CaseBatch>>& producers, const RunAhead& run_ahead) {
  return RealCase(run_ahead, producers.front().front().linked).run(producers);
}

}  // namespace weir::run_ahead
