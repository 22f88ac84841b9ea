#pragma once

// The layout of a published block: a file of fixed size in a folder of its user (folder.hpp). One
// process publishes its memory and batches there and receives requests for another budget. Numbers
// have the machine's byte order.
//
// One thread of the process writes through a shared mapping. Readers read the file and never map
// it. There is no lock. Samples form a ring, and `count` is stored after the sample that it counts.
// A reader reads `count`, the block, and `count` again. Of the samples that the first `count`
// includes, the last kLiveHistory before the second `count` are consistent. One copy of the block
// would not be enough, because the kernel may copy its parts in any order. Two slots are excluded:
// one that may be being written, and one more, because nothing orders the reader's two loads.
// Device figures are in a shorter ring with the same count and the same rule.
//
// The process holds the file's flock(LOCK_EX) through the mapping alone. The kernel drops it when
// the process ends or execs, in whatever way. Children do not inherit it. Readers trust a file only
// if the process in its name took the lock, as far as the kernel reveals that (claims.hpp).
//
// Any program of the user may write to the file, or truncate it. So the process accesses its
// mapping only by system calls (block_file.cpp), which fail where a load or store would kill it,
// and trusts nothing that it reads there.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "allocator/base/bytes.hpp"

namespace weir::timeline {

inline constexpr std::array<char, 8> kLiveMagic{'w', 'e', 'i', 'r', 'l', 'i', 'v', 'e'};
/// Increases with every change of the layout. Readers accept only their own version.
inline constexpr std::uint32_t kLiveVersion = 3;
/// Slots of the ring.
inline constexpr std::size_t kLiveSamples = 122;
/// Samples available to a reader: 30 s at kLivePeriodNs.
inline constexpr std::size_t kLiveHistory = kLiveSamples - 2;
inline constexpr std::uint64_t kLivePeriodNs = 250'000'000;
inline constexpr std::size_t kLiveDevices = 16;
/// Slots of the ring of device figures.
inline constexpr std::size_t kLiveDeviceSamples = 8;
/// More than any device has, and far less than what overflows in a sum.
inline constexpr std::uint64_t kMostLiveBytes = std::uint64_t{1} << 50U;
/// The largest LiveDevice::device: the greatest GPU ordinal plus one.
inline constexpr std::uint64_t kMostLiveDevice = 1024;

/// LiveFigures (allocator/timeline/source.hpp) at one time. Sizes in bytes.
struct LiveSample {
  std::uint64_t time_ns = 0;  ///< the machine's monotonic clock
  std::uint64_t budget = 0;
  std::uint64_t requested = 0;
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;
  std::uint64_t reserved = 0;
  std::uint64_t peak = 0;
  std::uint64_t failures = 0;
  std::uint64_t open = 0;
  std::uint64_t submitted = 0;
  std::uint64_t settled = 0;
  std::uint64_t stalls = 0;
  std::uint64_t stalled_ns = 0;
  std::uint64_t knows_busy = 0;  ///< 1: `busy_ns` is known
  std::uint64_t busy_ns = 0;
  // Of the device that has the most, of each:
  std::uint64_t pressure = 0;  ///< PressureLevel
  std::uint64_t soft_ns = 0;   ///< spent at that level
  std::uint64_t hard_ns = 0;   ///< spent at that level

  friend bool operator==(const LiveSample&, const LiveSample&) = default;
};

/// DeviceFigures at one time. Sizes in bytes.
struct LiveDevice {
  std::uint64_t device = 0;  ///< 1 + the GPU's ordinal; 0: none
  std::uint64_t total = 0;
  std::uint64_t budget = 0;
  std::uint64_t used = 0;
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;
  std::uint64_t reserved = 0;
  std::uint64_t failures = 0;
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t pressure = 0;  ///< as in LiveSample
  std::uint64_t soft_ns = 0;
  std::uint64_t hard_ns = 0;

  friend bool operator==(const LiveDevice&, const LiveDevice&) = default;
};

struct LiveDeviceSample {
  std::uint64_t count = 0;
  std::array<LiveDevice, kLiveDevices> devices{};

