#pragma once

// The blocks of `best_fit`: pieces of segments, split for a request and joined with free
// neighbours. Free pieces are in bins by size (free_bins.hpp): each stream has a set for frees not
// known to be passed, and a common set has the others. Requests up to kSmall have their own area:
// small, long-lived blocks must not fragment large ones.
//
// Free neighbours in the same bins are always joined, unless a run begins between them
// (segment_index.hpp).

#include <array>
#include <memory>
#include <unordered_map>

#include "allocator/index/block_index.hpp"
#include "allocator/index/free_bins.hpp"

namespace weir {

class HeapIndex : public BlockIndex {
 public:
  static constexpr Bytes kSmall = mib(1);

  /// Separates requests up to `small` from larger ones.
  explicit HeapIndex(Bytes small = kSmall);

  [[nodiscard]] Block* take_own(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_passed(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed(Bytes size) override;
  [[nodiscard]] const Block* find_unpassed(Bytes size) const override {
    return oldest_unpassed(size, area_of(size));
  }
  [[nodiscard]] Bytes largest_cached() const override;
  void expect_free(const Block& block) const noexcept override;

 protected:
  enum Area : std::uint8_t { kSmallArea, kLargeArea };
  static constexpr std::size_t kAreas = 2;
  static constexpr std::size_t kJoined = 256;
  /// A stream's free pieces of one area.
  struct Owner : FreeOwner {
    Area area = kSmallArea;
    std::uint64_t touching = 0;  ///< pieces marked may_touch
    FreeBins bins;
  };
  using Owners = std::array<Owner, kAreas>;

  [[nodiscard]] Area area_of(Bytes size) const { return size <= small_ ? kSmallArea : kLargeArea; }
  [[nodiscard]] static Owner& owner_of(const Block& piece) {
    return static_cast<Owner&>(*piece.owner);
  }
  [[nodiscard]] bool is_common(const Block& piece) const {
    return piece.owner == &common_[kSmallArea] || piece.owner == &common_[kLargeArea];
  }
  [[nodiscard]] static bool is_small(const Block& piece) {
    return owner_of(piece).area == kSmallArea;
  }
  [[nodiscard]] Owner* find_owner(StreamId stream, Area area) const;
  /// The piece to cut `size` from; null if none fits.
  [[nodiscard]] virtual Block* pick(const FreeBins& bins, Bytes size) const {
    return bins.best(size);
  }
  /// The smaller pick of the stream's own and the common bins; null if none fits.
  [[nodiscard]] Block* best(Bytes size, StreamId stream, Area area) const;
  /// The least recently freed of the streams' best unpassed pieces; null if none fits.
  [[nodiscard]] Block* oldest_unpassed(Bytes size, Area area) const;
  /// Up to so many streams get room for all pieces in advance: a warm program allocates no host
  /// memory. Further ones allocate on demand: room takes 45 kB.
  static constexpr std::size_t kFewStreams = 16;
  /// Makes room for pieces up to `largest`: in common bins and, if streams are few, in theirs.
  void reserve_bins(Area area, Bytes largest);

  void insert(Block& piece) noexcept;  ///< into its owner's bins
  void take_out(Block& piece) noexcept;
  /// Releasable bytes under a common piece; zero unless it is large or whole.
  [[nodiscard]] virtual Bytes releasable_of(const Block& piece) const noexcept = 0;
  /// Cuts a piece, in no list, to `size`. Returns the rest, in the same state. May fail, and then
  /// changes nothing.
  Block& split(Block& piece, Bytes size);
  /// Takes `size` bytes of a cached piece. May fail, and then changes nothing.
  Block* take_part(Block& piece, Bytes size);
  [[nodiscard]] bool can_join(const Block& a, const Block& b) const;
  /// Adds `next` to `piece` before it. Both are in no list.
  void absorb_next(Block& piece, Block& next) noexcept;
  /// Joins a piece, in no list, with its neighbours where allowed, and inserts it.
  void place_piece(Block& piece);

  /// Whether to cut the block from the end.
  [[nodiscard]] virtual bool cuts_at_end(const Block& /*piece*/, Bytes /*size*/) const {
    return false;
  }
  /// If nothing in the area fits; null if nothing else does.
  [[nodiscard]] virtual Block* take_elsewhere(Bytes /*size*/, StreamId /*stream*/) {
    return nullptr;
  }
  /// The same for unpassed pieces.
  [[nodiscard]] virtual Block* take_unpassed_elsewhere(Bytes /*size*/) { return nullptr; }
  /// Whether a whole free piece moves to the other area.
  [[nodiscard]] virtual bool changes_area(const Block& /*piece*/) const { return false; }
  /// The piece is in no list.
  void change_area(Block& piece);
  /// Joins the stream's pieces with common ones that they touch; returns whether any joined. They
  /// are the stream's until the device passes the point. Looks at its kJoined largest.
  bool join_own_with_common(StreamId stream, Area area);

  void set_owner(Block& block, StreamId stream) override;
  void place_cached(Block& block) noexcept override;
  void make_common(Block& piece) override;
  void forget(StreamId stream) noexcept override { owners_.erase(stream); }

  Owners common_;
  std::unordered_map<StreamId, std::unique_ptr<Owners>> owners_;

 private:
  void insert_into_bins(Block& piece) noexcept;
  void remove_from_bins(Block& piece) noexcept;
  [[nodiscard]] bool is_common_and_cached(const Block* piece) const {
    return piece != nullptr && piece->state == BlockState::kCached && is_common(*piece);
  }
  /// Marks a stream's own pieces that touch a common one, `piece` or its neighbours.
  void mark_touching(Block& piece) noexcept;

  const Bytes small_;
  std::array<Bytes, kAreas> largest_{};
  bool ever_several_ = false;  ///< there were several streams at a time
};

}  // namespace weir
