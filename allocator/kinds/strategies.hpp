#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "allocator/index/paged/page_places.hpp"
#include "allocator/index/paged/paged_index.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {

/// `naive`, `round`, `best_fit`: segments from the upstream, sized by the index.
class SegmentStrategy : public PoolStrategy {
 public:
  SegmentStrategy(PoolState& state, std::unique_ptr<BlockIndex> index)
      : PoolStrategy(state), index_(std::move(index)) {
    state.index = index_.get();
  }

  [[nodiscard]] Block* grow(Attempt& request) override;
  /// Releases only what the request needs, least recently used first.
  [[nodiscard]] Block* make_room(Attempt& request) override;
  [[nodiscard]] StageReport room_found(const Attempt& request) const override;
  [[nodiscard]] Bytes releasable() const override;
  Bytes trim(Bytes keep, bool may_release) override;
  void release_all() override;

 private:
  /// Takes segments as the index's `take_releasable` does. Pass them to `release`.
  Bytes take_releasable(Bytes need, std::vector<Segment>& taken) WEIR_REQUIRES(state_.mutex);
  /// Returns segments of `take_releasable` to the upstream. They stay reserved until then.
  void release(std::vector<Segment>& segments);
  /// The caller has claimed the room.
  [[nodiscard]] Block* grow_claimed(Attempt& request, Bytes segment);

  const std::unique_ptr<BlockIndex> index_ WEIR_PT_GUARDED_BY(state_.mutex);
};

/// `unpooled`: returns memory once the device has passed its free.
class UnpooledStrategy final : public SegmentStrategy {
 public:
  using SegmentStrategy::SegmentStrategy;

  [[nodiscard]] Block* grow(Attempt& request) override {
    trim({}, request.may_release);
    return SegmentStrategy::grow(request);
  }
  [[nodiscard]] Block* make_room(Attempt& request) override {
    trim({}, request.may_release);
    return SegmentStrategy::make_room(request);
  }
  void after_free() override {
    try {
      trim({}, false);
    } catch (const std::bad_alloc&) {
      // The block is freed; the next call returns its memory.
    }
  }
};

/// `paged`: pages behind reserved addresses. Pages move to where the request fits, from under free
/// pieces or, within the budget, from the source.
class PageStrategy final : public PoolStrategy {
 public:
  /// `source`: the upstream's.
  PageStrategy(PoolState& state, PageSource& source);

  [[nodiscard]] Block* grow(Attempt& request) override;
  /// Returns null: `grow` moved all pages that it could.
  [[nodiscard]] Block* make_room(Attempt& /*request*/) override { return nullptr; }
  [[nodiscard]] StageReport room_found(const Attempt& request) const override;
  [[nodiscard]] Bytes releasable() const override;
  Bytes trim(Bytes keep, bool may_release) override;
  void release_all() override;

 private:
  /// Reserves addresses for a block; false if there are none.
  [[nodiscard]] bool add_region(Bytes block);
  [[nodiscard]] Block* move_pages(Attempt& request, PageMove& move);

  PageSource& source_;
  PagedIndex paged_ WEIR_GUARDED_BY(state_.mutex);
};

}  // namespace weir
