#pragma once

#include "allocator/index/paged/page_move.hpp"
#include "allocator/index/paged/paged_index.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {

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
  Bytes trim(Bytes keep) override;
  void give_back_all() override;

 private:
  /// Reserves addresses for a block; false if there are none.
  [[nodiscard]] bool add_region(Bytes block);
  [[nodiscard]] Block* move_pages(Attempt& request, PageMove& move);

  PageSource& source_;
  PagedIndex paged_ WEIR_GUARDED_BY(state_.mutex);
};

}  // namespace weir
