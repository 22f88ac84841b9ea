#pragma once

/// @file
/// A binary log of every allocation and free, cheap enough to leave on: WEIR_ALLOC_LOG names the
/// file. Each thread fills a ring of its own, a piece of the file that is mapped into memory, and a
/// full ring is copied to the end of the file: an event is a few stores, and whatever ends the
/// process, what was written is in the file.
///
/// The format is docs/allocation-log.md's; allocation_log_reader.hpp reads it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/tick_clock.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// What happened.
enum class AllocationEvent : std::uint8_t {
  kPool = 1,      ///< a pool began; `bytes` is its budget
  kAllocate = 2,  ///< `bytes` were asked for on `stream` and are at `address`
  kFree = 3,      ///< `address` was freed in the order of `stream`
  kUse = 4,       ///< `address` is also used on `stream`
  kFailure = 5,   ///< `bytes` were asked for on `stream` and nothing could serve them
  kGrow = 6,      ///< the pool got `bytes` at `address` from its upstream
  kRelease = 7,   ///< the pool gave `bytes` at `address` back to its upstream
};

/// One event as it lies in the file, in the byte order of the machine.
struct AllocationRecord {
  std::uint64_t sequence = 0;  ///< from 1, in the order of its pool; 0: nothing was written here
  std::uint64_t time = 0;      ///< in ticks of the header's clock; read: ns since the log began
  std::uint64_t address = 0;   ///< what `event` is about
  std::uint64_t bytes = 0;     ///< as asked for, before rounding
  std::uint64_t stream = 0;    ///< StreamId
  std::uint32_t thread = 0;    ///< from 1, in the order in which threads first wrote
  std::uint16_t pool = 0;      ///< from 1, in the order in which pools began
  AllocationEvent event{};     ///< what happened
  std::uint8_t reserved = 0;   ///< zero
};
static_assert(sizeof(AllocationRecord) == 48 && std::is_trivially_copyable_v<AllocationRecord>);

/// The first bytes of the file. What changes while the log is written is atomic.
struct AllocationLogHeader {
  static constexpr std::uint64_t kMagic =
      0x31474f4c52494557;                        ///< "WEIRLOG1" in little-endian order
  static constexpr std::uint32_t kVersion = 1;   ///< of the format
  static constexpr std::uint32_t kBytes = 4096;  ///< where the first chunk begins

  std::uint64_t magic = kMagic;                           ///< says that this is a log
  std::uint32_t version = kVersion;                       ///< of the format
  std::uint32_t header_bytes = kBytes;                    ///< as kBytes
  std::uint32_t chunk_bytes = 0;                          ///< as AllocationLog::kChunk
  std::uint32_t record_bytes = sizeof(AllocationRecord);  ///< of each record
  std::uint64_t unix_ns = 0;                              ///< when the log began
  std::atomic<std::uint64_t> lost{0};                     ///< events for which there was no room
  std::atomic<std::uint32_t> closed{0};  ///< 1 once the process ended the log itself
  std::uint64_t began_ticks = 0;         ///< when the log began
  std::atomic<double> ns_per_tick{1};    ///< measured ever longer, so ever more exact
};

/// An open log. Thread-safe. A child that the process forks does not write to it.
class AllocationLog {
 public:
  /// What the file is made of: rings, each one thread's at a time, and copies of full rings.
  static constexpr Bytes kChunk = kib(64);

  /// Begins the log at `path` anew. UsageError, naming `option`, unless that is a new file that can
  /// be written or an old log. Past `limit` bytes, or on a full disk, events are lost and counted.
  AllocationLog(const std::string& option, const std::string& path, Bytes limit);
  /// Marks the log as complete, and warns when events were lost.
  ~AllocationLog();
  AllocationLog(const AllocationLog&) = delete;
  AllocationLog& operator=(const AllocationLog&) = delete;

  /// The log that the whole process writes to `path`: begun by the first who asks, and marked as
  /// complete when the process ends. Never destroyed: pools may outlive every static object.
  [[nodiscard]] static AllocationLog& of_process(const std::string& option, const std::string& path,
                                                 Bytes limit);

  /// A number for a pool that begins now.
  [[nodiscard]] std::uint16_t add_pool(Bytes budget) noexcept;

  /// Writes an event. `record.sequence` must not be zero; time and thread are filled in. Never
  /// throws and, but for a copy to the file every thousand events, calls nothing: take the sequence
  /// under the lock that orders the events, and write after it is dropped.
  void write(AllocationRecord record) noexcept;

  /// Events that were lost so far.
  [[nodiscard]] std::uint64_t lost() const noexcept;

 private:
  struct Cursor;
  struct Ring {
    AllocationRecord* begin = nullptr;
    AllocationRecord* next = nullptr;
    AllocationRecord* end = nullptr;
  };
  static thread_local Cursor cursor;
  static std::atomic<AllocationLog*> last_of_process;  ///< the one before it is its `older_`
  static void stop_in_child() noexcept;
  void complete() noexcept;

  /// A ring with room; false: there is none to be had.
  [[nodiscard]] bool make_room(Cursor& mine) noexcept;
  [[nodiscard]] Ring new_ring() WEIR_REQUIRES(mutex_);
  /// Copies a full ring to the end of the file and begins it again.
  void drain(Ring& ring) noexcept;
  /// The place of another chunk in the file; -1: there is no room.
  [[nodiscard]] std::int64_t take_chunk() WEIR_REQUIRES(mutex_);

  /// Tells logs apart that had the same address; 0 in a forked child.
  std::atomic<std::uint64_t> serial_;
  const std::string path_;
  const Bytes limit_;
  const TickClock clock_;
  int file_ = -1;
  AllocationLogHeader* header_ = nullptr;
  std::atomic<std::uint16_t> pools_{0};
  AllocationLog* older_ = nullptr;

  Mutex mutex_{LockRank::kLeaf};
  Bytes size_ WEIR_GUARDED_BY(mutex_);
  std::vector<void*> rings_ WEIR_GUARDED_BY(mutex_);  ///< mapped
  std::vector<Ring> left_ WEIR_GUARDED_BY(mutex_);    ///< by threads that ended
};

}  // namespace weir
