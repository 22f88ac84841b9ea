#pragma once

/// @file
/// One thing that happened, as a timeline keeps it: the same record in memory while a program runs,
/// and after a file was read.

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace weir {

/// What happened. `slice`: from `begin` to `end`; everything else has one time, in both. After
/// each: the fields that it uses besides times, thread, source and, where work belongs to one,
/// batch.
enum class TimelineKind : std::uint8_t {
  // Memory of one pool, ordered by `sequence`, with its statistics right after in allocated,
  // awaiting
  // and cached.
  kPool,  ///< there is a pool: name, bytes (budget), detail (1: host memory)
  kLive,  ///< handed out before the recording began: id (address), bytes, requested, stream, name
  kAllocate,  ///< handed out: id (address), bytes (block), requested, stream, name, site;
              ///< TimelineServed
  kFree,      ///< id (address), bytes (block), requested, stream; detail (1: awaits other streams)
  kSettled,   ///< the device has passed awaiting frees: bytes
  kUse,       ///< used on a second stream too: id (address), stream
  kReserve,   ///< obtained from the upstream: id (address), bytes
  kRelease,   ///< given back to the upstream: id (address; 0: pages from anywhere), bytes
  kMap,       ///< pages put behind other addresses: id (address), bytes; reserved stays
  kFailure,   ///< out of memory: bytes (block), requested, stream, name, site
  kBudget,    ///< a new one: bytes
  kPressure,  ///< a new level: detail (PressureLevel), bytes (held)
  kPoolEnd,   ///< the pool is gone

  // What a thread of the program waits for. Slices.
  kPoolWait,    ///< for the device, to serve an allocation: bytes (block), stream, name
  kMemoryWait,  ///< for other open batches, to serve an allocation: bytes (block), name
  kStall,       ///< for admission: name (kind), site; TimelineStall
  kBarrier,     ///< for the device, as the program asked: name (call), site
  kPace,        ///< a launch is held back: stream; TimelineStall

  // Batches.
  kAdmit,   ///< open from here: name (kind), site, bytes (estimate); TimelineAdmission
  kClose,   ///< submitted: name (kind), bytes (peak)
  kSettle,  ///< the device is done with it: name (kind)

  // Operations of the scheduler.
  kSubmit,      ///< slice on the frontend: id (operation), name, site, stream
  kExecute,     ///< slice on a stream: id (operation), name, site, stream, bytes (written)
  kStreamWait,  ///< slice on a stream: it waits for another: stream, id (other stream)

  // What a profiler says of the device. `id` is the correlation id.
  kKernel,       ///< slice on a stream: id, name, stream
  kCopy,         ///< slice on a stream: id, name, stream, bytes; TimelineCopy
  kSet,          ///< slice on a stream: id, name, stream, bytes
  kSync,         ///< slice on a thread: id, name, stream (0: all)
  kCall,         ///< slice on a thread: id, name (function)
  kOverhead,     ///< slice: name, the profiler's own cost
  kDriverAlloc,  ///< sequence (address), id, bytes, name (library); TimelineMemory
  kDriverFree,   ///< sequence (address), id, bytes, name (library); TimelineMemory
  kDriverPool,   ///< sequence (address), bytes (used), requested (reserved), detail (what)

  // Of the recording.
  kStream,  ///< a stream's name: stream, name
  kThread,  ///< a thread's name: thread, name, id (the system's number of it)
  kStart,   ///< it began, or began again
  kStop,    ///< it was told to stop
  kLost,    ///< bytes: how many events, name: why
  kNote,    ///< name: a line for whoever reads it
};
inline constexpr std::size_t kTimelineKinds = static_cast<std::size_t>(TimelineKind::kNote) + 1;

/// `detail` of kAllocate: the stage that served it.
enum class TimelineServed : std::uint8_t {
  kOwn,         ///< a cached block of its own stream
  kPassed,      ///< a block that the device was done with
  kGrown,       ///< new from the upstream, or pages moved
  kHandedOver,  ///< another stream's block, behind a wait on the device
};
/// `detail` of kAdmit.
enum class TimelineAdmission : std::uint8_t {
  kAdmitted,
  kForced,  ///< it was let go on though its memory may not suffice
  kBefore,  ///< it was under way as the recording began
};
/// `detail` of kStall and kPace.
enum class TimelineStall : std::uint8_t {
  kBudget,    ///< no room in the budget
  kRunAhead,  ///< enough device time is queued
  kTurn,      ///< another producer's turn
  kOpen,      ///< other batches are open, and the budget has no room
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

/// One record. Times are ticks of the recorder's clock while it is written, and nanoseconds since
/// the recording's zero everywhere else.
struct TimelineRecord {
  std::uint64_t begin = 0;      ///< 0 when written: now
  std::uint64_t end = 0;        ///< 0 when written: now
  std::uint64_t id = 0;         ///< see TimelineKind
  std::uint64_t bytes = 0;      ///< see TimelineKind
  std::uint64_t requested = 0;  ///< bytes before rounding
  std::uint64_t stream = 0;     ///< StreamId; on a profiler's records the driver's number of it
  std::uint64_t sequence = 0;   ///< in the order of its source, from 1; 0: none
  std::uint64_t allocated = 0;  ///< the pool's, right after
  std::uint64_t awaiting = 0;   ///< the pool's, right after
  std::uint64_t cached = 0;     ///< the pool's, right after
  std::uint32_t batch = 0;      ///< its number in the process, from 1; 0: none
  std::uint32_t name = 0;       ///< a number that TimelineSink::name gave; 0: none
  std::uint32_t site = 0;       ///< the same, of `file:line`
  std::uint32_t thread = 0;     ///< from 1, in the order in which threads first wrote
  std::uint16_t source = 0;     ///< the pool, admission or device that it is of, from 1; 0: none
  std::uint16_t device = 0;     ///< 1 + ordinal; 0: the host's, or not known
  TimelineKind kind{};          ///< what happened
  std::uint8_t detail = 0;      ///< see TimelineKind
  std::uint16_t reserved = 0;   ///< zero

  friend bool operator==(const TimelineRecord&, const TimelineRecord&) = default;
};
static_assert(sizeof(TimelineRecord) == 104 && std::is_trivially_copyable_v<TimelineRecord>);

}  // namespace weir
