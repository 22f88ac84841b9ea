// Real time: the host and the streams of the cpu device sleep.

#include <atomic>
#include <thread>

#include "allocator/pool.hpp"
#include "bench/run_ahead/run.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::run_ahead {
namespace {

using Clock = std::chrono::steady_clock;

void sleep(Time time) {
  if (time > Time{}) std::this_thread::sleep_until(Clock::now() + time);
}

class RealCase {
 public:
  explicit RealCase(const RunAhead& run_ahead)
      : scheduler_(device_, pool_,
                   {.budget = gib(3),
                    .policy = run_ahead.batches ? Policy::kThrottled : Policy::kUnbounded,
                    .run_ahead = run_ahead}) {}

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
    scheduler_.wait_all();
    const Bytes held = pool_.statistics().held.peak;
    return {.duration = Clock::now() - start,
            .work = Time(work_.load()),
            .held = held,
            .peak = std::max(first_peak_, held),
            .lost = scheduler_.admission().run_ahead.caused_idle};
  }

 private:
  void produce(const std::vector<CaseBatch>& batches) {
    Tensor state = scheduler_.empty({16}, "state");
    const auto add = [](Stream&, Inputs, Outputs out) { out[0][0] += 1; };
    scheduler_.submit("init", {.writes = {state}}, add);
    for (const CaseBatch& batch : batches) {
      const std::uint64_t number = begun_++;
      if (number >= all_) break;
      work_ += work_of(batch).count();
      sleep(batch.load);
      if (3 * number >= 2 * all_ && !is_late_.exchange(true)) {
        first_peak_ = pool_.statistics().held.peak;
        pool_.reset_peaks();
      }
      if (batch.new_thread) {
        std::jthread([&] { step(batch, state); }).join();
      } else {
        step(batch, state);
      }
      if (batch.read) (void)scheduler_.read(state);
    }
  }
  void step(const CaseBatch& batch, const Tensor& state) {
    const Batch open = scheduler_.begin_batch(batch.kind);
    sleep(batch.before);
    const Tensor input = scheduler_.empty({batch.memory.count}, DType::kUInt8, "input");
    const auto take = [](Time time) { return [time](Stream&, Inputs, Outputs) { sleep(time); }; };
    scheduler_.submit("copy", {.writes = {input}, .stream = StreamRole::kCopyIn}, take(batch.copy));
    sleep(batch.between);
    const Tensor result = scheduler_.empty({16}, DType::kUInt8, "result");
    if (batch.first != Time{}) {
      scheduler_.submit("first", {.reads = {input}, .writes = {result}}, take(batch.first));
    }
    if (batch.second == Time{}) {
      scheduler_.submit("step", {.reads = {state}, .writes = {state}},
                        [](Stream&, Inputs, Outputs out) { out[0][0] += 1; });
      return;
    }
    const Tensor second = scheduler_.empty({16}, DType::kUInt8, "second");
    const std::array both{input, result};
    scheduler_.submit("second",
                      {.reads = std::span(both).first(batch.first != Time{} ? 2 : 1),
                       .writes = {second},
                       .stream = StreamRole::kCompute2},
                      take(batch.second));
  }

  Device device_ = open_device("cpu", {.memory = gib(4)});
  Pool pool_{device_.memory(), {}};
  Scheduler scheduler_;
  std::uint64_t all_ = 0;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::int64_t> work_{0};
  std::atomic<bool> is_late_{false};
  Bytes first_peak_{};
};

}  // namespace

CaseRun run_case(const std::vector<std::vector<CaseBatch>>& producers, const RunAhead& run_ahead) {
  return RealCase(run_ahead).run(producers);
}

}  // namespace weir::run_ahead
