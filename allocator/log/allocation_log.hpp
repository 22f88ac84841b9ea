#pragma once

/// @file
/// A binary log of every allocation and free, cheap enough to leave on: WEIR_ALLOC_LOG names the
/// file. Each thread writes to its own ring, a mapped piece of the file, and copies a full ring to
/// the end of the file. An event costs a few stores. What was written survives any end of the
/// process.
///
/// Format: docs/allocation-log.md. Reader: allocation_log_reader.hpp.

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
  kPool = 1,      ///< a pool began with a budget of `bytes`
  kAllocate = 2,  ///< `bytes` requested on `stream` are at `address`
  kFree = 3,      ///< `address` was freed in the order of `stream`
  kUse = 4,       ///< `address` is also used on `stream`
  kFailure = 5,   ///< nothing could serve `bytes` requested on `stream`
  kGrow = 6,      ///< the upstream gave the pool `bytes` at `address`
  kRelease = 7,   ///< the pool returned `bytes` at `address` to its upstream
};

/// One event in the file, in the machine's byte order.
struct AllocationRecord {
  std::uint64_t sequence = 0;  ///< in its pool's order, from 1; 0: no record
  std::uint64_t time = 0;      ///< ticks of the header's clock; once read: ns since the log began
  std::uint64_t address = 0;   ///< the event's address
  std::uint64_t bytes = 0;     ///< as requested, before rounding
  std::uint64_t stream = 0;    ///< StreamId
  std::uint32_t thread = 0;    ///< from 1, in the order of first writes
  std::uint16_t pool = 0;      ///< from 1, in the order of beginning
  AllocationEvent event{};     ///< what happened
  std::uint8_t reserved = 0;   ///< zero
};
static_assert(sizeof(AllocationRecord) == 48 && std::is_trivially_copyable_v<AllocationRecord>);

/// The first bytes of the file. Fields that change during writing are atomic.
struct AllocationLogHeader {
  static constexpr std::uint64_t kMagic =
      0x31474f4c52494557;                        ///< "WEIRLOG1" in little-endian order
  static constexpr std::uint32_t kVersion = 1;   ///< of the format
  static constexpr std::uint32_t kBytes = 4096;  ///< offset of the first chunk

  std::uint64_t magic = kMagic;                           ///< marks a log
  std::uint32_t version = kVersion;                       ///< of the format
  std::uint32_t header_bytes = kBytes;                    ///< kBytes
  std::uint32_t chunk_bytes = 0;                          ///< AllocationLog::kChunk
  std::uint32_t record_bytes = sizeof(AllocationRecord);  ///< of each record
  std::uint64_t unix_ns = 0;                              ///< when the log began
  std::atomic<std::uint64_t> lost{0};                     ///< events without room
  std::atomic<std::uint32_t> closed{0};                   ///< 1 once the process has ended the log
  std::uint64_t began_ticks = 0;                          ///< when the log began
  std::atomic<double> ns_per_tick{1};                     ///< grows more exact with time
};

/// An open log. Thread-safe. Forked children do not write to it.
class AllocationLog {
 public:
  /// The size of a ring, which one thread uses at a time, and of its copies.
  static constexpr Bytes kChunk = kib(64);

  /// Begins a new log at `path`. Throws UsageError, naming `option`, unless `path` is an old log or
  /// a new file that can be written. Beyond `limit` bytes, or on a full disk, events are lost and
  /// counted.
  AllocationLog(const std::string& option, const std::string& path, Bytes limit);
  /// Marks the log as complete and warns of lost events.
  ~AllocationLog();
  AllocationLog(const AllocationLog&) = delete;
  AllocationLog& operator=(const AllocationLog&) = delete;

  /// Returns the process's log at `path`. The first call begins it; the end of the process marks it
  /// as complete. Never destroyed, because pools may outlive every static object.
  [[nodiscard]] static AllocationLog& of_process(const std::string& option, const std::string& path,
                                                 Bytes limit);

  /// Returns a new pool's number.
  [[nodiscard]] std::uint16_t add_pool(Bytes budget) noexcept;

  /// Writes an event; fills in time and thread. `record.sequence` must not be zero. Never throws.
  /// Calls nothing, except for a copy to the file every thousand events. Take the sequence under
  /// the lock that orders the events, and write after unlocking.
  void write(AllocationRecord record) noexcept;

  /// Returns how many events are lost so far.
  [[nodiscard]] std::uint64_t lost() const noexcept;

 private:
  struct Cursor;
  struct Ring {
    AllocationRecord* begin = nullptr;
    AllocationRecord* next = nullptr;
    AllocationRecord* end = nullptr;
  };
  static thread_local Cursor cursor;
  static std::atomic<AllocationLog*> last_of_process;  ///< the newest; `older_` links to the next
  static void stop_in_child() noexcept;
  void complete() noexcept;

  /// Gives the thread a ring with room; false: none left.
  [[nodiscard]] bool make_room(Cursor& mine) noexcept;
  [[nodiscard]] Ring new_ring() WEIR_REQUIRES(mutex_);
  /// Copies a full ring to the file's end and restarts it.
  void drain(Ring& ring) noexcept;
  /// Returns a new chunk's offset; -1: no room.
  [[nodiscard]] std::int64_t take_chunk() WEIR_REQUIRES(mutex_);

  /// Distinguishes logs of the same address; 0 in a forked child.
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
  std::vector<Ring> left_ WEIR_GUARDED_BY(mutex_);    ///< by ended threads
};

}  // namespace weir
