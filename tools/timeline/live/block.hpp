#pragma once

// The layout of a published block: what one process tells about its memory and batches, and where
// it is asked for another budget, as a file of fixed size in a folder of its user (folder.hpp).
// Numbers are of the machine's byte order.
//
// One thread of the process writes, through a shared mapping. Readers read the file and never map
// it. There is no lock: samples form a ring, and `count` is stored after the sample that it counts.
// A reader reads `count`, the block, and `count` again. The last kLiveHistory samples before the
// second `count` are whole, as far as the first one counts them. One copy of the block alone would
// not do: the kernel may copy its parts in any order. The two slots that are left out are the
// one that may be written by now, and one more, because nothing orders the reader's two loads.
// Figures of devices are in a shorter ring of the same count and the same rule.
//
// The process holds the file's flock(LOCK_EX) through the mapping alone. The kernel drops it when
// the process ends or becomes another program, in whatever way. A child does not inherit it.
// Readers believe a file only where the process of its name took the lock, as far as the kernel
// tells them (lock_list.hpp).
//
// Any program of the user may write to the file, or cut it. The process touches its mapping by
// calls of the kernel alone (shared_memory.hpp), which fail where a load or store would end it, and
// believes nothing that it reads there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weir::timeline {

inline constexpr std::array<char, 8> kLiveMagic{'w', 'e', 'i', 'r', 'l', 'i', 'v', 'e'};
/// Grows with every change of the layout. A reader knows its own alone.
inline constexpr std::uint32_t kLiveVersion = 2;
/// Slots of the ring.
inline constexpr std::size_t kLiveSamples = 122;
/// Samples that a reader gets: 30 s at kLivePeriodNs.
inline constexpr std::size_t kLiveHistory = kLiveSamples - 2;
inline constexpr std::uint64_t kLivePeriodNs = 250'000'000;
inline constexpr std::size_t kLiveDevices = 16;
/// Slots of the ring of devices' figures.
inline constexpr std::size_t kLiveDeviceSamples = 8;
/// More than any device has. Less, by far, than what overflows in a sum.
inline constexpr std::uint64_t kMostLiveBytes = std::uint64_t{1} << 50U;
/// As LiveDevice has it: the greatest ordinal of a GPU, and one.
inline constexpr std::uint64_t kMostLiveDevice = 1024;

/// LiveFigures (allocator/timeline/source.hpp) at one time. Sizes in bytes.
struct LiveSample {
  std::uint64_t time_ns = 0;  ///< of the machine's monotonic clock
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

  friend bool operator==(const LiveDevice&, const LiveDevice&) = default;
};

struct LiveDeviceSample {
  std::uint64_t count = 0;
  std::array<LiveDevice, kLiveDevices> devices{};

  friend bool operator==(const LiveDeviceSample&, const LiveDeviceSample&) = default;
};

/// What another program asks for. It writes `begin`, the rest, and `end`, holding the file's lock
/// (fcntl, F_OFD_SETLK) on these bytes from before that until it has its answer or gives up.
/// Whole where `end`, read first, is `begin`, read last.
struct LiveRequest {
  std::uint64_t begin = 0;  ///< drawn at random; 0: nothing is asked for
  std::uint64_t device = 0;
  std::uint64_t budget = 0;  ///< bytes
  std::uint64_t end = 0;     ///< `begin` again
};

/// What became of the request `serial`, which is written last.
struct LiveAnswer {
  std::uint64_t serial = 0;
  std::uint64_t code = 0;    ///< BudgetCode (budget_request.hpp)
  std::uint64_t before = 0;  ///< the budget, in bytes
  std::uint64_t after = 0;
  std::uint64_t used = 0;   ///< of it, then
  std::uint64_t total = 0;  ///< of the device
};

/// The file. Texts are UTF-8 as far as the program's are, end with a zero, and are cut to fit.
struct LiveBlock {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t size = 0;                                    ///< of this struct
  std::uint32_t pid = 0;                                     ///< in its own pid namespace
  std::uint32_t device_count = 0;                            ///< stored after a device's name
  std::uint64_t started = 0;                                 ///< of the process; process.hpp
  std::uint64_t pid_namespace = 0;                           ///< its inode; 0: not known
  std::array<char, 128> program{};                           ///< command line
  std::array<std::array<char, 64>, kLiveDevices> devices{};  ///< names
  LiveRequest request{};
  LiveAnswer answer{};
  std::uint64_t count = 0;                         ///< samples so far
  std::array<LiveSample, kLiveSamples> samples{};  ///< sample i is at i % kLiveSamples
  /// Of sample i at i % kLiveDeviceSamples.
  std::array<LiveDeviceSample, kLiveDeviceSamples> device_samples{};
};
static_assert(sizeof(LiveSample) == 128 && std::is_trivially_copyable_v<LiveSample>);
static_assert(sizeof(LiveDevice) == 88 && sizeof(LiveDeviceSample) == 1416);
static_assert(sizeof(LiveBlock) == 28224 && std::is_trivially_copyable_v<LiveBlock>);

}  // namespace weir::timeline
