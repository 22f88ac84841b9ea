#pragma once

// A pool's blocks: all by address, free ones by owner. A data structure only: takes no lock, calls
// no device or upstream. It knows a stream's progress from `note_passed`, possibly late, never
// early.
//
// A free block is in one of two places:
//   awaiting  in the list of the stream whose point it waits for; no stream may reuse it
//   cached    where the kind of pool keeps it: size_class_index.hpp has lists of equal blocks,
//             heap_index.hpp has pieces that are split and joined, paged_index.hpp maps pages.
//             If the device has passed its point it is common, for every stream; else its stream's
//
// A stream is known from its first free. Streams that nothing refers to are forgotten as new ones
// come, so memory and walks over streams are bounded by the streams in use.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"
#include "allocator/index/block_tree.hpp"
#include "allocator/index/free_owner.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// Memory from the upstream.
struct Segment {
  void* pointer = nullptr;
  Bytes size;
};

class BlockIndex {
 public:
  /// How many unused streams to keep in case they return; if more are in use, as many as those.
  static constexpr std::size_t kIdleStreams = 16;

  BlockIndex();
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;
  virtual ~BlockIndex() = default;

  [[nodiscard]] Block* find(const void* pointer) const { return blocks_.find(pointer); }
  /// Returns the block around `address`, or null. Costs a look-up for each Upstream::kAlignment
  /// bytes from the block's beginning, at most a walk over all blocks.
  [[nodiscard]] const Block* find_around(const void* address) const;
  /// Returns the segment size to request for a block of `size` with `room` left.
  [[nodiscard]] virtual Bytes segment_size(Bytes size, Bytes room) const = 0;
  /// Cached bytes to release before growing to `reserved`, with at most `most_held` ever held.
  [[nodiscard]] virtual Bytes unused_by(Bytes /*reserved*/, Bytes /*most_held*/) const {
    return {};
  }
  /// Adds a segment: its first `size` bytes as an allocated block, the rest as cached.
  [[nodiscard]] virtual Block& add(Segment segment, Bytes size) = 0;
  /// Removes an allocated block; false if it is only part of a segment.
  [[nodiscard]] virtual bool remove_allocated(Block& block) = 0;

  // hand_out and add_use allocate all host memory that the free needs: a free must not fail when
  // the heap is exhausted. They may fail, and then change nothing.
  /// Assigns a taken or added block to `stream`.
  void hand_out(Block& block, StreamId stream);
  /// Notes another user of an allocated block. Idempotent.
  void add_use(Block& block, StreamId stream);
  /// Call before recording the points of a free.
  virtual void expect_free(const Block& /*block*/) const noexcept {}
  /// Makes a freed block with its points awaiting or cached, and returns which. If cached, it may
  /// now be part of another.
  BlockState place_freed(Block& block) noexcept;
  /// Caches a taken or added block that is not handed out.
  void put_back(Block& block) noexcept { place_cached(block); }
  /// The device has passed `sequence`. Returns how many bytes became cached.
  Bytes note_passed(StreamId stream, std::uint64_t sequence);
  /// Sets a point recorded late in the parked blocks freed up to event `freed_by`: work after the
  /// point may use those freed later. Returns how many bytes became cached.
  Bytes note_recorded(Point point, std::uint64_t freed_by);

  // Take a block of `size` out of the cache, or return null.
  /// One that `stream` may reuse at once.
  [[nodiscard]] virtual Block* take_own(Bytes size, StreamId stream) = 0;
  /// One whose point the device has passed.
  [[nodiscard]] virtual Block* take_passed(Bytes size, StreamId stream) = 0;
  /// One whatever its point: the least recently freed or, of pieces, the oldest of all streams'
  /// best fits.
  [[nodiscard]] virtual Block* take_unpassed(Bytes size) = 0;
  /// Returns the block that take_unpassed would take, or cut; null if there is none, or if it would
  /// begin a run of small ones.
  [[nodiscard]] virtual const Block* find_unpassed(Bytes size) const = 0;

