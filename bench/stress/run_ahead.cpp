#include "bench/stress/run_ahead.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/pool.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::bench {
namespace {

class Frontend {
 public:
  Frontend(Scheduler& scheduler, const RunAheadOptions& options)
      : scheduler_(scheduler),
        options_(options),
        host_(options.inputs.count / sizeof(float), 1.0F),
        total_(scheduler.empty({1}, "total")) {
    scheduler_.submit("begin", {.writes = {total_}},
                      [](Stream&, Inputs, Outputs out) { out[0].front() = 0; });
  }

  /// Submits a batch of the first `elements` of the inputs.
  void submit_batch(std::size_t elements) {
    const Batch batch = scheduler_.begin_batch("inputs");
    const Tensor x =
        scheduler_.copy_in(borrowed(std::span(host_).first(elements)), {elements}, "inputs");
    scheduler_.submit("work", {.reads = {x, total_}, .writes = {total_}},
                      [work = &options_.work](Stream&, Inputs in, Outputs out) {
                        (*work)();
                        out[0].front() += in[0].front();
                      });
  }
  /// Returns how many batches were submitted.
  [[nodiscard]] std::uint64_t submit_all() {
    for (std::uint64_t i = 0; i < options_.batches; ++i) {
      try {
        submit_batch(host_.size());
      } catch (const OutOfMemory&) {
        if (options_.on_refusal) options_.on_refusal();
        return i;
      }
    }
    return options_.batches;
  }
  [[nodiscard]] std::size_t elements() const { return host_.size(); }
  [[nodiscard]] float total() { return scheduler_.read(total_).front(); }

 private:
  Scheduler& scheduler_;
  const RunAheadOptions& options_;
  const std::vector<float> host_;
  const Tensor total_;
};

std::string wrong_after(Scheduler& scheduler, Pool& pool, Frontend& frontend,
                        std::uint64_t batches) {
  if (frontend.total() != static_cast<float>(batches)) return "a batch was lost or counted twice";
  try {
    for (int i = 0; i < 8; ++i) frontend.submit_batch(frontend.elements() / 4);
    scheduler.wait_all();
  } catch (const std::exception& error) {
    return std::string("smaller batches do not go on: ") + error.what();
  }
  pool.poll();
  const Statistics statistics = pool.statistics();
  const Bytes sum =
      statistics.allocated.current + statistics.awaiting.current + statistics.cached.current;
  if (sum != statistics.reserved.current) return "allocated + awaiting + cached is not reserved";
  return {};
}

}  // namespace

RunAheadFigures run_ahead(Policy policy, const RunAheadOptions& options) {
  Device device(std::make_unique<CpuDevice>(gib(1)));
  Pool pool(device.memory(), options.pool);
  Scheduler scheduler(device, pool, {.budget = options.budget, .policy = policy});
  Frontend frontend(scheduler, options);

  RunAheadFigures figures;
  figures.policy = policy;
  figures.batches = frontend.submit_all();
  figures.ran_out = figures.batches < options.batches;
  scheduler.wait_all();
  const Statistics statistics = pool.statistics();
  const AdmissionStatistics admission = scheduler.admission();
  figures.peak_reserved = statistics.reserved.peak;
  figures.waits = statistics.waits + admission.stalled + scheduler.barriers().count;
  figures.wrong = wrong_after(scheduler, pool, frontend, figures.batches);
  return figures;
}

std::function<void()> half_a_millisecond() {
  return [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
}

}  // namespace weir::bench
