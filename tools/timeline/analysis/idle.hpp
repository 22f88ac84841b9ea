#pragma once

// Computes when a device and its streams were busy, and why they were idle.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/analysis/idle_cause.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// A time in which no stream of a device worked.
struct Gap {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Span span{};
  std::uint32_t record = kNone;  ///< the work that ended it
  std::uint32_t site = 0;  ///< the barrier's call site if that is the cause; an index into the
                           ///< process's names
  IdleCause cause = IdleCause::kUnknown;
};
/// The sum of the gaps of one cause or one call site.
struct IdleSum {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
struct DeviceIdle {
  DeviceKey device{};
  std::string name{};          ///< for people
  Span span{};                 ///< from the first work to the last
  std::uint64_t recorded = 0;  ///< recorded part of the span
  std::uint64_t busy = 0;      ///< part of that in which any stream worked
  std::uint64_t idle = 0;      ///< recorded − busy; the sum of `causes`
  std::array<IdleSum, kIdleCauses> causes{};
  std::vector<Gap> gaps{};  ///< the longest gaps, by time
  std::uint64_t gap_count = 0;
};
/// One stream, from the device's first work to its last.
struct StreamBusy {
  std::uint32_t stream = 0;    ///< index into index.streams()
  std::uint64_t busy = 0;      ///< time with work; never more than `span`
  std::uint64_t recorded = 0;  ///< recorded time of its device
  std::uint64_t count = 0;     ///< number of works
};
struct IdleOptions {
  std::size_t most_gaps = 10000;  ///< the number of gaps to keep per device
};
/// Returns each device that worked, by DeviceKey. A kStreamWait is not work.
[[nodiscard]] std::vector<DeviceIdle> idle_by_cause(const Index& index,
                                                    const IdleOptions& options = {});
/// Returns streams in the order of index.streams().
[[nodiscard]] std::vector<StreamBusy> stream_busy(const Index& index);
/// Returns the recorded times between a device's first and last work in which no stream worked, as
/// disjoint spans in order.
[[nodiscard]] std::vector<Span> idle_spans(const Index& index, DeviceKey device);
/// Returns the times in which any stream of a device worked, as disjoint spans in order.
[[nodiscard]] std::vector<Span> busy_spans(const Index& index, DeviceKey device);

}  // namespace weir::timeline
