#pragma once

// Out of memory by run-ahead: a frontend that makes batches faster than the device is done with
// them, under each policy.

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
  Bytes inputs = mib(1);  ///< of a batch, copied in beside the work
  std::uint64_t batches = 200;
  /// What the device does for a batch, after which its inputs are free.
  std::function<void()> work;
  std::function<void()> on_refusal{};  ///< called when the frontend has run out, if given
};

struct RunAheadFigures {
  Policy policy{};
  bool ran_out = false;
  std::uint64_t batches = 0;  ///< submitted whole
  Bytes peak_reserved;
  std::uint64_t waits = 0;  ///< times that the frontend was held back
  /// What was not as it should be after running out: the books, or that smaller batches go on.
  /// Empty when nothing was.
  std::string wrong;
};

/// Runs the batches on a cpu device of its own.
[[nodiscard]] RunAheadFigures run_ahead(Policy policy, const RunAheadOptions& options);

/// Keeps a thread of the device busy for half a millisecond, which is longer than a batch takes
/// its frontend.
[[nodiscard]] std::function<void()> half_a_millisecond();

}  // namespace weir::bench
