#pragma once

// The blocks of `best_fit`: pieces of segments, split for a request and joined again with their
// free neighbours. Free pieces are in bins by size (free_bins.hpp), one set for each stream, for
// those that it freed and whose point is not known to be passed, and one set for all, with those
// that the device is known to be done with. Requests up to kSmall have segments of their own, so
// that what lives long and is small does not cut up what is large.
//
// No two neighbours in the same bins are free and not joined, unless a run of small ones begins
// between them (segment_index.hpp).

#include <array>
#include <memory>
#include <unordered_map>

#include "allocator/index/block_index.hpp"
#include "allocator/index/free_bins.hpp"

namespace weir {

class HeapIndex : public BlockIndex {
 public:
  static constexpr Bytes kSmall = mib(1);

  /// Requests up to `small` are kept apart from larger ones.
  explicit HeapIndex(Bytes small = kSmall);

  [[nodiscard]] Block* take_own(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_passed(Bytes size, StreamId stream) override;
  [[nodiscard]] Block* take_unpassed(Bytes size) override;
  [[nodiscard]] Bytes largest_cached() const override;
  void expect_free(const Block& block) const noexcept override;

 protected:
  enum Area : std::uint8_t { kSmallArea, kLargeArea };
  static constexpr std::size_t kAreas = 2;
  static constexpr std::size_t kJoined = 256;
  /// A stream's free pieces of one area.
  struct Owner : FreeOwner {
    Area area = kSmallArea;
    std::uint64_t touching = 0;  ///< pieces that are marked with may_touch
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
  /// The piece of these bins to cut a block of `size` from; null if none fits.
  [[nodiscard]] virtual Block* pick(const FreeBins& bins, Bytes size) const {
    return bins.best(size);
  }
  /// The smaller one of those picked from what `stream` may have at once; null if none fits.
  [[nodiscard]] Block* best(Bytes size, StreamId stream, Area area) const;
  /// Of the best of each stream's pieces whose points are not passed the one freed first; null if
  /// none fits.
  [[nodiscard]] Block* oldest_unpassed(Bytes size, Area area) const;
  /// Up to so many streams have room for all their pieces beforehand, so that a program that is
  /// warm takes no memory of the host. Of more each takes its own as it needs it: room costs 45 kB.
  static constexpr std::size_t kFewStreams = 16;
  /// Makes room in the bins of `area` for pieces of `largest`: in the common ones, and in those of
  /// streams where there are few.
  void reserve_bins(Area area, Bytes largest);

  void insert(Block& piece) noexcept;  ///< into the bins of its owner
  void take_out(Block& piece) noexcept;
  /// What could go back from under a common piece: nothing unless it is large, or all of something.
  [[nodiscard]] virtual Bytes releasable_of(const Block& piece) const noexcept = 0;
  /// Cuts a piece that is in no list: it keeps its first `size` bytes, the rest is what it was and
  /// is returned. May fail, and has changed nothing then.
  Block& split(Block& piece, Bytes size);
  /// `size` bytes of a cached piece, taken out; the rest stays cached. May fail, and has changed
  /// nothing then.
  Block* take_part(Block& piece, Bytes size);
  [[nodiscard]] bool can_join(const Block& a, const Block& b) const;
  /// `next`, right behind `piece`, becomes a part of it. Both are in no list.
  void absorb_next(Block& piece, Block& next) noexcept;
  /// Joins a piece that is in no list with its neighbours, as far as may be, and inserts it.
  void place_piece(Block& piece);

  /// Whether a block of `size` is to be the last bytes of `piece`, and not the first.
  [[nodiscard]] virtual bool cuts_at_end(const Block& /*piece*/, Bytes /*size*/) const {
    return false;
  }
  /// Cuts a block from something else, where its area has nothing that fits; null where there is
  /// none.
  [[nodiscard]] virtual Block* take_elsewhere(Bytes /*size*/, StreamId /*stream*/) {
    return nullptr;
  }
  /// The same of pieces whose points are not passed.
  [[nodiscard]] virtual Block* take_unpassed_elsewhere(Bytes /*size*/) { return nullptr; }
  /// Whether a free piece, all of it, is to be the other area's from now on.
  [[nodiscard]] virtual bool changes_area(const Block& /*piece*/) const { return false; }
  /// The same piece, which is in no list, in the other area.
  void change_area(Block& piece);
  /// Joins what only `stream` may have with what all may, where they touch; whether any did. Then
  /// it is the stream's alone, until the device has passed the point. Looks at the stream's largest
  /// pieces, no more than kJoined.
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
  /// Marks those of the piece and its neighbours that are a stream's alone and touch a common one.
  void mark_touching(Block& piece) noexcept;

  const Bytes small_;
  std::array<Bytes, kAreas> largest_{};
  bool ever_several_ = false;  ///< there was more than one stream at a time
};

}  // namespace weir