  /// Takes passed cached segments, least recently freed first, until they sum to `need` or none is
  /// left. Appends them to `taken`, returns the sum. They leave the index: once the upstream has
  /// one back, a new block may have its address.
  virtual Bytes take_releasable(Bytes need, std::vector<Segment>& taken);
  [[nodiscard]] virtual Bytes releasable() const { return releasable_; }
  /// Visits every segment. Call it last.
  virtual void for_each_segment(const std::function<void(Segment)>& visit) const = 0;

  /// The point of the least recently freed awaiting block.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  /// The same for all free blocks, cached but unpassed ones too.
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Returns how much is cached for other streams than `but` alone: the device has not passed it.
  [[nodiscard]] Bytes queued_on_others(StreamId but) const noexcept;
  /// Returns a point at which blocks that were freed before `block` come free, `need` bytes
  /// together and sooner than `block`. Looks at up to kLookedAt blocks of each of a few streams.
  static constexpr std::size_t kLookedAt = 64;
  [[nodiscard]] std::optional<Point> enough_before(const Block& block, Bytes need) const;
  /// Appends up to `most` streams: to `pending` those with points not known to be passed, to
  /// `unrecorded` those with points to record. Streams take turns.
  void pending_streams(std::size_t most, std::vector<StreamId>& pending,
                       std::vector<StreamId>& unrecorded);
  /// Returns how many such streams there are. May be called without the lock.
  [[nodiscard]] std::size_t pending_streams() const noexcept { return pending_.size(); }

  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }
  /// Returns how many blocks and other pieces there are.
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_.size(); }
  [[nodiscard]] virtual Bytes largest_cached() const = 0;
  /// Calls `visit(const Block&)` for every block and other piece.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    blocks_.for_each(visit);
  }

 protected:
  /// Gives another owner's block to `stream`. May fail, and then changes nothing.
  virtual void set_owner(Block& block, StreamId stream) = 0;
  virtual void place_cached(Block& block) noexcept = 0;
  /// Whether a freed block awaits its home stream's point too, and then returns to the upstream.
  [[nodiscard]] virtual bool awaits_home() const noexcept { return false; }
  /// Makes common the first of `state.unpassed`, whose point the device has passed.
  virtual void make_common(Block& block) = 0;
  /// Called after `state.passed` grew and passed blocks became common.
  virtual void passed_more(StreamId /*stream*/) {}
  /// Removes a cached block whose segment can be released.
  virtual void remove_releasable(Block& /*block*/) {}
  virtual void forget(StreamId /*stream*/) noexcept {}
  /// Call as a common block with a releasable part enters or leaves.
  void add_releasable(Block& block, Bytes part) noexcept;
  void subtract_releasable(Block& block, Bytes part) noexcept;
  /// Clears the block's other streams.
  void drop_points(Block& block) noexcept;
  /// The same, and keeps their memory for another block: joining may end this one.
  void keep_points(Block& block) noexcept;
  [[nodiscard]] StreamState& state_of(StreamId stream) {
    StreamState& state = streams_[stream];
    state.stream = stream;
    return state;
  }

  BlockTable blocks_;
  AgeTree releasable_blocks_;  ///< common blocks with a releasable part
  Bytes releasable_;           ///< sum of those parts
  StreamState nobody_;         ///< of common owners

 private:
  [[nodiscard]] std::optional<Point> blocking_point(const Block& block) const;
  [[nodiscard]] bool is_passed(Point point) const;
  /// Updates `state.pending` after a change of points or waiting blocks.
  void note_points(StreamState& state) noexcept;
  [[nodiscard]] std::unique_ptr<std::vector<Point>> take_points();
  void forget_idle_streams() noexcept;

  std::unordered_map<StreamId, StreamState> streams_;
  PendingStreams pending_;
  std::size_t forget_at_ = kIdleStreams;  ///< more streams trigger forgetting
  /// Has room for all ever created: keeping one cannot fail.
  std::vector<std::unique_ptr<std::vector<Point>>> spare_points_;
  std::size_t points_made_ = 0;
};

}  // namespace weir
