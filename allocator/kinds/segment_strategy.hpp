#pragma once

#include <memory>
#include <utility>
#include <vector>

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
  Bytes trim(Bytes keep) override;
  void give_back_all() override;

 private:
  /// Takes segments as the index's `take_releasable` does. Pass them to `release`.
  Bytes take_releasable(Bytes need, std::vector<Segment>& taken) WEIR_REQUIRES(state_.mutex);
  /// Returns segments of `take_releasable` to the upstream. They stay reserved until then.
  void release(std::vector<Segment>& segments);
  /// The caller has claimed the room.
  [[nodiscard]] Block* grow_claimed(Attempt& request, Bytes segment);

  const std::unique_ptr<BlockIndex> index_ WEIR_PT_GUARDED_BY(state_.mutex);
};

}  // namespace weir
