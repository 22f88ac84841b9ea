#pragma once

// Where a pool keeps its blocks: by address, and the free ones by who may have them. A data
// structure only: it takes no lock, asks no device and no upstream. It knows how far each stream
// has come from what `note_passed` told it, so it may be late and is never early.
//
// Free blocks are in one of two places:
//   awaiting  in the list of the one stream whose point they wait for now; no stream may have them
//   cached    in the list of their size and home stream, ordered by the point of their free, and in
//             the list of all cached blocks, ordered by age

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/block_table.hpp"
#include "allocator/bytes.hpp"
#include "allocator/progress.hpp"

namespace weir {

/// What the upstream is given back.
struct Segment {
  void* pointer = nullptr;
  Bytes size;
};

/// What is known of a stream and waits for it.
struct StreamBook {
  std::uint64_t passed = 0;
  std::uint64_t last = 0;  ///< highest recorded sequence that a block carries
  BlockList<&Block::by_stream> awaiting;
};

/// The cached blocks of one size and home stream.
struct CachedList {
  StreamId home;
  StreamBook* book;  ///< of home
  BlockList<&Block::by_stream> blocks;

  [[nodiscard]] bool passed(const Block& block) const {
    return block.home_sequence <= book->passed;
  }
};

class BlockIndex {
 public:
  /// With `awaits_home`, a freed block also awaits its home stream's point: nobody reuses it, it
  /// goes back to the upstream (unpooled).
  explicit BlockIndex(bool awaits_home) : awaits_home_(awaits_home) {}

  Block& add(void* pointer, Bytes size);
  /// A block that is handed out, and so in no list, leaves the index for good.
  void remove_allocated(Block& block) { remove(block); }
  [[nodiscard]] Block* find(const void* pointer) const { return blocks_.find(pointer); }

  /// Makes room for all that freeing `block` will need, so that the free itself cannot fail.
  void prepare_free(Block& block);
  /// Sorts a freed block, whose points are set, into awaiting or cached; its state says which.
  void place_freed(Block& block);
  /// The device has passed `sequence` on `stream`. Returns the bytes of the blocks that became
  /// cached by it.
  Bytes note_passed(StreamId stream, std::uint64_t sequence);
  /// A point recorded late, for the blocks that are parked because recording it had failed, and
  /// were freed by `freed_by` in the pool's count of events: others may be used by later work.
  /// Returns the bytes of the blocks that became cached by it.
  Bytes note_recorded(Point point, std::uint64_t freed_by);

  // Each takes the block out of the cached lists, or returns null.
  [[nodiscard]] Block* take_own(Bytes size, StreamId stream);
  [[nodiscard]] Block* take_passed(Bytes size);
  [[nodiscard]] Block* take_unpassed(Bytes size);  ///< the one freed first

  /// Takes cached blocks that the device is done with, least recently freed first, until they sum
  /// to `need`; what there is, if that is less. Appends to `taken`, returns their sum. They leave
  /// the index altogether: once the upstream has one back, its address can be that of a new block.
  Bytes take_releasable(Bytes need, std::vector<Segment>& taken);
  [[nodiscard]] Bytes releasable() const;

  /// The point to wait for that lets the block freed longest ago, of those that await one, go on.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  /// The same of all free blocks, cached ones whose point is not passed included.
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Streams that have points not known to be passed; and those that have points to be recorded.
  void pending_streams(std::vector<StreamId>& pending, std::vector<StreamId>& unrecorded) const;

  [[nodiscard]] Bytes largest_cached() const;
  /// Calls `visit(const Block&)` for every block.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    blocks_.for_each(visit);
  }

 private:
  struct Bucket {
    /// One per home stream that ever freed a block of this size. Blocks point to theirs.
    std::vector<std::unique_ptr<CachedList>> lists;
    std::uint64_t blocks = 0;  ///< of this size in the index, free or not
  };

  [[nodiscard]] std::optional<Point> blocking_point(const Block& block) const;
  [[nodiscard]] bool is_passed(Point point) const;
  void place_cached(Block& block);
  Block* take(Block& block);
  [[nodiscard]] std::span<const std::unique_ptr<CachedList>> lists_of(Bytes size) const;
  [[nodiscard]] CachedList& list_for(Bytes size, StreamId home);
  void remove(Block& block);  ///< the block is in no list
  static std::uint64_t sequence_on(const Block& block, StreamId stream);

  const bool awaits_home_;
  BlockTable blocks_;
  std::unordered_map<StreamId, StreamBook> streams_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;  ///< by block size
  BlockList<&Block::by_age> cached_by_age_;
};

}  // namespace weir
