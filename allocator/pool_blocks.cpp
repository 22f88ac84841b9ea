// Lists a pool's memory, for snapshots.

#include <algorithm>
#include <optional>
#include <vector>

#include "allocator/pool.hpp"

namespace weir {
namespace {

std::optional<PoolBlock::State> state_of(const Block& block) {
  switch (block.state) {
    case BlockState::kAllocated:
      return PoolBlock::State::kAllocated;
    case BlockState::kFreeing:
    case BlockState::kAwaiting:
      return PoolBlock::State::kAwaiting;
    case BlockState::kCached:
      return PoolBlock::State::kCached;
    case BlockState::kMoving:
    case BlockState::kVoid:
    case BlockState::kStale:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PoolBlock> Pool::blocks() const {
  std::vector<PoolBlock> all;
  {
    const Lock lock(state_.mutex);
    all.reserve(state_.index->blocks());
    state_.index->for_each([&](const Block& block) {
      const auto state = state_of(block);
      if (!state) return;
      const bool held = *state == PoolBlock::State::kAllocated;
      all.push_back({.begin = block.begin(),
                     .size = block.size,
                     .requested = held ? block.requested : Bytes{},
                     .home = block.home,
                     .state = *state,
                     .begins_segment = block.neighbours.previous == nullptr});
    });
  }
  std::ranges::sort(all, {}, &PoolBlock::begin);
  // A gap ends a segment too: addresses without pages.
  std::uintptr_t end = 0;
  for (PoolBlock& block : all) {
    block.begins_segment = block.begins_segment || block.begin != end;
    end = block.begin + block.size.count;
  }
  return all;
}

}  // namespace weir
