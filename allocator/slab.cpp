#include "allocator/slab.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/thread_scratch.hpp"

namespace weir {

Slab::Slab(Pool& pool, Progress& progress) : pool_(pool), progress_(progress) {}

Slab::~Slab() {
  Lock lock(mutex_);
  const auto chunks = std::move(chunks_);
  const auto awaiting = std::move(awaiting_);
  lock.unlock();
  for (const Awaiting& slot : awaiting) {
    try {
      for (const Point use : slot.uses()) pool_.record_use(slot.slot.chunk->base, use.stream);
    } catch (const std::exception&) {
      slot.slot.chunk->kept = true;  // to free it without its uses would be too early
    }
  }
  for (const auto& [key, chunk] : chunks) free_chunk(*chunk);
}

void Slab::free_chunk(const Chunk& chunk) noexcept {
  try {
    if (!chunk.kept) {
      pool_.deallocate(chunk.base, chunk.stream);
      return;
    }
  } catch (const std::exception&) {
    // It is the same as with one that is kept.
  }
  log(LogLevel::kError, "a block of small tensors could not be freed: it stays allocated");
}

void Slab::make_room_to_await() {
  if (awaiting_.capacity() <= slots_out_) awaiting_.reserve(2 * slots_out_ + 64);
}

Slab::Slot Slab::take_slot(StreamId stream, std::size_t size_class) {
  std::vector<Chunk*>& with_room = with_room_[stream].at(size_class);
  if (with_room.empty()) return {};
  make_room_to_await();
  ++slots_out_;
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

  auto chunk = std::make_unique<Chunk>();
  chunk->stream = stream;
  chunk->size_class = size_class;
  chunk->slots = kChunk.count / kSlotSizes.at(size_class);
  for (std::size_t i = chunk->slots; i-- > 0;) {
    chunk->free_slots.push_back(static_cast<std::uint16_t>(i));
  }
  void* base = pool_.try_allocate(kChunk, stream, "small tensors", attempt);
  if (base == nullptr) return {};
  chunk->base = static_cast<std::byte*>(base);
  grown = *pool_.block_size(kChunk);
  lock.lock();
  try {
    return add_chunk(std::move(chunk));
  } catch (...) {
    lock.unlock();
    pool_.deallocate(base, stream);
    throw;
  }
}

Slab::Slot Slab::add_chunk(std::unique_ptr<Chunk> chunk) {
  Chunk& added = *chunk;
  std::vector<Chunk*>& with_room = with_room_[added.stream].at(added.size_class);
  // Room for every chunk, so that a slot's way back cannot fail half way.
  if (with_room.capacity() <= chunks_.size()) with_room.reserve(2 * (chunks_.size() + 1));
  make_room_to_await();
  chunks_.emplace(&added, std::move(chunk));
  with_room.push_back(&added);
  return take_slot(added.stream, added.size_class);
}

std::unique_ptr<Slab::Chunk> Slab::return_slot(Slot slot) {
  Chunk& chunk = *slot.chunk;
  const std::size_t size = kSlotSizes.at(chunk.size_class);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(slot.pointer) - chunk.base);
  std::vector<Chunk*>& with_room = with_room_[chunk.stream].at(chunk.size_class);
  --slots_out_;
  if (chunk.free_slots.empty()) with_room.push_back(&chunk);
  chunk.free_slots.push_back(static_cast<std::uint16_t>(offset / size));
  if (chunk.free_slots.size() < chunk.slots || with_room.size() < 2) return nullptr;
  std::erase(with_room, &chunk);
  const auto owned = chunks_.find(&chunk);
  std::unique_ptr<Chunk> empty = std::move(owned->second);
  chunks_.erase(owned);
  return empty;
}

void Slab::give_back(std::span<const std::unique_ptr<Chunk>> chunks) noexcept {
  if (chunks.empty()) return;
  for (const auto& chunk : chunks) free_chunk(*chunk);
  {
    const Lock lock(mutex_);
    giving_back_ -= chunks.size();
    given_back_ += chunks.size();
  }
  changed_.notify_all();
}

