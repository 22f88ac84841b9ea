#pragma once

// Chunks hold the records of threads until the recorder's thread has read them.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Records of one thread. The thread appends a record and then raises `filled`; the recorder's
/// thread may read the records below it at any time.
struct Chunk {
  static constexpr Bytes kSize = kib(64);
  static constexpr std::uint32_t kHead = 64;
  static constexpr std::uint32_t kRecords = (kSize.count - kHead) / sizeof(TimelineRecord);

  std::atomic<std::uint32_t> filled{0};  ///< number of complete records
  std::uint32_t drained = 0;  ///< number of records read; used by the recorder's thread only
  std::uint32_t place = 0;    ///< index in the list of chunks in use; guarded by the store's lock
  union {                     ///< not zeroed: that would take longer than writing the records
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
  /// Allows at least four chunks, and otherwise as many as fit into `most`. Makes them as needed.
  explicit ChunkStore(Bytes most);
  /// Frees all chunks. No thread may use one any more.
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  /// Passes `used`, which may be null, to the recorder's thread. Returns an empty chunk; null if
  /// none is available.
  [[nodiscard]] Chunk* exchange(Chunk* used) noexcept;
  /// Passes a chunk to the recorder's thread without taking another.
  void give(Chunk& used) noexcept;
  /// Returns whether at least half of all possible chunks wait to be read.
  [[nodiscard]] bool is_half_full() const noexcept {
    return full_count_.load(std::memory_order_relaxed) * 2 >= most_;
  }

  // For the recorder's thread.

  /// Appends the chunks passed since the last call to `full`, and those in use to `in_use`. The
  /// caller owns the full ones until it recycles them.
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
