#include "bench/faq/cache.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <vector>

#include "allocator/pool.hpp"
#include "bench/faq/cache_misses.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kColumns = 512;
constexpr std::size_t kHostBatches = 64;  // as many for each depth: reading them needs cache too

/// Returns this thread's time on a processor. A long queue would otherwise be charged for what
/// other programs do meanwhile, and a short one not.
std::chrono::nanoseconds processor_time() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// Counts on the thread of the compute stream.
struct Measured {
  std::unique_ptr<CacheMisses> counter{};
  std::chrono::nanoseconds time{};
  std::uint64_t misses = 0;
  std::uint64_t operations = 0;
};

class CacheRun {
 public:
  explicit CacheRun(const CacheCase& what)
      : what_(what),
        rows_(what.batch.count / sizeof(float) / kColumns),
        host_(kHostBatches, std::vector<float>(rows_ * kColumns, 0.5F)),
        weights_(make(kColumns, "weights")),
        result_(make(rows_, "result")) {
    scheduler_.submit("open", {}, [this](Stream&, Inputs, Outputs) {
      measured_.counter = std::make_unique<CacheMisses>();
    });
    round();  // the pool's first memory, and the BLAS's
    measured_ = {.counter = std::move(measured_.counter)};
  }

  [[nodiscard]] CacheFigures run(std::uint64_t operations) {
    while (measured_.operations < operations) round();
    const auto count = static_cast<double>(measured_.operations);
    CacheFigures figures{.seconds = std::chrono::duration<double>(measured_.time).count() / count,
                         .refusal = measured_.counter->refusal()};
    if (measured_.counter->read()) figures.misses = static_cast<double>(measured_.misses) / count;
    return figures;
  }

 private:
  Tensor make(std::size_t rows, std::string_view label) {
    Tensor tensor = scheduler_.empty({rows, kColumns}, label);
    scheduler_.submit("begin", {.writes = {tensor}},
                      [](Stream&, Inputs, Outputs out) { fill(out[0], 0.001F); });
    return tensor;
  }

  /// Copies `depth` batches and then computes with each.
  void round() {
    std::vector<Tensor> batches;
    for (std::uint64_t i = 0; i < what_.depth; ++i) {
      batches.push_back(scheduler_.copy_in(borrowed(host_.at(next_++ % kHostBatches)),
                                           {rows_, kColumns}, "batch"));
    }
    // Copies keep their order, so this waits for all of them.
    scheduler_.submit("all copied", {.reads = {batches.back()}}, [](Stream&, Inputs, Outputs) {});
    for (Tensor& batch : batches) {
      submit(batch);
      batch = {};
    }
    scheduler_.wait_all();
  }

  void submit(const Tensor& batch) {
    scheduler_.submit("use", {.reads = {batch, weights_, result_}, .writes = {result_}},
                      [this](Stream&, Inputs in, Outputs out) {
                        const auto missed = measured_.counter->read();
                        const auto start = processor_time();
                        if (what_.operation == CacheOperation::kAdd) {
                          add(in[0], out[0]);
                        } else {
                          gemm({.m = rows_, .n = kColumns, .k = kColumns}, in[0], in[1], out[0]);
                        }
                        measured_.time += processor_time() - start;
                        const auto missed_now = measured_.counter->read();
                        if (missed && missed_now) measured_.misses += *missed_now - *missed;
                        ++measured_.operations;
                      });
  }

  const CacheCase what_;
  const std::size_t rows_;
  const std::vector<std::vector<float>> host_;
  std::size_t next_ = 0;
  Measured measured_;  ///< outlives the device, whose thread writes it
  Device device_{std::make_unique<CpuDevice>(gib(1))};
  Pool pool_{device_.memory()};
  Scheduler scheduler_{device_, pool_, {.policy = Policy::kUnbounded}};
  const Tensor weights_;
  const Tensor result_;
};

}  // namespace

CacheFigures run_cache(const CacheCase& what, std::uint64_t operations) {
  return CacheRun(what).run(operations);
}

}  // namespace weir::bench
