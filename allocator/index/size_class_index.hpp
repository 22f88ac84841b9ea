#pragma once

// The blocks of the pools that never split one: unpooled, naive, round. Each block is a segment of
// its own. The cached ones are in a list of their size and, until the device has passed the point
// of their free, of their home stream. Common ones are also in the tree of what can go back, by
// age.

#include <unordered_map>

#include "allocator/index/block_index.hpp"

namespace weir {

class SizeClassIndex final : public BlockIndex {
 public:
  /// What happens to freed blocks.
  enum class Reuse {
    kAll,   ///< cached, and taken again
    kNone,  ///< kept until the device has passed their home stream's point, too; never taken again
  };
  explicit SizeClassIndex(Reuse reuse) : reuse_(reuse) {}

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  [[nodiscard]] Block* take_own(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_passed(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed(Bytes size) override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;
  [[nodiscard]] Bytes largest_cached() const override;

 private:
  struct Bucket;
  /// The cached blocks of one size that one stream may have, or all.
  struct CachedList : FreeOwner {
    BlockList<&Block::by_stream> cached;
    Bucket* bucket = nullptr;  ///< that it is in
  };
  struct Bucket {
    CachedList common;
    /// Of streams that freed a block of this size, those that no block names forgotten as new ones
    /// come. The states of their streams may be gone while no block names them.
    std::unordered_map<StreamId, CachedList> own;
    CachedList* last = nullptr;  ///< of `own`, looked for last
    std::size_t forget_at = kIdleStreams;
    std::uint64_t blocks = 0;  ///< of this size in the index, free or not
  };

  void set_owner(Block& block, StreamId stream) override;
  void place_cached(Block& block) noexcept override;
  void make_common(Block& block) override;
  void remove_releasable(Block& block) override;
  [[nodiscard]] bool awaits_home() const noexcept override { return reuse_ == Reuse::kNone; }

  [[nodiscard]] static CachedList& list_of(const Block& block) {
    return static_cast<CachedList&>(*block.owner);
  }
  [[nodiscard]] bool is_common(const Block& block) const { return block.owner->state == &nobody_; }
  /// The list of `stream`; null where there is none.
  [[nodiscard]] static CachedList* find_own(Bucket& bucket, StreamId stream);
  static void forget_idle_lists(Bucket& bucket) noexcept;
  void insert_common(Block& block, CachedList& common);
  Block* take(Block& block);
  [[nodiscard]] Bucket* find_bucket(Bytes size);
  void remove(Block& block);  ///< the block is in no list

  const Reuse reuse_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;  ///< by block size
};

}  // namespace weir
