// What a slab can still give back when the pool has run out.

#include "allocator/base/no_cancel.hpp"
#include "allocator/slab.hpp"

namespace weir {

bool Slab::give_back_empty_chunks() {
  std::vector<std::unique_ptr<Chunk>> empties;
  {
    const Lock lock(mutex_);
    empties.reserve(chunks_.size());  // so that nothing can fail half way
    for (auto& [stream, classes] : with_room_) {
      for (std::vector<Chunk*>& with_room : classes) {
        std::erase_if(with_room, [&](Chunk* chunk) WEIR_REQUIRES(mutex_) {
          if (chunk->free_slots.size() < chunk->slots) return false;
          const auto owned = chunks_.find(chunk);
          empties.push_back(std::move(owned->second));
          chunks_.erase(owned);
          return true;
        });
      }
    }
    giving_back_ += empties.size();
  }
  give_back(empties);
  return !empties.empty();
}

bool Slab::await_given_back(std::uint64_t looked) {
  const NoCancel no_cancel;
  Lock lock(mutex_);
  // A chunk on its way is a free of the pool's, which waits for nothing.
  while (giving_back_ != 0 && given_back() == looked) changed_.wait(lock);
  return given_back() != looked;
}

bool Slab::reclaim(bool may_wait, std::uint64_t looked, const std::stop_token& stop) {
  poll();
  if (give_back_empty_chunks()) return true;
  if (await_given_back(looked)) return true;
  if (!may_wait) return false;
  std::vector<Point> recorded;
  {
    const Lock lock(mutex_);
    for (const Awaiting& slot : awaiting_) {
      for (const Point use : slot.uses()) {
        if (use.sequence != Block::kUnrecorded) recorded.push_back(use);
      }
    }
  }
  for (const Point point : recorded) {
    // A slot can await one point when another of its points is passed: waiting for that one would
    // return at once, and so would the next call.
    if (!progress_.reached(point)) return progress_.wait(point, stop);
  }
  poll();
  return give_back_empty_chunks() || await_given_back(looked);
}

}  // namespace weir
