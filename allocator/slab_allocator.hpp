#pragma once

// Small blocks cut from a pool's blocks: a scalar on the device costs 64 bytes, not a page. Such a
// block, a slab, belongs to one stream and is cut into equal slots.
//
// Slots follow the pool's rules: a stream can reuse its freed slot at once, unless a second stream
// used it; then the slot awaits that stream's point. Slots do not change streams. A slab whose
// slots are all free goes back to the pool, except one per stream and size. Thread-safe.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/pool.hpp"

namespace weir {

class SlabAllocator {
 public:
  static constexpr Bytes kLargest{1024};
  static constexpr Bytes kSlab = kib(64);
  static constexpr std::size_t kMostOtherStreams = 8;

  struct Slab {
    std::byte* base = nullptr;
    StreamId stream;
    std::size_t size_class = 0;
    std::vector<std::uint16_t> free_slots;  ///< last freed, first reused
    std::size_t slots = 0;
    bool kept = false;  ///< never freed
  };
  struct Slot {
    void* pointer = nullptr;
    Slab* slab = nullptr;
  };

  /// `pool` and `progress` must outlive the allocator.
  SlabAllocator(Pool& pool, Progress& progress);
  /// Returns every slab to the pool. No slot may be in use.
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  /// Allocates a slot for `bytes` (1 to kLargest), aligned to 64. The pointer is null if the pool
  /// has no slab; `attempt` says why. Sets `grown` to the size of the pool's new block, or zero.
  [[nodiscard]] Slot try_allocate(Bytes bytes, StreamId stream, Attempt& attempt, Bytes& grown);

  /// Frees in the order of the slab's stream and of `others`, the other streams that used the slot
  /// (at most kMostOtherStreams).
  void deallocate(Slot slot, std::span<const StreamId> others);

  /// Makes room when the pool cannot serve. Returns every slab without slots in use to the pool. If
  /// there is none, returns true if another thread returned one since `given_back` was `looked`,
  /// and waits for one under way. Otherwise, if `may_wait`, waits on the host for the oldest
  /// submitted use of a freed slot, or until the stop of `attempt`, which counts the wait. Returns
  /// false if none of these is possible.
  [[nodiscard]] bool reclaim(bool may_wait, std::uint64_t looked, Attempt& attempt);
  /// Returns the number of slabs returned. Read it before a request, so that none is missed.
  [[nodiscard]] std::uint64_t given_back() const noexcept {
    return given_back_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kSlotSizes{64, 256, 1024};
  struct Awaiting {
    Slot slot;
    std::array<Point, kMostOtherStreams> points{};
    std::size_t count = 0;
    std::uint64_t serial = 0;  ///< the order in which slots began to await

    [[nodiscard]] std::span<const Point> uses() const { return std::span(points).first(count); }
    [[nodiscard]] std::span<Point> uses() { return std::span(points).first(count); }
  };
  using WithRoom = std::array<std::vector<Slab*>, kSlotSizes.size()>;

  /// Reserves room to await one more slot, so that its free cannot fail. May throw.
  void make_room_to_await() WEIR_REQUIRES(mutex_);
  [[nodiscard]] Slot take_slot(StreamId stream, std::size_t size_class) WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<Slab> return_slot(Slot slot) WEIR_REQUIRES(mutex_);
  /// Returns the current point, or one to record later.
  [[nodiscard]] Point try_record(StreamId stream);
  [[nodiscard]] bool all_reached(std::span<const Point> uses);
  [[nodiscard]] Slot add_slab(std::unique_ptr<Slab> slab) WEIR_REQUIRES(mutex_);
  void free_slab(const Slab& slab) noexcept;
  /// The caller counted the slabs in `giving_back_` when it took them from `slabs_`.
  void give_back(std::span<const std::unique_ptr<Slab>> slabs) noexcept;
  [[nodiscard]] bool give_back_empty_slabs();
  [[nodiscard]] bool await_given_back(std::uint64_t looked);
  void poll();

  Pool& pool_;
  Progress& progress_;
  Mutex mutex_{LockRank::kSlab};
  std::unordered_map<Slab*, std::unique_ptr<Slab>> slabs_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<StreamId, WithRoom> with_room_ WEIR_GUARDED_BY(mutex_);
  /// Freed slots with open uses. A slot is always here or in its slab, so no thread misses one.
  std::vector<Awaiting> awaiting_ WEIR_GUARDED_BY(mutex_);
  std::size_t slots_out_ WEIR_GUARDED_BY(mutex_) =
      0;  ///< in use or awaiting; `awaiting_` has room for all
  std::uint64_t serials_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t giving_back_ WEIR_GUARDED_BY(mutex_) = 0;  ///< slabs being returned to the pool
  std::atomic<std::uint64_t> given_back_ = 0;              ///< written under the lock
  std::condition_variable_any changed_;                    ///< given_back_ grew
};

}  // namespace weir
