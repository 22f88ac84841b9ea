#pragma once

#include "allocator/index/paged/page_move.hpp"
#include "allocator/index/paged/paged_index.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {

/// Memory in pages behind reserved addresses: `paged`. Pages move to where a request fits, from
/// under what is free or, within the budget, from the source.
class PageStrategy final : public PoolStrategy {
 public:
  /// `source` is the upstream's.
  PageStrategy(PoolState& state, PageSource& source);

  [[nodiscard]] Block* grow(Attempt& request) override;
  /// Null: growth took what can be had, since pages move.
  [[nodiscard]] Block* make_room(Attempt& /*request*/) override { return nullptr; }
  [[nodiscard]] StageReport room_found(const Attempt& request) const override;
  Bytes trim(Bytes keep) override;
  void give_back_all() override;

 private:
  /// Reserves addresses that a block of `block` bytes fits in; false where there are none.
  [[nodiscard]] bool add_region(Bytes block);
  [[nodiscard]] Block* move_pages(Attempt& request, PageMove& move);

  PageSource& source_;
  PagedIndex paged_ WEIR_GUARDED_BY(state_.mutex);  ///< the index
};

}  // namespace weir
