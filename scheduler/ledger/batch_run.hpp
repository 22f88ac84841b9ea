#pragma once

// Device times of batches, by stream.

#include <array>
#include <chrono>
#include <cstddef>

#include "scheduler/device/stream.hpp"

namespace weir {

/// Device time of each stream.
using StreamTimes = std::array<std::chrono::nanoseconds, kStreamRoles>;

/// Device time that is expected of a stream.
struct StreamQueue {
  std::size_t role = 0;
  std::chrono::nanoseconds time{};  ///< behind the running work
  std::chrono::nanoseconds all{};   ///< with the running work
};

/// What one batch did on one stream, on the steady clock.
struct StreamRun {
  std::chrono::nanoseconds device_time{};  ///< zero: the batch did not use the stream
  std::chrono::nanoseconds gap{};          ///< that the stream was idle before the batch
  std::chrono::nanoseconds starved{};      ///< that nothing was enqueued, before it and within it
  std::chrono::nanoseconds begun{};
  std::chrono::nanoseconds ended{};
};
using BatchRun = std::array<StreamRun, kStreamRoles>;

}  // namespace weir
