#pragma once

// What the swap-in did in one process: made by the library at the program's end, printed by it or
// by `weir run`. Sums of bytes are of what the program asked for, levels of what was taken.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/statistics.hpp"

namespace weir::preload {

/// Memory of one kind that the driver served, not Weir.
struct Passed {
  std::string kind;         ///< `arrays`, `managed`, `host`, `mappable`, `graphs`, `modules`, …
  Gauge level;              ///< now, and at its peak
  std::uint64_t calls = 0;  ///< that took some
  Bytes sum;                ///< of all calls
  bool counted = true;      ///< against the budget (memory of the host is not)
};

/// Waits of one reason.
struct Waits {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{};
};

struct DeviceSummary {
  int device = 0;
  Bytes total;   ///< of the device, as the driver says
  Bytes budget;  ///< of it, the program's
  /// Of the pools of all contexts together; a peak is the largest sum that was seen.
  Statistics pool;
  std::uint64_t served_calls = 0;  ///< allocations that a pool served
  Bytes served;                    ///< bytes that they asked for, summed
  std::vector<Passed> passed;
  Waits paced;    ///< launches that were held back
  Waits batches;  ///< batches that were held back at their beginning
  std::uint64_t batches_marked = 0;
};

struct Summary {
  std::uint64_t process = 0;
  std::string program;  ///< the path of what ran
  std::string pool;     ///< as parse_pool_kind reads it
  std::string policy;   ///< as parse_policy reads it
  std::string nvml;     ///< whose figures NVML told it: `budget` or `real`
  std::vector<DeviceSummary> devices;
};

/// Bytes served by Weir over those and the bytes of device memory that were passed, in [0, 1]; 1
/// where there were none.
[[nodiscard]] double served_share(const DeviceSummary& device) noexcept;
/// 1 - peak allocated / peak reserved; 0 where nothing was reserved.
[[nodiscard]] double fragmentation(const DeviceSummary& device) noexcept;

/// A table for people, one line for each figure, ending in a newline.
[[nodiscard]] std::string to_text(const Summary& summary);
/// The same figures for programs, one object, bytes and nanoseconds as whole numbers.
[[nodiscard]] std::string to_json(const Summary& summary);

}  // namespace weir::preload
