#pragma once

// y = x + 1 on a device of its own: the stages of one operation, and many of them, waiting for each
// or once.

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

/// Which operations, and how slow a frontend.
struct DispatchCase {
  std::uint64_t elements = 1;            ///< of x and y
  std::chrono::microseconds frontend{};  ///< of its own work before each call
};

/// One round, in seconds. The stages are measured in runs of their own.
struct DispatchRound {
  Stages stages{};
  double each = 0;    ///< all operations, waiting for each
  double once = 0;    ///< all operations, waiting once
  double issued = 0;  ///< of `once`, until the last call returned
};

/// Every operation writes the same y, so that no memory is taken or given back in what is measured.
/// The policy is `unbounded`: there is no batch here that could be held back.
class Addition {
 public:
  /// Opens the device. OutOfMemory when it cannot hold x and y. After a stop request what is queued
  /// is skipped.
  Addition(const std::string& device, const DispatchCase& what, std::stop_token stop = {});

  /// Measures; nothing when it was stopped meanwhile.
  [[nodiscard]] std::optional<DispatchRound> round(std::uint64_t operations);
  /// The contents of y.
  [[nodiscard]] std::vector<float> result() { return scheduler_.read(y_); }

 private:
  using Clock = std::chrono::steady_clock;
  /// Where the device was, on its own clocks.
  struct Mark {
    Clock::time_point time;
    std::chrono::nanoseconds busy{};
  };
  class Gate;
  struct RoundTrips {
    double whole = 0;  ///< submit and wait, summed over them
    double call = 0;   ///< of it in the call, which wakes the device
    std::uint64_t count = 0;
  };

  void work_in_frontend() const;
  void issue();
  void mark(Mark& mark);
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }
  /// t1, t2 and the device's part, of operations that queue up before the device may start.
  void measure_queued(std::uint64_t operations, Stages& stages);
  void measure_round_trips(std::uint64_t count, RoundTrips& trips);
  [[nodiscard]] double run_each(std::uint64_t operations);
  void run_once(std::uint64_t operations, DispatchRound& round);

  const DispatchCase what_;
  const std::stop_token stop_;
  Mark begin_;  // written by the device, so they outlive it
  Mark end_;
  Device device_;
  Pool pool_;
  Scheduler scheduler_;
  Tensor x_;
  Tensor y_;
};

}  // namespace weir
