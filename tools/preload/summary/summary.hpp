#pragma once

// What the swap-in did in one process. The library builds it at the program's end, and the library
// or `weir run` prints it. Sums of bytes are as requested, levels as taken.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/statistics.hpp"

namespace weir::preload {

/// Memory of one kind that the driver served.
struct Passed {
  std::string kind;         ///< `arrays`, `managed`, `host`, `mappable`, `graphs`, `modules`, …
  Gauge level;              ///< now, and at its peak
  std::uint64_t calls = 0;  ///< that took memory
  Bytes sum;                ///< of all calls
  bool counted = true;      ///< against the budget; host memory is not
};

/// Waits of one reason.
struct Waits {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{};
};

/// One pool, and what it served. All contexts together.
struct PoolSummary {
  std::string serves;  ///< `cuMemAlloc`, `stream order` or `all`
  std::string kind;    ///< as parse_pool_kind reads it
  // Peaks.
  Bytes allocated;
  Bytes queued;    ///< freed, but the device had not passed it
  Bytes needed;    ///< allocated, or queued
  Bytes reserved;  ///< not zero
};

struct DeviceSummary {
  int device = 0;
  Bytes total;   ///< of the device, as the driver says
  Bytes budget;  ///< the program's part of it
  /// All pools of all contexts together; a peak is the largest sum seen.
  Statistics pool;
  std::vector<PoolSummary> pools;  ///< each of them
  std::uint64_t served_calls = 0;  ///< allocations that a pool served
  Bytes served;                    ///< bytes requested by them, summed
  std::vector<Passed> passed;
  Waits paced;           ///< launches held back
  Waits batches;         ///< batches held back at their begin; some for several of the next three
  Waits batches_budget;  ///< for room in the budget
  Waits batches_run_ahead;           ///< since enough was queued
  Waits batches_turn;                ///< for another thread's turn
  std::uint64_t batches_forced = 0;  ///< let go without room, after the longest wait
  std::uint64_t batches_marked = 0;
};

struct Summary {
  std::uint64_t process = 0;
  std::string program;                ///< path of the program
  std::string pool;                   ///< as parse_pool_kind reads it
  std::string policy;                 ///< a name of Policy
  std::string nvml;                   ///< whose figures NVML gave: `budget` or `real`
  std::vector<SettingLine> settings;  ///< all that were in force
  std::vector<DeviceSummary> devices;
};

/// Returns the bytes that Weir served as a share, in [0, 1], of those plus the device memory passed
/// to the driver; 1 if there were none.
[[nodiscard]] double served_share(const DeviceSummary& device) noexcept;
/// 1 - peak allocated / peak reserved; 0 if nothing was reserved.
[[nodiscard]] double fragmentation(const DeviceSummary& device) noexcept;
/// The same of all pools, but freed memory that the device has not passed counts as used: 1 - peak
/// needed / peak reserved.
[[nodiscard]] double fragmentation_of_needed(const DeviceSummary& device) noexcept;

/// Returns a table for people, one figure per line, ending in a newline.
[[nodiscard]] std::string to_text(const Summary& summary);
/// Returns the same figures for programs: one object, bytes and nanoseconds as integers.
[[nodiscard]] std::string to_json(const Summary& summary);

}  // namespace weir::preload
