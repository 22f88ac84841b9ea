#pragma once

// Where the records of one process are: by kind, by pool and by stream. Every figure starts here.
// Times are nanoseconds since the recording's zero. Nothing here trusts what a file says.

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A stretch of time. Empty where `end` is not after `begin`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr std::uint64_t length() const noexcept {
    return end > begin ? end - begin : 0;
  }
  friend constexpr bool operator==(Span, Span) noexcept = default;
};
/// What both have in common; may be empty.
[[nodiscard]] constexpr Span common(Span a, Span b) noexcept {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}
/// The sum, or the largest number where it does not fit.
[[nodiscard]] constexpr std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) noexcept {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
/// a − b, or zero where b is the larger.
[[nodiscard]] constexpr std::uint64_t less_or_zero(std::uint64_t a, std::uint64_t b) noexcept {
  return a > b ? a - b : 0;
}
/// When a record was. Empty where its end is before its begin.
[[nodiscard]] inline Span span_of(const TimelineRecord& record) noexcept {
  return {record.begin, record.end > record.begin ? record.end : record.begin};
}

/// How a batch came to be open, of a kAdmit. Where it was before the recording, the record's thread
/// is not the batch's.
[[nodiscard]] inline TimelineAdmission admission_of(const TimelineRecord& record) noexcept {
  return static_cast<TimelineAdmission>(record.detail);
}

/// A device: a GPU by its number, or another by its source.
struct DeviceKey {
  std::uint16_t device = 0;  ///< 1 + ordinal; 0: not a GPU
  std::uint16_t source = 0;  ///< where `device` is 0

  friend constexpr auto operator<=>(DeviceKey, DeviceKey) noexcept = default;
};
[[nodiscard]] DeviceKey device_of(const TimelineRecord& record) noexcept;

/// One pool of the process.
struct PoolInfo {
  std::uint16_t source = 0;
  std::uint32_t name = 0;                ///< of the process's names; 0: not told
  bool host = false;                     ///< it is of host memory
  std::uint64_t budget = 0;              ///< the last that was told; 0: not told
  std::vector<std::uint32_t> records{};  ///< places in Process::records, by sequence
  /// For each of `records` a place in `records`: of a kFree the kAllocate or kLive that it ends, of
  /// these the one at the same address that was never ended. kNone where there is none.
  std::vector<std::uint32_t> ends{};
  static constexpr std::uint32_t kNone = UINT32_MAX;
};
/// One stream that executed something.
struct StreamInfo {
  DeviceKey device{};
  std::uint64_t stream = 0;
  std::string name{};                    ///< told by kStream, else `stream N`
  std::vector<std::uint32_t> records{};  ///< kExecute, kKernel, kCopy and kSet, by begin
};

/// Looks at a process that must outlive it and stay as it is. Pools and streams are in the order of
/// their numbers.
class Index {
 public:
  static constexpr std::uint64_t kHorizon = std::uint64_t{1} << 53U;  ///< 104 days

  explicit Index(const Process& process);

  [[nodiscard]] const Process& process() const noexcept { return *process_; }
  [[nodiscard]] const TimelineRecord& record(std::uint32_t place) const {
    return process_->records[place];
  }
  /// Places of the records of a kind, by begin.
  [[nodiscard]] std::span<const std::uint32_t> of(TimelineKind kind) const;
  [[nodiscard]] std::span<const PoolInfo> pools() const noexcept { return pools_; }
  [[nodiscard]] std::span<const StreamInfo> streams() const noexcept { return streams_; }
  /// From the first record to the last end.
  [[nodiscard]] Span span() const noexcept { return span_; }
  /// When it recorded: one span for each kStart, in order and apart; the whole where none is told.
  /// Nothing behind kHorizon, so that sums over streams fit.
  [[nodiscard]] std::span<const Span> windows() const noexcept { return windows_; }
  /// Those of `windows()` that have a part of `span`.
  [[nodiscard]] std::span<const Span> windows_in(Span span) const;
  /// The part of a span that is in `windows()`.
  [[nodiscard]] std::uint64_t recorded(Span span) const;
  /// The kind of a batch, as a number of the process's names; 0: not known.
  [[nodiscard]] std::uint32_t kind_of_batch(std::uint32_t batch) const;
  /// Events that were lost: what the process and its kLost records say, the larger.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  /// Records of no kind that is known.
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
  std::vector<std::pair<std::uint32_t, std::uint32_t>> kinds_;  ///< batch and kind, by batch
  std::uint64_t lost_ = 0;
  std::uint64_t unknown_ = 0;
};

/// `compute of GPU 0`, `copy-in`: the device named where it is a GPU.
[[nodiscard]] std::string describe(const StreamInfo& stream);
/// `GPU 0`; for another `device`, or `device 2` for the second of several of them.
[[nodiscard]] std::string describe(const Index& index, DeviceKey device);
/// The pool's name, else `pool N`.
[[nodiscard]] std::string describe(const Index& index, const PoolInfo& pool);

}  // namespace weir::timeline
