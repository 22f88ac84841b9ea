#pragma once

// A device, a pool and a scheduler as one value, gates that delay the device, and a few kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/pool.hpp"
#include "faulty_device.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/options_of.hpp"
#include "support/print.hpp"

namespace weir::testing {

inline constexpr std::array kAllPolicies{Policy::kThrottled, Policy::kBackstop, Policy::kUnbounded,
                                         Policy::kBarrier};
inline constexpr std::array kAllPoolKinds{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                          PoolKind::kBestFit, PoolKind::kPaged};

struct RigOptions {
  Bytes budget = mib(64);
  PoolKind kind = PoolKind::kRound;
  Policy policy = Policy::kThrottled;
  RunAhead run_ahead{};
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  bool at_once = false;                ///< FaultyDevice::at_once
  std::optional<Bytes> host_memory{};  ///< of the device's host upstream
};

/// A tensor of this many bytes; a power of two from a page on is a block of exactly its size.
[[nodiscard]] inline Shape shape_of(Bytes bytes) { return {bytes.count / sizeof(float)}; }

[[nodiscard]] inline auto fill(float value) {
  return [value](Stream&, Inputs, Outputs out) { std::ranges::fill(out[0], value); };
}
/// out[0] = in[0] + value, element by element; in place if both are the same tensor.
[[nodiscard]] inline auto add(float value) {
  return [value](Stream&, Inputs in, Outputs out) {
    for (std::size_t i = 0; i < out[0].size(); ++i) out[0][i] = in[0][i] + value;
  };
}
[[nodiscard]] inline auto nothing() {
  return [](Stream&, Inputs, Outputs) {};
}
[[nodiscard]] inline auto pass(Gate& gate) {
  return [&gate](Stream&, Inputs, Outputs) { gate.pass(); };
}
/// The exception that tests' operations throw.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[nodiscard]] inline auto broken(const char* what) {
  return [what](Stream&, Inputs, Outputs) { throw Broken(what); };
}

class Rig {
 public:
  explicit Rig(const RigOptions& options = {})
      : device(std::make_unique<FaultyDevice>(mib(256), options.host_memory)),
        backend(static_cast<FaultyDevice&>(device.backend())),
        pool(device.memory(), options_of(options.budget, options.kind)) {
    backend.at_once = options.at_once;
    scheduler_.emplace(device, pool,
                       SchedulerOptions{.budget = options.budget,
                                        .policy = options.policy,
                                        .run_ahead = options.run_ahead,
                                        .grace = options.grace});
  }
  ~Rig() { end(); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  Scheduler* operator->() { return &*scheduler_; }
  /// Ends the scheduler; a test that failed half-way must not leave the device behind a gate.
  void end() {
    for (Gate& gate : gates_) gate.open();
    scheduler_.reset();
  }

  /// A gate that opens at the latest when the rig ends.
  [[nodiscard]] Gate& gate() { return gates_.emplace_back(); }
  /// Delays a stream: the device is at the gate when this returns.
  Gate& hold(StreamRole role) {
    Gate& held = gate();
    scheduler_->submit("hold", {.stream = role}, pass(held));
    held.await_arrival();
    return held;
  }
  /// A tensor of `bytes` full of `value`, written on `role`.
  [[nodiscard]] Tensor filled(Bytes bytes, float value, StreamRole role = StreamRole::kCompute,
                              std::string_view label = "filled") {
    Tensor tensor = scheduler_->empty(shape_of(bytes), label);
    scheduler_->submit("fill", {.writes = {tensor}, .stream = role}, fill(value));
    return tensor;
  }

 private:
  std::deque<Gate> gates_;  // operations wait at them: outlives the scheduler

 public:
  Device device;
  FaultyDevice& backend;
  Pool pool;

 private:
  std::optional<Scheduler> scheduler_;
};

/// Begins batches that must not wait: one that does wait for the device throws Cancelled.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(Rig& rig) : rig_(rig) {
    rig.backend.before_wait = [this](Point) { stop_.request_stop(); };
  }
  ~WithoutWaiting() { rig_.backend.before_wait = nullptr; }
  WithoutWaiting(const WithoutWaiting&) = delete;
  WithoutWaiting& operator=(const WithoutWaiting&) = delete;

  [[nodiscard]] Batch begin(std::string_view kind, std::optional<Bytes> hint = {}) {
    return rig_->begin_batch(kind, {.hint = hint, .stop = stop_.get_token()});
  }

 private:
  Rig& rig_;
  std::stop_source stop_;
};

/// Checks that the accounting is consistent, whatever the device is doing.
inline void expect_statistics_agree(Rig& rig) {
  const MemoryInfo info = rig->memory_info();
  EXPECT_EQ(info.free + info.allocated + info.awaiting, info.total);
  EXPECT_EQ(info.allocated + info.awaiting + info.cached, info.reserved);
  EXPECT_LE(info.reserved, info.total);
  EXPECT_LE(info.requested, info.allocated);
  const Statistics s = rig.pool.statistics();
  EXPECT_LE(s.reserved.peak, s.budget);
  EXPECT_LE(rig.backend.upstream().peak(), s.budget);
}

/// Waits until nothing runs, and drops the errors that a test made on purpose.
inline void settle(Rig& rig) {
  try {
    rig->wait_all();
  } catch (const std::exception&) {
    return;  // it waited before it threw
  }
}

/// Checks that nothing runs: no batch has a charge, nothing awaits the device, the accounting is
/// consistent.
inline void expect_idle(Rig& rig) {
  settle(rig);
  const AdmissionStatistics admission = rig->admission();
  EXPECT_EQ(admission.open, 0U);
  EXPECT_EQ(admission.submitted, 0U);
  EXPECT_EQ(admission.charged, Bytes{});
  EXPECT_EQ(rig->memory_info().awaiting, Bytes{});
  expect_statistics_agree(rig);
}

}  // namespace weir::testing
