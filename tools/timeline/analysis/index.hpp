#pragma once

// Locates the records of one process by kind, pool and stream. All figures start here. Times are
// nanoseconds since the recording's zero. Nothing here trusts a file's contents.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A span of time. Empty if `end` is not after `begin`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr std::uint64_t length() const noexcept {
    return end > begin ? end - begin : 0;
  }
  friend constexpr bool operator==(Span, Span) noexcept = default;
};
/// Returns the intersection; may be empty.
[[nodiscard]] constexpr Span common(Span a, Span b) noexcept {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}
/// Adds a span that begins no earlier than those before to spans that are disjoint and in order.
inline void add_in_order(std::vector<Span>& disjoint, Span next) {
  if (next.length() == 0) return;
  if (disjoint.empty() || next.begin > disjoint.back().end) {
    disjoint.push_back(next);
  } else if (next.end > disjoint.back().end) {
    disjoint.back().end = next.end;
  }
}
/// Returns the sum, or the largest number if it overflows.
[[nodiscard]] constexpr std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) noexcept {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
/// Returns a − b, or zero if b is larger.
[[nodiscard]] constexpr std::uint64_t less_or_zero(std::uint64_t a, std::uint64_t b) noexcept {
  return a > b ? a - b : 0;
}
/// Returns a record's time. Empty if it ends before it begins.
[[nodiscard]] inline Span span_of(const TimelineRecord& record) noexcept {
  return {record.begin, record.end > record.begin ? record.end : record.begin};
}

/// Returns how the batch of a kAdmit was opened. If that was before the recording, the record's
/// thread is not the batch's.
[[nodiscard]] inline TimelineAdmission admission_of(const TimelineRecord& record) noexcept {
  return static_cast<TimelineAdmission>(record.detail);
}

/// A device: a GPU by its number, another device by its source.
struct DeviceKey {
  std::uint16_t device = 0;  ///< 1 + ordinal; 0: no GPU
  std::uint16_t source = 0;  ///< used if `device` is 0

  friend constexpr auto operator<=>(DeviceKey, DeviceKey) noexcept = default;
};
[[nodiscard]] DeviceKey device_of(const TimelineRecord& record) noexcept;

/// One pool of the process.
struct PoolInfo {
  std::uint16_t source = 0;
  std::uint32_t name = 0;                ///< index into the process's names; 0: unknown
  bool host = false;                     ///< host memory
  std::uint64_t budget = 0;              ///< the last known budget; 0: unknown
  std::vector<std::uint32_t> records{};  ///< indices into Process::records, by sequence
  /// For each kFree in `records`, the index in `records` of the kAllocate or kLive that it ends;
  /// for a kAllocate or kLive, that of the one at the same address that was never ended. kNone if
  /// there is none.
  std::vector<std::uint32_t> ends{};
  static constexpr std::uint32_t kNone = UINT32_MAX;
};
/// One stream that executed work.
struct StreamInfo {
  DeviceKey device{};
  std::uint64_t stream = 0;
  std::string name{};                    ///< from kStream, else `stream N`
  std::vector<std::uint32_t> records{};  ///< kExecute, kKernel, kCopy and kSet, by begin
};

/// Indexes a process, which must outlive this and not change. Pools and streams are in the order of
/// their numbers.
class Index {
 public:
  static constexpr std::uint64_t kHorizon = std::uint64_t{1} << 53U;  ///< 104 days

  explicit Index(const Process& process);

  [[nodiscard]] const Process& process() const noexcept { return *process_; }
  [[nodiscard]] const TimelineRecord& record(std::uint32_t place) const {
    return process_->records[place];
  }
  /// Returns the indices of a kind's records, by begin.
  [[nodiscard]] std::span<const std::uint32_t> of(TimelineKind kind) const;
  [[nodiscard]] std::span<const PoolInfo> pools() const noexcept { return pools_; }
  [[nodiscard]] std::span<const StreamInfo> streams() const noexcept { return streams_; }
  /// The span from the first record to the last end.
  [[nodiscard]] Span span() const noexcept { return span_; }
  /// Returns the recorded times in `span`, disjoint and in order: one for each kStart, or the whole
  /// span without any. Ends at kHorizon, so that sums over streams do not overflow.
  [[nodiscard]] std::span<const Span> windows_in(Span span) const;
  /// Returns how much of `span` was recorded.
  [[nodiscard]] std::uint64_t recorded(Span span) const;
  /// Returns a batch's kind as an index into the process's names; 0: unknown.
  [[nodiscard]] std::uint32_t kind_of_batch(std::uint32_t batch) const;
  /// The number of lost events: the larger of the process's and its kLost records' count.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  /// The number of records of unknown kinds.
  [[nodiscard]] std::uint64_t unknown() const noexcept { return unknown_; }

 private:
  void sort_by_kind();
  void find_windows();
  void find_pools();
  void find_streams();
  void find_batches();

  const Process* process_;
  Span span_;
  std::vector<Span> windows_;
  std::vector<std::uint32_t> places_;  ///< by kind
  std::array<std::uint32_t, kTimelineKinds + 1> first_{};
  std::vector<PoolInfo> pools_;
  std::vector<StreamInfo> streams_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> kinds_;  ///< batch and its kind, by batch
  std::uint64_t lost_ = 0;
  std::uint64_t unknown_ = 0;
};

/// `compute of GPU 0`, `copy-in`: names the device if it is a GPU.
[[nodiscard]] std::string describe(const StreamInfo& stream);
/// `GPU 0`; for another device `device`, or `device 2` for the second of several.
[[nodiscard]] std::string describe(const Index& index, DeviceKey device);
/// Returns the pool's name, or `pool N`.
[[nodiscard]] std::string describe(const Index& index, const PoolInfo& pool);

}  // namespace weir::timeline
