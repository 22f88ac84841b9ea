#pragma once

/// @file
/// Opens the Communicator of this process.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "allocator/base/setting.hpp"
#include "scheduler/device/device_kind.hpp"
#include "trainer/ranks/communicator.hpp"
#include "trainer/ranks/exchange.hpp"
#include "trainer/ranks/launch.hpp"
#include "trainer/ranks/lifeline.hpp"

namespace weir {

/// How long to wait for what.
struct RanksOptions {
  Patience patience{};         ///< for ranks that live
  LifelineOptions lifeline{};  ///< for ranks that do not
  /// For all ranks to come together; then this one ends.
  std::chrono::nanoseconds start_within = std::chrono::seconds(60);
  /// Called when they have come together, before any rank uses a GPU: here ranks compare what they
  /// are. What it throws ends the opening; it has called `finish` then.
  std::function<void(Communicator&)> before_device{};
};

/// Returns the communicator of a process that was started as `launch` says, for tensors on
/// `device`:
/// @verbatim
///   started by    cpu                      cuda
///   nobody        one rank, no library     one rank, no library
///   mpirun        MPI                      NCCL, its id given round by MPI
///   torchrun      refused with two ranks   NCCL, its id given round by TCP
/// @endverbatim
/// Under a launcher every rank must call this, once. Throws UsageError for what is missing, and
/// Error if the ranks do not come together. On a GPU, `device` is what was opened before: rank
/// `launch.local_rank` has that one, unless the user says otherwise.
[[nodiscard]] std::unique_ptr<Communicator> open_communicator(const Launch& launch, DeviceId device,
                                                              const RanksOptions& options = {});

}  // namespace weir
