#pragma once

// The blocks of the pools that never split one: unpooled, naive, round. Each block is a segment of
// its own. The cached ones are in the list of their size and home stream, ordered by the point of
// their free, and in the list of all cached blocks, ordered by age.

#include <memory>
#include <span>

#include "allocator/block_index.hpp"

namespace weir {

class SizeClassIndex final : public BlockIndex {
 public:
  /// With `awaits_home`, a freed block awaits its home stream's point as well (unpooled).
  explicit SizeClassIndex(bool awaits_home) : awaits_home_(awaits_home) {}

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  [[nodiscard]] Block* take_own(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_passed(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed(Bytes size) override;
  Bytes take_releasable(Bytes need, std::vector<Segment>& taken) override;
  [[nodiscard]] Bytes releasable() const override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;
  [[nodiscard]] Bytes largest_cached() const override;

 private:
  /// The cached blocks of one size and home stream.
  struct CachedList : FreeOwner {
    BlockList<&Block::by_stream> blocks;
  };
  struct Bucket {
    /// One per home stream that ever freed a block of this size. Blocks point to theirs.
    std::vector<std::unique_ptr<CachedList>> lists;
    std::uint64_t blocks = 0;  ///< of this size in the index, free or not
  };

  void set_owner(Block& block) override;
  void place_cached(Block& block) override;
  [[nodiscard]] bool awaits_home() const noexcept override { return awaits_home_; }
  [[nodiscard]] const Block* oldest_unpassed() const override;

  [[nodiscard]] static CachedList& list_of(const Block& block) {
    return static_cast<CachedList&>(*block.owner);
  }
  Block* take(Block& block);
  [[nodiscard]] std::span<const std::unique_ptr<CachedList>> lists_of(Bytes size) const;
  [[nodiscard]] CachedList& list_for(Bytes size, StreamId home);
  void remove(Block& block);  ///< the block is in no list

  const bool awaits_home_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;  ///< by block size
  BlockList<&Block::by_age> cached_by_age_;
};

}  // namespace weir
