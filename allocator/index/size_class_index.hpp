#pragma once

// The blocks of pools that never split: unpooled, naive, round. Each block is a segment. A cached
// one is in the list of its size and, until its point is passed, of its home stream. Common ones
// are also in the tree of releasable ones.

#include <unordered_map>

#include "allocator/index/block_index.hpp"

namespace weir {

class SizeClassIndex final : public BlockIndex {
 public:
  enum class Reuse {
    kAll,   ///< cached and reused
    kNone,  ///< never reused; kept until the home stream's point is passed, too
  };
  explicit SizeClassIndex(Reuse reuse) : reuse_(reuse) {}

  [[nodiscard]] Bytes segment_size(Bytes size, Bytes /*room*/) const override { return size; }
  [[nodiscard]] Block& add(Segment segment, Bytes size) override;
  [[nodiscard]] bool remove_allocated(Block& block) override;
  [[nodiscard]] Block* take_own(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_passed(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed(Bytes size) override;
  [[nodiscard]] const Block* find_unpassed(Bytes size) const override;
  void for_each_segment(const std::function<void(Segment)>& visit) const override;
  [[nodiscard]] Bytes largest_cached() const override;

 private:
  struct Bucket;
  /// Cached blocks of one size, of a stream or common.
  struct CachedList : FreeOwner {
    BlockList<&Block::by_stream> cached;
    Bucket* bucket = nullptr;
  };
  struct Bucket {
    CachedList common;
    /// Streams that freed this size. Lists of no block are forgotten as new ones come; their
    /// streams' states may be gone.
    std::unordered_map<StreamId, CachedList> own;
    CachedList* last = nullptr;  ///< last found in `own`
    std::size_t forget_at = kIdleStreams;
    std::uint64_t blocks = 0;  ///< of this size, free or not
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
  /// Null if there is none.
  [[nodiscard]] static CachedList* find_own(Bucket& bucket, StreamId stream);
  static void forget_idle_lists(Bucket& bucket) noexcept;
  void insert_common(Block& block, CachedList& common);
  Block* take(Block& block);
  [[nodiscard]] Bucket* find_bucket(Bytes size);
  [[nodiscard]] static Block* oldest_unpassed(const Bucket& bucket);
  void remove(Block& block);  ///< must be in no list

  const Reuse reuse_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;  ///< by block size
};

}  // namespace weir
