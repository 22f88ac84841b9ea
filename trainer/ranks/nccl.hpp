#pragma once

/// @file
/// The device's part of a Communicator: collective calls between GPUs, enqueued on a stream.

#include <array>
#include <memory>
#include <span>
#include <string>

#include "trainer/ranks/communicator.hpp"

namespace weir {

/// As Communicator says of the calls with the same names.
class DeviceCollectives {
 public:
  DeviceCollectives() = default;
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  virtual ~DeviceCollectives() = default;

  [[nodiscard]] virtual std::string engine() const = 0;
  virtual void all_reduce(Stream& stream, std::span<const std::span<float>> parts) = 0;
  virtual void all_gather(Stream& stream, std::span<const float> mine, std::span<float> all) = 0;
  /// By the formulas of shards.hpp. What NCCL really sends depends on the algorithm that it picks:
  /// a ring sends as much as these say (not verified on a machine with two GPUs).
  [[nodiscard]] virtual Traffic traffic() const noexcept = 0;
  /// Releases what NCCL holds, after the last call of every rank is done on the device.
  virtual void finish() = 0;
};

/// Identifies one group of ranks to NCCL: made on rank 0 and given to all.
using NcclId = std::array<char, 128>;

/// Returns a new one. Opens libnccl.so.2; throws UsageError if there is none.
[[nodiscard]] NcclId make_nccl_id();

/// Joins the group on GPU number `ordinal`; every rank must. Throws UsageError without a library or
/// in a build without CUDA, and Error if NCCL refuses.
///
/// The order of NCCL's additions depends on the algorithm, the sizes and the topology; where these
/// are the same, a call is said to give the same bits each time and on each rank (NVIDIA/nccl issue
/// 157; not verified here).
[[nodiscard]] std::unique_ptr<DeviceCollectives> open_nccl(const NcclId& id, int rank, int size,
                                                           int ordinal);

}  // namespace weir