void Slab::deallocate(Slot slot, std::span<const StreamId> others) {
  if (others.size() > kMostOtherStreams) throw UsageError("slab: too many streams used one slot");
  Awaiting awaiting{.slot = slot};
  // Each is recorded, passed or not: it belongs to the free, and not to what is enqueued later.
  for (const StreamId other : others) awaiting.points.at(awaiting.count++) = try_record(other);
  const bool free_now = all_reached(awaiting.uses());
  std::unique_ptr<Chunk> empty;
  {
    const Lock lock(mutex_);
    if (free_now) {
      empty = return_slot(slot);
      if (empty != nullptr) ++giving_back_;
    } else {
      awaiting.serial = ++serials_;
      awaiting_.push_back(awaiting);
    }
  }
  if (empty != nullptr) give_back(std::span(&empty, 1));
}

Point Slab::try_record(StreamId stream) {
  try {
    return progress_.record(stream);
  } catch (...) {
    return {stream, Block::kUnrecorded};  // poll() tries again
  }
}

bool Slab::all_reached(std::span<const Point> uses) {
  try {
    return std::ranges::all_of(uses, [this](Point use) { return progress_.reached(use); });
  } catch (...) {
    return false;  // poll() asks again; the slot must be booked whatever the device says
  }
}

void Slab::poll() {
  // Of the thread: a submission that comes here allocates nothing once warm.
  struct Scratch {
    std::vector<Point> passed;    // how far each stream is that a slot awaits
    std::vector<Point> recorded;  // new points, of streams that lack one
    std::vector<std::unique_ptr<Chunk>> empties;
  };
  auto& scratch = thread_scratch<Scratch>();
  std::vector<Point>& passed = scratch.passed;
  std::vector<Point>& recorded = scratch.recorded;
  std::vector<std::unique_ptr<Chunk>>& empties = scratch.empties;
  passed.clear();
  recorded.clear();
  empties.clear();
  const auto add = [](std::vector<Point>& points, StreamId stream) {
    if (std::ranges::count(points, stream, &Point::stream) == 0) points.push_back({stream, 0});
  };
  const auto sequence_on = [](const std::vector<Point>& points, StreamId stream) {
    const auto found = std::ranges::find(points, stream, &Point::stream);
    return found != points.end() ? std::optional(found->sequence) : std::nullopt;
  };
  Lock lock(mutex_);
  for (const Awaiting& slot : awaiting_) {
    for (const Point use : slot.uses()) {
      add(passed, use.stream);
      if (use.sequence == Block::kUnrecorded) add(recorded, use.stream);
    }
  }
  const std::uint64_t looked = serials_;
  lock.unlock();
  for (Point& point : recorded) point = try_record(point.stream);
  for (Point& point : passed) point.sequence = progress_.passed(point.stream);
  lock.lock();
  for (Awaiting& slot : awaiting_) {
    if (slot.serial > looked) break;  // freed since: its uses may be later than what was recorded
    for (Point& use : slot.uses()) {
      if (use.sequence != Block::kUnrecorded) continue;
      use.sequence = sequence_on(recorded, use.stream).value_or(Block::kUnrecorded);
    }
  }
  empties.reserve(awaiting_.size());  // nothing from here on can fail half way
  std::erase_if(awaiting_, [&](const Awaiting& slot) WEIR_REQUIRES(mutex_) {
    const bool done = std::ranges::all_of(slot.uses(), [&](Point use) {
      return sequence_on(passed, use.stream).value_or(0) >= use.sequence;
    });
    if (!done) return false;
    if (auto empty = return_slot(slot.slot)) empties.push_back(std::move(empty));
    return true;
  });
  giving_back_ += empties.size();
  lock.unlock();
  give_back(empties);
  empties.clear();
}

}  // namespace weir
