#pragma once

// Where a pool keeps its blocks: by address, and the free ones by who may have them. A data
// structure only: it takes no lock, asks no device and no upstream. It knows how far each stream
// has come from what `note_passed` told it, so it may be late and is never early.
//
// Free blocks are in one of two places:
//   awaiting  in the list of the one stream whose point they wait for now; no stream may have them
//   cached    where the kind of pool keeps them: size_class_index.hpp has lists of equal blocks,
//             heap_index.hpp pieces that are split and joined, paged_index.hpp puts pages behind
//             them. Those whose point is passed are common, everybody's; the others their stream's
//
// Streams are known from the first free on them. Those that nothing names any more are forgotten as
// new ones come: so what is kept, and every walk over streams, is bounded by those in use.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/index/age_tree.hpp"
#include "allocator/index/block.hpp"
#include "allocator/index/block_table.hpp"
#include "allocator/index/free_owner.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// What the upstream gave, and is given back.
struct Segment {
  void* pointer = nullptr;
  Bytes size;
};

class BlockIndex {
 public:
  /// So many streams are kept though nothing names them, so that one that comes back finds itself;
  /// or as many as are in use, where that is more.
  static constexpr std::size_t kIdleStreams = 16;

  BlockIndex();
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;
  virtual ~BlockIndex() = default;

  [[nodiscard]] Block* find(const void* pointer) const { return blocks_.find(pointer); }
  /// The block that `address` lies in; null when it is in none. Takes a look-up for each
  /// Upstream::kAlignment bytes from the block's beginning on, or one look at every block where
  /// that is less.
  [[nodiscard]] const Block* find_around(const void* address) const;
  /// The segment to ask of the upstream for a block of `size` where there is room for `room`.
  [[nodiscard]] virtual Bytes segment_size(Bytes size, Bytes room) const = 0;
  /// How much cached memory had better go back before the pool grows to `reserved` bytes, where it
  /// never held more than `most_held`.
  [[nodiscard]] virtual Bytes unused_by(Bytes /*reserved*/, Bytes /*most_held*/) const {
    return {};
  }
  /// A new segment. Its first `size` bytes are a block that is handed out, the rest is cached.
  [[nodiscard]] virtual Block& add(Segment segment, Bytes size) = 0;
  /// A block that is handed out leaves the index for good, unless it is only a part of a segment:
  /// false.
  [[nodiscard]] virtual bool remove_allocated(Block& block) = 0;

  // hand_out and add_use take all host memory that the block's free will need. They may fail, and
  // have changed nothing then. The free itself cannot fail: a program whose heap is used up still
  // gets its memory back.
  /// A block that was taken out of what is cached, or added, is `stream`'s from now on.
  void hand_out(Block& block, StreamId stream);
  /// Notes that `stream` uses a block that is handed out, too; nothing when that is known.
  void add_use(Block& block, StreamId stream);
  /// A block is about to be freed: its points are recorded next.
  virtual void expect_free(const Block& /*block*/) const noexcept {}
  /// Sorts a freed block, whose points are set, into awaiting or cached, and says which. One that
  /// is cached may be a part of another from then on.
  BlockState place_freed(Block& block) noexcept;
  /// A block that is not handed out after all, though it was taken out of what is cached, or added,
  /// is cached again.
  void put_back(Block& block) noexcept { place_cached(block); }
  /// The device has passed `sequence` on `stream`. Returns the bytes of the blocks that became
  /// cached by it.
  Bytes note_passed(StreamId stream, std::uint64_t sequence);
  /// A point recorded late, for the blocks that are parked because recording it had failed, and
  /// were freed by `freed_by` in the pool's count of events: others may be used by later work.
  /// Returns the bytes of the blocks that became cached by it.
  Bytes note_recorded(Point point, std::uint64_t freed_by);

  // Each takes a block of `size` out of what is cached, or returns null.
  /// One that `stream` may have at once, its own.
  [[nodiscard]] virtual Block* take_own(Bytes size, StreamId stream) = 0;
  /// One of any stream whose point is passed.
  [[nodiscard]] virtual Block* take_passed(Bytes size, StreamId stream) = 0;
  /// One of any stream, whatever its point: the one freed first, or, of pieces, the oldest of each
  /// stream's best fit.
  [[nodiscard]] virtual Block* take_unpassed(Bytes size) = 0;

