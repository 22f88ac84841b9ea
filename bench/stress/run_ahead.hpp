#pragma once

// Provokes out-of-memory by run-ahead: a frontend that makes batches faster than the device
// completes them, under each policy.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocator/pool_options.hpp"
#include "scheduler/admission/policy.hpp"

namespace weir::bench {

struct RunAheadOptions {
  PoolOptions pool;  ///< its budget is the scheduler's
  Bytes budget = mib(16);
  Bytes inputs = mib(1);  ///< inputs of a batch, copied in during the work
  std::uint64_t batches = 200;
  /// The device's work for a batch; its inputs are free afterwards.
  std::function<void()> work;
  std::function<void()> on_refusal{};  ///< called when the frontend runs out of memory, if set
};

struct RunAheadFigures {
  Policy policy{};
  bool ran_out = false;
  std::uint64_t batches = 0;  ///< completely submitted
  Bytes peak_reserved;
  std::uint64_t waits = 0;  ///< number of times the frontend was held back
  /// A fault found after running out of memory: inconsistent counts, or failing smaller batches.
  /// Empty if none.
  std::string wrong;
};

/// Runs the batches on their own cpu device.
[[nodiscard]] RunAheadFigures run_ahead(Policy policy, const RunAheadOptions& options);

/// Returns work that keeps a device thread busy for half a millisecond, longer than the frontend
/// needs per batch.
[[nodiscard]] std::function<void()> half_a_millisecond();

}  // namespace weir::bench
