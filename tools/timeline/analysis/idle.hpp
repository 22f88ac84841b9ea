#pragma once

// When a device and its streams were busy, and why they were not.

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
  std::uint32_t site = 0;  ///< of the barrier, where that is the cause; of the process's names
  IdleCause cause = IdleCause::kUnknown;
};
/// The gaps of one cause or of one call site.
struct IdleSum {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
struct DeviceIdle {
  DeviceKey device{};
  std::string name{};          ///< for people
  Span span{};                 ///< from its first work to its last
  std::uint64_t recorded = 0;  ///< of that: time in which something was recorded
  std::uint64_t busy = 0;      ///< of that: time in which any stream worked
  std::uint64_t idle = 0;      ///< recorded − busy; the sum of `causes`
  std::array<IdleSum, kIdleCauses> causes{};
  std::vector<Gap> gaps{};  ///< the longest, by time
  std::uint64_t gap_count = 0;
};
/// One stream, from the device's first work to its last.
struct StreamBusy {
  std::uint32_t stream = 0;    ///< its place in index.streams()
  std::uint64_t busy = 0;      ///< time in which it worked; never more than `span`
  std::uint64_t recorded = 0;  ///< as of its device
  std::uint64_t count = 0;     ///< pieces of work
};
struct IdleOptions {
  std::size_t most_gaps = 10000;  ///< kept of each device
};
/// Each device that worked, by DeviceKey. A kStreamWait is not work.
[[nodiscard]] std::vector<DeviceIdle> idle_by_cause(const Index& index,
                                                    const IdleOptions& options = {});
/// In the order of index.streams().
[[nodiscard]] std::vector<StreamBusy> stream_busy(const Index& index);
/// When no stream of a device worked, between its first work and its last, as far as it was
/// recorded: spans that do not touch, by time.
[[nodiscard]] std::vector<Span> idle_spans(const Index& index, DeviceKey device);
/// When any stream of a device worked, as spans that do not touch, by time.
[[nodiscard]] std::vector<Span> busy_spans(const Index& index, DeviceKey device);

}  // namespace weir::timeline
