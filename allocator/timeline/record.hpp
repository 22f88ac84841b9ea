#pragma once

// One event of a timeline, in memory and as read from a file.

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace weir {

/// `slice`: lasts from `begin` to `end`; any other event has both equal. Each lists its fields
/// besides times, thread, source and, for work of a batch, batch.
enum class TimelineKind : std::uint8_t {
  // A pool's memory, ordered by `sequence`; allocated, awaiting and cached are the statistics after
  // the event.
  kPool,      ///< exists: name, bytes (budget), detail (1: host memory)
  kLive,      ///< allocated before the recording: id (address), bytes, requested, stream, name
  kAllocate,  ///< id (address), bytes (block), requested, stream, name, site; TimelineServed
  kFree,      ///< id (address), bytes (block), requested, stream; detail (1: awaits other streams)
  kSettled,   ///< the device has passed frees: bytes
  kUse,       ///< used on another stream, too: id (address), stream
  kReserve,   ///< obtained from the upstream: id (address), bytes
  kRelease,   ///< returned to the upstream: id (address; 0: pages from anywhere), bytes
  kMap,       ///< pages moved to other addresses: id (address), bytes; reserved is unchanged
  kFailure,   ///< out of memory: bytes (block), requested, stream, name, site
  kBudget,    ///< changed: bytes
  kPressure,  ///< changed level: detail (PressureLevel), bytes (held)
  kPoolEnd,   ///< destroyed

  // Waits of a thread. Slices.
  kPoolWait,    ///< an allocation waits for memory: bytes (block), stream, name
  kMemoryWait,  ///< an allocation waits for other open batches: bytes (block), name
  kStall,       ///< for admission: name (kind), site; TimelineStall
  kBarrier,     ///< for the device, at the program's request: name (call), site
  kPace,        ///< a launch waits: stream; TimelineStall

  // Batches.
  kAdmit,   ///< opened: name (kind), site, bytes (estimate), requested (run-ahead target in ns, 0:
            ///< none); TimelineAdmission. Decided on: id (Pressure::number; 0: none), allocated,
            ///< awaiting, cached
  kClose,   ///< submitted: name (kind), bytes (peak)
  kSettle,  ///< completed on the device: name (kind)

  // Operations of the scheduler.
  kSubmit,      ///< slice on a thread: id (operation), name, site, stream
  kExecute,     ///< slice on a stream: id (operation), name, site, stream, bytes (written)
  kStreamWait,  ///< slice on a waiting stream: stream, id (other stream)

  // A profiler's events on the device. `id` is the correlation id.
  kKernel,       ///< slice on a stream: id, name, stream
  kCopy,         ///< slice on a stream: id, name, stream, bytes; TimelineCopy
  kSet,          ///< slice on a stream: id, name, stream, bytes
  kSync,         ///< slice on a thread: id, name, stream (0: all)
  kCall,         ///< slice on a thread: id, name (function)
  kOverhead,     ///< slice: name, the profiler's own cost
  kDriverAlloc,  ///< sequence (address), id, bytes, name (library); TimelineMemory
  kDriverFree,   ///< sequence (address), id, bytes, name (library); TimelineMemory
  kDriverPool,   ///< sequence (address), bytes (used), requested (reserved), detail (what)

  // The recording.
  kStream,  ///< named: stream, name
  kThread,  ///< named: thread, name, id (the system's thread number)
  kStart,   ///< begun, or resumed
  kStop,    ///< stopped on request
  kLost,    ///< bytes: number of events, name: reason
  kNote,    ///< name: a line for the reader
};
inline constexpr std::size_t kTimelineKinds = static_cast<std::size_t>(TimelineKind::kNote) + 1;

/// `detail` of kAllocate: the serving stage.
enum class TimelineServed : std::uint8_t {
  kOwn,         ///< a cached block of the same stream
  kPassed,      ///< a block that the device has passed
  kGrown,       ///< new from the upstream, or moved pages
  kHandedOver,  ///< another stream's block, after a wait on the device
};
/// `detail` of kAdmit.
enum class TimelineAdmission : std::uint8_t {
  kAdmitted,
  kForced,  ///< admitted though memory may not suffice
  kBefore,  ///< opened before the recording
};
/// `detail` of kStall and kPace.
enum class TimelineStall : std::uint8_t {
  kBudget,    ///< for room in the budget
  kRunAhead,  ///< enough device time queued
  kTurn,      ///< another producer's turn
};
/// `detail` of kCopy.
enum class TimelineCopy : std::uint8_t {
  kOther,
  kToDevice,
  kFromDevice,
  kOnDevice,
  kPeer,
  kOnHost
};
/// `detail` of kDriverAlloc and kDriverFree.
enum class TimelineMemory : std::uint8_t { kOther, kDevice, kPinned, kPageable, kManaged, kArray };

/// Times are ticks of the recorder's clock when written, and nanoseconds since the start of the
/// recording when read.
struct TimelineRecord {
  std::uint64_t begin = 0;      ///< 0 when written: now
  std::uint64_t end = 0;        ///< 0 when written: now
  std::uint64_t id = 0;         ///< see TimelineKind
  std::uint64_t bytes = 0;      ///< see TimelineKind
  std::uint64_t requested = 0;  ///< bytes before rounding; see TimelineKind
  std::uint64_t stream = 0;     ///< StreamId, or a profiler's stream number
  std::uint64_t sequence = 0;   ///< in its source's order, from 1; 0: none
  std::uint64_t allocated = 0;  ///< of the pool, after the event; kAdmit: before
  std::uint64_t awaiting = 0;   ///< of the pool, after the event
  std::uint64_t cached = 0;     ///< of the pool, after the event
  std::uint32_t batch = 0;      ///< number in the process, from 1; 0: none
  std::uint32_t name = 0;       ///< from TimelineSink::name; 0: none
  std::uint32_t site = 0;       ///< from TimelineSink::site; 0: none
  std::uint32_t thread = 0;     ///< from 1, in the order of first writes
  std::uint16_t source = 0;     ///< its pool, admission or device, from 1; 0: none
  std::uint16_t device = 0;     ///< 1 + ordinal; 0: host or unknown
  TimelineKind kind{};
  std::uint8_t detail = 0;     ///< see TimelineKind
  std::uint16_t reserved = 0;  ///< zero

  friend bool operator==(const TimelineRecord&, const TimelineRecord&) = default;
};
static_assert(sizeof(TimelineRecord) == 104 && std::is_trivially_copyable_v<TimelineRecord>);

}  // namespace weir
