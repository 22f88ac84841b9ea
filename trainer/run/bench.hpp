#pragma once

// What a run stands on: a device of its own, a pool, readers and a scheduler, and the figures that
// are collected from them.

#include <chrono>
#include <memory>
#include <vector>

#include "scheduler/device/device.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/run/train.hpp"

namespace weir {

class Bench {
 public:
  /// OutOfMemory when the pool cannot hold the workspace.
  explicit Bench(const TrainSettings& settings);

  [[nodiscard]] Scheduler& scheduler() noexcept { return scheduler_; }
  [[nodiscard]] Operations& operations() noexcept { return operations_; }
  /// A reader that lives as long as the bench; see Reader on `made_beforehand`. OutOfMemory when
  /// the pool cannot hold one of its batches at all, before host memory is spent on them.
  Reader& add_reader(const BatchShape& shape, BatchSource source,
                     std::uint64_t made_beforehand = 0);

  [[nodiscard]] Bytes held() const { return pool_.pressure().held; }
  [[nodiscard]] Bytes staging() const;
  /// For how long the compute stream has worked.
  [[nodiscard]] std::chrono::nanoseconds busy() {
    return device_.backend().busy(StreamRole::kCompute);
  }

  /// Every time so far that dispatch was held back, for whatever reason.
  [[nodiscard]] Stalls stalls() const;

  /// The pool's, admission's and the readers' figures, and the stalls of all of them.
  void collect(TrainResult& result);

 private:
  // In the order in which they must be torn down backwards: the scheduler first waits for the
  // device, which still reads the readers' buffers and runs closures that use the maths.
  Device device_;
  Pool pool_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<Maths> maths_;
  Scheduler scheduler_;
  Operations operations_;
};

/// Measures from its making, or its last start, to its first stop.
class Watch {
 public:
  explicit Watch(Bench& bench) : bench_(bench) { start(); }
  void start();
  /// Writes the time and the idle share. Further calls change nothing.
  void stop(TrainResult& result);

 private:
  using Clock = std::chrono::steady_clock;

  Bench& bench_;
  bool running_ = true;
  Clock::time_point started_;
  std::chrono::nanoseconds busy_before_{};
};

/// What the frontend needs for each batch, without the time that it is held back.
class HostTimes {
 public:
  /// Both must outlive it. Dispatch is held back in batches alone from now on.
  HostTimes(const Bench& bench, TrainResult& result)
      : bench_(bench), result_(result), held_before_(bench.stalls().total) {}
  /// Writes the median.
  ~HostTimes();
  HostTimes(const HostTimes&) = delete;
  HostTimes& operator=(const HostTimes&) = delete;

  void start() { started_ = Clock::now(); }
  /// To be called when a batch is submitted whole.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  const Bench& bench_;
  TrainResult& result_;
  std::chrono::nanoseconds held_before_;
  Clock::time_point started_;
  std::vector<double> times_;
};

}  // namespace weir