  /// Takes cached segments that the device is done with, least recently freed first, until they sum
  /// to `need`; what there is, if that is less. Appends to `taken`, returns their sum. They leave
  /// the index altogether: once the upstream has one back, its address can be that of a new block.
  virtual Bytes take_releasable(Bytes need, std::vector<Segment>& taken);
  [[nodiscard]] virtual Bytes releasable() const { return releasable_; }
  /// Every segment, for the last time: the index is not used again.
  virtual void for_each_segment(const std::function<void(Segment)>& visit) const = 0;

  /// The point to wait for that lets the block freed longest ago, of those that await one, go on.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  /// The same of all free blocks, cached ones whose point is not passed included.
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Streams that have points not known to be passed; and those that have points to be recorded.
  /// `most` of them, who then have to wait until the others had their turn.
  void pending_streams(std::size_t most, std::vector<StreamId>& pending,
                       std::vector<StreamId>& unrecorded);
  /// How many there are.
  [[nodiscard]] std::size_t pending_streams() const noexcept { return pending_.size(); }

  /// How many streams are known.
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }
  [[nodiscard]] virtual Bytes largest_cached() const = 0;
  /// Calls `visit(const Block&)` for every block, and for what else lies between them.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    blocks_.for_each(visit);
  }

 protected:
  /// Gives a block to `stream`, which is not its owner; may fail, and has changed nothing then.
  virtual void set_owner(Block& block, StreamId stream) = 0;
  virtual void place_cached(Block& block) noexcept = 0;
  /// Whether a freed block also awaits its home stream's point: nobody reuses it then, it goes back
  /// to the upstream.
  [[nodiscard]] virtual bool awaits_home() const noexcept { return false; }
  /// The device has passed the point of a cached block, the first of `state.unpassed`: takes it out
  /// of there, since it is common from now on.
  virtual void make_common(Block& block) = 0;
  /// `state.passed` of the stream has grown, and what became common by it is common.
  virtual void passed_more(StreamId /*stream*/) {}
  /// Takes a block whose segment can go back out of what is cached, and ends it.
  virtual void remove_releasable(Block& /*block*/) {}
  /// Nothing names the stream any more.
  virtual void forget(StreamId /*stream*/) noexcept {}
  /// What can go back of a common block enters and leaves with it.
  void add_releasable(Block& block, Bytes part) noexcept;
  void subtract_releasable(Block& block, Bytes part) noexcept;
  /// The block was not used on other streams, or no longer waits for them.
  void drop_points(Block& block) noexcept;
  /// The same, and takes the memory for them from a block that is free and may end at any time,
  /// being joined: the next that is used on a second stream has it.
  void keep_points(Block& block) noexcept;
  [[nodiscard]] StreamState& state_of(StreamId stream) {
    StreamState& state = streams_[stream];
    state.stream = stream;
    return state;
  }

  BlockTable blocks_;
  AgeTree releasable_blocks_;  ///< the common ones that something could go back from under
  Bytes releasable_;           ///< the sum of that
  StreamState nobody_;         ///< of common owners

 private:
  [[nodiscard]] std::optional<Point> blocking_point(const Block& block) const;
  [[nodiscard]] bool is_passed(Point point) const;
  /// The state's points have changed, or what waits for them: whether it is pending.
  void note_points(StreamState& state) noexcept;
  [[nodiscard]] std::unique_ptr<std::vector<Point>> take_points();
  void forget_idle_streams() noexcept;

  std::unordered_map<StreamId, StreamState> streams_;
  PendingStreams pending_;
  std::size_t forget_at_ = kIdleStreams;  ///< how many streams are too many to keep all
  /// Those that no block has now; with room for all that were ever made, so that keeping one cannot
  /// fail.
  std::vector<std::unique_ptr<std::vector<Point>>> spare_points_;
  std::size_t points_made_ = 0;
};

}  // namespace weir
