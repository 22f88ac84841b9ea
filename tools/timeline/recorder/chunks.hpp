#pragma once

// Where threads put their records until the recorder's thread has read them.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Records of one thread. The thread appends and then raises `filled`; the recorder's thread reads
/// the records below it at any time.
struct Chunk {
  static constexpr Bytes kSize = kib(64);
  static constexpr std::uint32_t kHead = 64;
  static constexpr std::uint32_t kRecords = (kSize.count - kHead) / sizeof(TimelineRecord);

  std::atomic<std::uint32_t> filled{0};  ///< how many records are whole
  std::uint32_t drained = 0;             ///< how many were read; of the recorder's thread alone
  std::uint32_t place = 0;               ///< in the list of chunks in use; of the store's lock
  union {  ///< not set to zero: that would take longer than writing them
    alignas(kHead) std::array<TimelineRecord, kRecords> records;
  };

  Chunk() noexcept {}  // NOLINT(*-use-equals-default, *-member-init): it leaves records alone
  ~Chunk() = default;
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
};
static_assert(sizeof(Chunk) <= Chunk::kSize.count);

/// All chunks of a recorder: free, in use by a thread, or full. Thread-safe; never throws.
class ChunkStore {
 public:
  /// At least four chunks, and no more than fit into `most`. They are made as they are needed.
  explicit ChunkStore(Bytes most);
  /// Frees all of them: no thread may use one any more.
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  /// Gives back `used`, which may be null, to be read. Returns an empty chunk; null where there is
  /// none to be had.
  [[nodiscard]] Chunk* exchange(Chunk* used) noexcept;
  /// Gives back a chunk of a thread that needs no other.
  void give(Chunk& used) noexcept;
  /// Whether at least half of all chunks that there can be wait to be read.
  [[nodiscard]] bool is_half_full() const noexcept {
    return full_count_.load(std::memory_order_relaxed) * 2 >= most_;
  }

  // For the recorder's thread.

  /// Appends the chunks that were given back since to `full`, and those in use to `in_use`. The
  /// first are the caller's until it recycles them.
  void collect(std::vector<Chunk*>& full, std::vector<Chunk*>& in_use);
  /// Makes a chunk free again.
  void recycle(Chunk& read) noexcept;
  /// Returns the memory of free chunks to the system.
  void shrink() noexcept;

 private:
  void end_use(Chunk& chunk) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] Chunk* take_free() noexcept WEIR_REQUIRES(mutex_);

  const std::size_t most_;
  std::atomic<std::size_t> full_count_{0};
  std::atomic<std::size_t> to_be_had_;  ///< free, or not made yet

  // Each has room for all chunks from the start, so that nothing is allocated under the lock.
  Mutex mutex_{LockRank::kTimeline};
  std::vector<Chunk*> free_ WEIR_GUARDED_BY(mutex_);
  std::vector<Chunk*> in_use_ WEIR_GUARDED_BY(mutex_);
  std::vector<Chunk*> full_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::timeline
