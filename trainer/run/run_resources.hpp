#pragma once

// The resources of a run: a device of its own, a pool, readers and a scheduler, the figures that
// are collected from them, and what helps if its memory runs out.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/share/share.hpp"
#include "allocator/share/shared_budget.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/run/train.hpp"
#include "trainer/static/static_batch.hpp"

namespace weir {

/// What a run that runs out of memory did until then.
struct RunSoFar {
  Policy policy = Policy::kThrottled;
  std::uint64_t batches = 0;         ///< finished, training or test
  bool shared = false;               ///< the budget is a part of one that several processes share
  std::string budgets = "--budget";  ///< the flags of all budgets that the run has
};

/// Returns the flag that helps in this case and why, as one line; empty if the error has no
/// figures: then its text says what was missing.
[[nodiscard]] std::string remedy_for(const MemoryShortage& shortage, const RunSoFar& run);

class RunResources {
 public:
  /// OutOfMemory when the pool cannot hold the workspace.
  explicit RunResources(const TrainSettings& settings);

  [[nodiscard]] Scheduler& scheduler() noexcept { return scheduler_; }
  [[nodiscard]] Operations& operations() noexcept { return operations_; }
  /// A reader that lives as long as the resources; see Reader on `made_beforehand`. OutOfMemory
  /// when the pool cannot hold one of its batches at all, before host memory is spent on them.
  Reader& add_reader(const BatchShape& shape, BatchSource source,
                     std::uint64_t made_beforehand = 0);

  /// Another kind of reader, that lives as long: `Kind(staging, arguments…)`.
  template <typename Kind, typename... Arguments>
  Kind& add(Arguments&&... arguments) {
    auto reader = std::make_unique<Kind>(
        DeviceMemory{device_.backend().host_upstream(), device_.memory().progress},
        std::forward<Arguments>(arguments)...);
    Kind& added = *reader;
    readers_.push_back(std::move(reader));
    return added;
  }

  /// Calls `body`, which submits a batch: collected by StaticBatch::run if the settings say so.
  template <typename Body>
  void submit_batch(std::string_view name, Body&& body) {
    if (!static_batch_) return std::forward<Body>(body)();
    static_batch_->run(name, std::forward<Body>(body));
  }

  [[nodiscard]] Bytes held() const { return pool_.pressure().held; }
  [[nodiscard]] Bytes budget() { return scheduler_.memory_info().total; }
  [[nodiscard]] Bytes staging() const;
  /// Returns the host memory that the readers obtained so far, also what they returned.
  [[nodiscard]] Bytes staging_obtained() const;
  /// Returns the device time of a stream's tasks so far.
  [[nodiscard]] std::chrono::nanoseconds busy(StreamRole role = StreamRole::kCompute) {
    return device_.backend().busy(role);
  }

  /// Returns the device's idle time so far that throttling caused.
  [[nodiscard]] std::chrono::nanoseconds caused_idle() const {
    return scheduler_.admission().run_ahead.caused_idle;
  }

  /// Returns all stalls of dispatch so far, for any reason.
  [[nodiscard]] Stalls stalls() const;

  /// Collects the figures of the pool, admission and the readers, and all stalls.
  void collect(TrainResult& result);

 private:
  // Reverse destruction order: the scheduler first waits for the device, which still reads the
  // readers' buffers and runs closures that use the maths.
  Device device_;
  std::unique_ptr<Share> share_;  ///< null: the budget is this process's own
  Pool pool_;
  std::unique_ptr<SharedBudget> shared_budget_;
  std::vector<std::unique_ptr<StagedReader>> readers_;
  std::unique_ptr<Maths> maths_;
  Scheduler scheduler_;
  Operations operations_;
  std::optional<StaticBatch> static_batch_;
};

/// Measures from construction, or the last start, to the first stop.
class Watch {
 public:
  explicit Watch(RunResources& resources) : resources_(resources) { start(); }
  void start();
  /// Stores the time and the idle shares. Further calls do nothing.
  void stop(TrainResult& result);

 private:
  using Clock = std::chrono::steady_clock;

  RunResources& resources_;
  bool running_ = true;
  Clock::time_point started_;
  std::chrono::nanoseconds busy_before_{};
  std::chrono::nanoseconds caused_before_{};
};

/// The frontend's time for each batch, without stalls.
class HostTimes {
 public:
  /// All must outlive it. `other` are those of a second device, or null. Dispatch is held back in
  /// batches alone from now on.
  HostTimes(const RunResources& resources, TrainResult& result, const RunResources* other = nullptr)
      : resources_(resources), other_(other), result_(result), held_before_(held()) {}
  /// Writes the median.
  ~HostTimes();
  HostTimes(const HostTimes&) = delete;
  HostTimes& operator=(const HostTimes&) = delete;

  void start() { started_ = Clock::now(); }
  /// Call when all of a batch is submitted.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::chrono::nanoseconds held() const {
    const std::chrono::nanoseconds here = resources_.stalls().total;
    return other_ != nullptr ? here + other_->stalls().total : here;
  }

  const RunResources& resources_;
  const RunResources* const other_;
  TrainResult& result_;
  std::chrono::nanoseconds held_before_;
  Clock::time_point started_;
  std::vector<double> times_;
};

/// Runs `work`. If it runs out of memory, notes that in `result`: the report, and what helps under
/// these settings. `budgets` names the flags of the budgets that it may have run out of.
void until_out_of_memory(TrainResult& result, const TrainSettings& settings,
                         const std::function<void()>& work,
                         const std::string& budgets = "--budget");

}  // namespace weir
