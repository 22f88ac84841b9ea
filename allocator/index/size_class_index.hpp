#pragma once

// The blocks of pools that never split: unpooled, naive, round. Each block is a segment. A cached
// one is in the list of its size and, until its point is passed, of its home stream. Common ones
// are also in the tree of releasable ones.

#include <bit>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block_index.hpp"

namespace weir {

// Block sizes for requests, by kind of pool. Pure functions. Formulas, defaults and ranges of
// `naive` and `round` are those of MXNet's GPU pools (src/storage/pooled_storage_manager.h,
// RoundHelper and bucketing strategies).

/// Rounds `size` up to a multiple of `unit` (> 0); nullopt beyond 2^63.
[[nodiscard]] constexpr std::optional<Bytes> round_up(Bytes size, Bytes unit) noexcept {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63U;
  if (size.count > kLimit || unit.count > kLimit) return std::nullopt;
  const std::uint64_t rounded = (size.count + unit.count - 1) / unit.count * unit.count;
  if (rounded > kLimit) return std::nullopt;
  return Bytes{rounded};
}

/// `naive`: rounds up to `page`; a result over `large`, up to `large`.
[[nodiscard]] constexpr std::optional<Bytes> naive_block(Bytes size, Bytes page,
                                                         Bytes large) noexcept {
  const auto paged = round_up(size, page);
  return paged && *paged > large ? round_up(*paged, large) : paged;
}

/// `round`: a power of two from `page` (a power of two) to 2^cutoff, above it a multiple of
/// 2^cutoff. Without a table, no request is too large.
[[nodiscard]] constexpr std::optional<Bytes> round_block(Bytes size, Bytes page,
                                                         unsigned cutoff) noexcept {
  const Bytes linear{std::uint64_t{1} << cutoff};
  if (size > linear) return round_up(size, linear);
  return size < page ? page : Bytes{std::bit_ceil(size.count)};
}

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
