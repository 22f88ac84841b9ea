#pragma once

// A training loop whose times are made: the frontend reads a batch, copies it to the device and
// submits operations. With them one part of a program is slowed on purpose.

#include <chrono>
#include <cstdint>

#include "scheduler/admission/policy.hpp"

namespace weir::bench {

struct MadeTimes {
  std::chrono::nanoseconds read{};     ///< the frontend's, before it begins a batch
  std::chrono::nanoseconds copy{};     ///< of a batch to the device
  std::chrono::nanoseconds launch{};   ///< the frontend's, before it submits an operation
  std::chrono::nanoseconds compute{};  ///< of an operation
  std::uint64_t operations = 1;        ///< of a batch, one after the other
};

struct MadeRunFigures {
  std::chrono::nanoseconds time{};  ///< until the device is done
  std::chrono::nanoseconds copying{};
  std::chrono::nanoseconds computing{};
  std::uint64_t most_in_flight = 0;  ///< batches
};

/// Runs `batches` on a cpu device of its own, in a budget with room for some 60 batches in flight.
/// Throws OutOfMemory where the policy lets more be queued.
[[nodiscard]] MadeRunFigures run_made(const MadeTimes& times, Policy policy, std::uint64_t batches);

}  // namespace weir::bench
