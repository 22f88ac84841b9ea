#pragma once

// y = x + 1 on its own device: the stages of one operation, and many with one wait each or one in
// all.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "allocator/pool.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/dispatch/dispatch_model.hpp"

namespace weir {

/// Which operations to run, and how slow the frontend is.
struct DispatchCase {
  std::uint64_t elements = 1;            ///< of x and y each
  std::chrono::microseconds frontend{};  ///< time the frontend computes before each call
};

/// One round, in seconds. Separate runs measure the stages.
struct DispatchRound {
  Stages stages{};
  double each = 0;    ///< all operations, one wait each
  double once = 0;    ///< all operations, one wait in all
  double issued = 0;  ///< the part of `once` until the last call returned
};

/// Every operation writes the same y, so that the measured time has no allocation or free. The
/// policy is `unbounded`: no batch here could be held back.
class Addition {
 public:
  /// Opens the device. Throws OutOfMemory if it cannot hold x and y. A stop request skips queued
  /// work.
  Addition(const std::string& device, const DispatchCase& what, std::stop_token stop = {});

  /// Measures one round. Returns nullopt if it was stopped.
  [[nodiscard]] std::optional<DispatchRound> round(std::uint64_t operations);
  /// Returns the contents of y.
  [[nodiscard]] std::vector<float> result() { return scheduler_.read(y_); }

 private:
  using Clock = std::chrono::steady_clock;
  /// The device's position on its own clocks.
  struct Mark {
    Clock::time_point time;
    std::chrono::nanoseconds busy{};
  };
  class Gate;
  struct RoundTrips {
    double whole = 0;  ///< submit and wait
    double call = 0;   ///< the part in the call, which wakes the device
    std::uint64_t count = 0;
  };

  void work_in_frontend() const;
  void issue();
  void mark(Mark& mark);
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }
  /// Measures t1, t2 and the device's part, on operations that queue up before the device may
  /// start.
  void measure_queued(std::uint64_t operations, Stages& stages);
  void measure_round_trips(std::uint64_t count, RoundTrips& trips);
  [[nodiscard]] double run_each(std::uint64_t operations);
  void run_once(std::uint64_t operations, DispatchRound& round);

  const DispatchCase what_;
  const std::stop_token stop_;
  Mark begin_;  // the device writes it, so it outlives the device
  Mark end_;
  Device device_;
  Pool pool_;
  Scheduler scheduler_;
  Tensor x_;
  Tensor y_;
};

}  // namespace weir