  friend bool operator==(const LiveDeviceSample&, const LiveDeviceSample&) = default;
};

/// A request of another program. The writer sets `begin`, the rest, then `end`. It holds the file's
/// lock (fcntl, F_OFD_SETLK) on these bytes from before that until it has its answer or gives up.
/// The request is complete if `end`, read first, equals `begin`, read last.
struct LiveRequest {
  std::uint64_t begin = 0;  ///< drawn at random; 0: no request
  std::uint64_t device = 0;
  std::uint64_t budget = 0;  ///< bytes
  std::uint64_t end = 0;     ///< equals `begin`
};

/// The answer to the request `serial`. `serial` is written last.
struct LiveAnswer {
  std::uint64_t serial = 0;
  std::uint64_t code = 0;    ///< BudgetCode
  std::uint64_t before = 0;  ///< the previous budget, in bytes
  std::uint64_t after = 0;
  std::uint64_t used = 0;   ///< used bytes of it at that time
  std::uint64_t total = 0;  ///< of the device
};

/// The file. Texts are UTF-8 if the program's are, end with a zero, and are truncated to fit.
struct LiveBlock {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t size = 0;           ///< of this struct
  std::uint32_t pid = 0;            ///< in the process's own pid namespace
  std::uint32_t device_count = 0;   ///< stored after a device's name
  std::uint64_t started = 0;        ///< start of the process; see folder.hpp
  std::uint64_t pid_namespace = 0;  ///< inode of the namespace; 0: unknown
  std::array<char, 128> program{};  ///< command line
  std::array<std::array<char, 64>, kLiveDevices> devices{};  ///< names
  LiveRequest request{};
  LiveAnswer answer{};
  std::uint64_t count = 0;                         ///< samples so far
  std::array<LiveSample, kLiveSamples> samples{};  ///< sample i is at i % kLiveSamples
  /// Sample i is at i % kLiveDeviceSamples.
  std::array<LiveDeviceSample, kLiveDeviceSamples> device_samples{};
};
static_assert(sizeof(LiveSample) == 152 && std::is_trivially_copyable_v<LiveSample>);
static_assert(sizeof(LiveDevice) == 112 && sizeof(LiveDeviceSample) == 1800);
static_assert(sizeof(LiveBlock) == 34224 && std::is_trivially_copyable_v<LiveBlock>);

// The request of `weir set` to a running program, and the answer. Pure. The bytes of both are
// untrusted.

/// The least useful budget of a program.
inline constexpr Bytes kLeastBudget = mib(1);

/// A request for another budget of a device.
struct BudgetAsk {
  std::uint64_t device = 0;  ///< 1 + the GPU's ordinal
  Bytes budget{};
};

enum class BudgetCode : std::uint64_t {
  kTaken = 1,   ///< the new budget is in force
  kOutOfRange,  ///< less than kLeastBudget, or more than the device has
  kNoDevice,    ///< the program does not use that device
  kFixed,       ///< the program's budget cannot change at run time
  kTampered,    ///< the block's file was changed by others
};

struct BudgetAnswer {
  BudgetCode code = BudgetCode::kFixed;
  Bytes before{};
  Bytes after{};  ///< unchanged unless taken
  Bytes used{};   ///< used at that time; above the budget if the program has yet to free some
  Bytes total{};  ///< of the device
};

/// Returns whether a device of `total` bytes may have that budget.
[[nodiscard]] constexpr bool is_in_range(Bytes budget, Bytes total) noexcept {
  return budget >= kLeastBudget && budget <= total;
}

/// Decodes a request. Returns nothing if it is incomplete or was served already (its serial is
/// `served`).
[[nodiscard]] constexpr std::optional<BudgetAsk> ask_of(const LiveRequest& request,
                                                        std::uint64_t served) noexcept {
  if (request.end == 0 || request.begin != request.end || request.end == served) {
    return std::nullopt;
  }
  return BudgetAsk{.device = request.device, .budget = {request.budget}};
}

/// Decodes an answer. Returns nothing if no program answers like that.
[[nodiscard]] constexpr std::optional<BudgetAnswer> answer_of(const LiveAnswer& answer) noexcept {
  const bool is_code = answer.code >= static_cast<std::uint64_t>(BudgetCode::kTaken) &&
                       answer.code <= static_cast<std::uint64_t>(BudgetCode::kTampered);
  const std::uint64_t most = std::max({answer.before, answer.after, answer.used, answer.total});
  if (!is_code || most > kMostLiveBytes) return std::nullopt;
  return BudgetAnswer{.code = static_cast<BudgetCode>(answer.code),
                      .before = {answer.before},
                      .after = {answer.after},
                      .used = {answer.used},
                      .total = {answer.total}};
}

}  // namespace weir::timeline
