#pragma once

// Small blocks cut from a pool's: a scalar kept on the device costs 64 bytes and not a page. Each
// block of the pool ("chunk") belongs to one stream and is cut into equal slots.
//
// The pool's rules hold for slots: a freed slot is its own stream's at once, unless a second stream
// used it, then it awaits that stream's point; no slot changes streams. A chunk goes back to the
// pool when all its slots are free, but for one per stream and size. Thread-safe.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "allocator/mutex.hpp"
#include "allocator/pool.hpp"

namespace weir {

class Slab {
 public:
  static constexpr Bytes kLargest{1024};
  static constexpr Bytes kChunk = kib(64);
  static constexpr std::size_t kMostOtherStreams = 8;

  struct Chunk;
  /// A slot and the chunk that it is cut from.
  struct Slot {
    void* pointer = nullptr;
    Chunk* chunk = nullptr;
  };

  /// Both must outlive the slab.
  Slab(Pool& pool, Progress& progress);
  /// Gives every chunk back to the pool; a slot that is still out is its holder's fault.
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  /// A slot for `bytes` (1 to kLargest), aligned to 64. A null pointer when the pool has no chunk
  /// to give; `attempt` then says why. Sets `grown` to the block that the pool gave, zero if none.
  [[nodiscard]] Slot try_allocate(Bytes bytes, StreamId stream, Attempt& attempt, Bytes& grown);

  /// Frees in the order of the chunk's stream and of `others` (at most kMostOtherStreams), the
  /// other streams that used the slot.
  void deallocate(Slot slot, std::span<const StreamId> others);

  /// For a request that the pool cannot serve: gives every chunk without a slot in use back to it.
  /// With none, and if it may, waits on the host for the use of a freed slot that was submitted
  /// longest ago. False: nothing of that was to be had.
  [[nodiscard]] bool reclaim(bool may_wait);

 private:
  static constexpr std::array<std::uint32_t, 3> kSlotSizes{64, 256, 1024};
  struct Awaiting {
    Slot slot;
    std::array<Point, kMostOtherStreams> points{};
    std::size_t count = 0;
  };
  using WithRoom = std::array<std::vector<Chunk*>, kSlotSizes.size()>;

  [[nodiscard]] Slot take_slot(StreamId stream, std::size_t size_class) WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<Chunk> return_slot(Slot slot) WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool passed(Awaiting& awaiting);
  void give_back(const std::unique_ptr<Chunk>& chunk);
  [[nodiscard]] bool give_back_empty_chunks();
  void poll();

  Pool& pool_;
  Progress& progress_;
  Mutex mutex_{LockRank::kSlab};
  std::unordered_map<Chunk*, std::unique_ptr<Chunk>> chunks_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<StreamId, WithRoom> with_room_ WEIR_GUARDED_BY(mutex_);
  std::vector<Awaiting> awaiting_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
