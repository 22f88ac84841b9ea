#pragma once

// Small blocks cut from a pool's: a scalar kept on the device costs 64 bytes and not a page. Each
// such block, a slab, belongs to one stream and is cut into equal slots.
//
// The pool's rules hold for slots: a freed slot is its own stream's at once, unless a second stream
// used it, then it awaits that stream's point; no slot changes streams. A slab goes back to the
// pool when all its slots are free, but for one per stream and size. Thread-safe.

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
    std::vector<std::uint16_t> free_slots;  ///< last freed, first taken
    std::size_t slots = 0;
    bool kept = false;  ///< never to be freed
  };
  /// A slot and the slab that it is cut from.
  struct Slot {
    void* pointer = nullptr;
    Slab* slab = nullptr;
  };

  /// Both must outlive the allocator.
  SlabAllocator(Pool& pool, Progress& progress);
  /// Gives every slab back to the pool; a slot that is still out is its holder's fault.
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  /// A slot for `bytes` (1 to kLargest), aligned to 64. A null pointer when the pool has no slab
  /// to give; `attempt` then says why. Sets `grown` to the block that the pool gave, zero if none.
  [[nodiscard]] Slot try_allocate(Bytes bytes, StreamId stream, Attempt& attempt, Bytes& grown);

  /// Frees in the order of the slab's stream and of `others` (at most kMostOtherStreams), the
  /// other streams that used the slot.
  void deallocate(Slot slot, std::span<const StreamId> others);

  /// For a request that the pool cannot serve: gives every slab without a slot in use back to it.
  /// With none, tells whether another thread has given one back since `given_back` was `looked`,
  /// and awaits that if it is under way. Else, and if it may, waits on the host for the use of a
  /// freed slot that was submitted longest ago, or until `stop`. False: nothing of that was to be
  /// had.
  [[nodiscard]] bool reclaim(bool may_wait, std::uint64_t looked, const std::stop_token& stop = {});
  /// Slabs given back to the pool so far. Read before a request, so that none is missed.
  [[nodiscard]] std::uint64_t given_back() const noexcept {
    return given_back_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kSlotSizes{64, 256, 1024};
  struct Awaiting {
    Slot slot;
    std::array<Point, kMostOtherStreams> points{};
    std::size_t count = 0;
    std::uint64_t serial = 0;  ///< its place in the order in which slots came to await

    [[nodiscard]] std::span<const Point> uses() const { return std::span(points).first(count); }
    [[nodiscard]] std::span<Point> uses() { return std::span(points).first(count); }
  };
  using WithRoom = std::array<std::vector<Slab*>, kSlotSizes.size()>;

  /// Room for one more slot in use, so that its free cannot fail. May fail itself.
  void make_room_to_await() WEIR_REQUIRES(mutex_);
  [[nodiscard]] Slot take_slot(StreamId stream, std::size_t size_class) WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<Slab> return_slot(Slot slot) WEIR_REQUIRES(mutex_);
  /// The point of now, or one that is still to be recorded.
  [[nodiscard]] Point try_record(StreamId stream);
  [[nodiscard]] bool all_reached(std::span<const Point> uses);
  [[nodiscard]] Slot add_slab(std::unique_ptr<Slab> slab) WEIR_REQUIRES(mutex_);
  void free_slab(const Slab& slab) noexcept;
  /// Its caller has counted them in `giving_back_` when they left `slabs_`.
  void give_back(std::span<const std::unique_ptr<Slab>> slabs) noexcept;
  [[nodiscard]] bool give_back_empty_slabs();
  [[nodiscard]] bool await_given_back(std::uint64_t looked);
  void poll();

  Pool& pool_;
  Progress& progress_;
  Mutex mutex_{LockRank::kSlab};
  std::unordered_map<Slab*, std::unique_ptr<Slab>> slabs_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<StreamId, WithRoom> with_room_ WEIR_GUARDED_BY(mutex_);
  /// Until their uses are passed: a slot is always here or in its slab, so no thread misses one.
  std::vector<Awaiting> awaiting_ WEIR_GUARDED_BY(mutex_);
  std::size_t slots_out_ WEIR_GUARDED_BY(mutex_) =
      0;  ///< in use, or awaiting; there is room for all
  std::uint64_t serials_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t giving_back_ WEIR_GUARDED_BY(mutex_) = 0;  ///< slabs on their way to the pool
  std::atomic<std::uint64_t> given_back_ = 0;              ///< written under the lock
  std::condition_variable_any changed_;                    ///< given_back_ grew
};

}  // namespace weir
