#include "allocator/slab.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "allocator/error.hpp"

namespace weir {

struct Slab::Chunk {
  std::byte* base = nullptr;
  StreamId stream;
  std::size_t size_class = 0;
  std::vector<std::uint16_t> free_slots;  ///< last freed, first taken
  std::size_t slots = 0;
};

Slab::Slab(Pool& pool, Progress& progress) : pool_(pool), progress_(progress) {}

Slab::~Slab() {
  Lock lock(mutex_);
  const auto chunks = std::move(chunks_);
  const auto awaiting = std::move(awaiting_);
  lock.unlock();
  for (const Awaiting& slot : awaiting) {
    for (std::size_t i = 0; i < slot.count; ++i) {
      pool_.record_use(slot.slot.chunk->base, slot.points.at(i).stream);
    }
  }
  for (const auto& [key, chunk] : chunks) give_back(chunk);
}

Slab::Slot Slab::take_slot(StreamId stream, std::size_t size_class) {
  std::vector<Chunk*>& with_room = with_room_[stream].at(size_class);
  if (with_room.empty()) return {};
  Chunk* chunk = with_room.back();
  const std::size_t index = chunk->free_slots.back();
  chunk->free_slots.pop_back();
  if (chunk->free_slots.empty()) with_room.pop_back();
  return {chunk->base + index * kSlotSizes.at(size_class), chunk};
}

Slab::Slot Slab::try_allocate(Bytes bytes, StreamId stream, Attempt& attempt, Bytes& grown) {
  grown = {};
  const auto fits = std::ranges::lower_bound(kSlotSizes, bytes.count);
  if (bytes.count == 0 || fits == kSlotSizes.end()) {
    throw UsageError("slab: a slot holds 1 to 1024 bytes, not " + std::to_string(bytes.count));
  }
  const auto size_class = static_cast<std::size_t>(fits - kSlotSizes.begin());
  Lock lock(mutex_);
  if (const Slot slot = take_slot(stream, size_class); slot.pointer != nullptr) return slot;
  lock.unlock();
  poll();
  lock.lock();
  if (const Slot slot = take_slot(stream, size_class); slot.pointer != nullptr) return slot;
  lock.unlock();

  void* base = pool_.try_allocate(kChunk, stream, "small tensors", attempt);
  if (base == nullptr) return {};
  grown = *pool_.block_size(kChunk);
  auto chunk = std::make_unique<Chunk>();
  chunk->base = static_cast<std::byte*>(base);
  chunk->stream = stream;
  chunk->size_class = size_class;
  chunk->slots = kChunk.count / kSlotSizes.at(size_class);
  for (std::size_t i = chunk->slots; i-- > 0;) {
    chunk->free_slots.push_back(static_cast<std::uint16_t>(i));
  }
  lock.lock();
  with_room_[stream].at(size_class).push_back(chunk.get());
  Chunk* key = chunk.get();
  chunks_[key] = std::move(chunk);
  return take_slot(stream, size_class);
}

std::unique_ptr<Slab::Chunk> Slab::return_slot(Slot slot) {
  Chunk& chunk = *slot.chunk;
  const std::size_t size = kSlotSizes.at(chunk.size_class);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(slot.pointer) - chunk.base);
  std::vector<Chunk*>& with_room = with_room_[chunk.stream].at(chunk.size_class);
  if (chunk.free_slots.empty()) with_room.push_back(&chunk);
  chunk.free_slots.push_back(static_cast<std::uint16_t>(offset / size));
  if (chunk.free_slots.size() < chunk.slots || with_room.size() < 2) return nullptr;
  std::erase(with_room, &chunk);
  const auto owned = chunks_.find(&chunk);
  std::unique_ptr<Chunk> empty = std::move(owned->second);
  chunks_.erase(owned);
  return empty;
}

void Slab::give_back(const std::unique_ptr<Chunk>& chunk) {
  if (chunk != nullptr) pool_.deallocate(chunk->base, chunk->stream);
}

void Slab::deallocate(Slot slot, std::span<const StreamId> others) {
  if (others.size() > kMostOtherStreams) throw UsageError("slab: too many streams used one slot");
  Awaiting awaiting{.slot = slot};
  for (const StreamId other : others) {
    // passed() records it; one that cannot be recorded now is tried again by poll().
    awaiting.points.at(awaiting.count++) = {other, Block::kUnrecorded};
  }
  const bool free_now = passed(awaiting);
  Lock lock(mutex_);
  std::unique_ptr<Chunk> empty;
  if (free_now) {
    empty = return_slot(slot);
  } else {
    awaiting_.push_back(awaiting);
  }
  lock.unlock();
  give_back(empty);
}

bool Slab::passed(Awaiting& awaiting) {
  // To the end also after a no: every point belongs to the free, and not to what is enqueued later.
  bool all = true;
  for (std::size_t i = 0; i < awaiting.count; ++i) {
    Point& point = awaiting.points.at(i);
    try {
      if (point.sequence == Block::kUnrecorded) point = progress_.record(point.stream);
      if (!progress_.reached(point)) all = false;
    } catch (...) {
      all = false;
    }
  }
  return all;
}

void Slab::poll() {
  thread_local std::vector<Awaiting> checking;
  thread_local std::vector<std::unique_ptr<Chunk>> empties;
  checking.clear();
  Lock lock(mutex_);
  checking.swap(awaiting_);
  lock.unlock();
  // Stable: what was freed first stays first.
  const auto done = std::stable_partition(checking.begin(), checking.end(),
                                          [this](Awaiting& slot) { return !passed(slot); });
  lock.lock();
  awaiting_.insert(awaiting_.end(), checking.begin(), done);
  for (auto slot = done; slot != checking.end(); ++slot) {
    if (auto empty = return_slot(slot->slot)) empties.push_back(std::move(empty));
  }
  lock.unlock();
  for (const auto& empty : empties) give_back(empty);
  empties.clear();
}

bool Slab::give_back_empty_chunks() {
  std::vector<std::unique_ptr<Chunk>> empties;
  Lock lock(mutex_);
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
  lock.unlock();
  for (const auto& empty : empties) give_back(empty);
  return !empties.empty();
}

bool Slab::reclaim(bool may_wait) {
  poll();
  if (give_back_empty_chunks()) return true;
  if (!may_wait) return false;
  std::vector<Point> recorded;
  {
    const Lock lock(mutex_);
    for (const Awaiting& slot : awaiting_) {
      for (std::size_t i = 0; i < slot.count; ++i) {
        const Point& point = slot.points.at(i);
        if (point.sequence != Block::kUnrecorded) recorded.push_back(point);
      }
    }
  }
  for (const Point point : recorded) {
    // A slot can await one point when another of its points is passed: waiting for that one would
    // return at once, and so would the next call.
    if (!progress_.reached(point)) return progress_.wait(point, {});
  }
  poll();
  return give_back_empty_chunks();
}

}  // namespace weir
