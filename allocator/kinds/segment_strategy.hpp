#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "allocator/pool_kind.hpp"

namespace weir {

/// Memory in segments of the upstream, as the index sizes them: `naive`, `round`, `best_fit`.
class SegmentStrategy : public PoolStrategy {
 public:
  SegmentStrategy(PoolState& state, std::unique_ptr<BlockIndex> index)
      : PoolStrategy(state), index_(std::move(index)) {
    state.index = index_.get();
  }

  [[nodiscard]] Block* grow(Attempt& request) override;
  /// Gives back what is least recently used, and no more than the request needs.
  [[nodiscard]] Block* make_room(Attempt& request) override;
  [[nodiscard]] StageReport room_found(const Attempt& request) const override;
  Bytes trim(Bytes keep) override;
  void give_back_all() override;

 private:
  /// Gives segments that left the index back to the upstream. They stay reserved until then.
  void release(std::vector<Segment>& segments);
  /// Asks the upstream. The caller has claimed the room.
  [[nodiscard]] Block* grow_claimed(Attempt& request, Bytes segment);

  const std::unique_ptr<BlockIndex> index_ WEIR_PT_GUARDED_BY(state_.mutex);
};

}  // namespace weir
