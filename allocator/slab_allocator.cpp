#include "allocator/slab_allocator.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"

namespace weir {

SlabAllocator::SlabAllocator(Pool& pool, Progress& progress) : pool_(pool), progress_(progress) {}

SlabAllocator::~SlabAllocator() {
  Lock lock(mutex_);
  const auto slabs = std::move(slabs_);
  const auto awaiting = std::move(awaiting_);
  lock.unlock();
  for (const Awaiting& slot : awaiting) {
    try {
      for (const Point use : slot.uses()) pool_.record_use(slot.slot.slab->base, use.stream);
    } catch (const std::exception&) {
      slot.slot.slab->kept = true;  // freeing it without its uses would be too early
    }
  }
  for (const auto& [key, slab] : slabs) free_slab(*slab);
}

void SlabAllocator::free_slab(const Slab& slab) noexcept {
  try {
    if (!slab.kept) {
      pool_.deallocate(slab.base, slab.stream);
      return;
    }
  } catch (const std::exception&) {
    // Treated like a kept slab.
  }
  log(LogLevel::kError, "a block of small tensors could not be freed: it stays allocated");
}

void SlabAllocator::make_room_to_await() {
  if (awaiting_.capacity() <= slots_out_) awaiting_.reserve(2 * slots_out_ + 64);
}

SlabAllocator::Slot SlabAllocator::take_slot(StreamId stream, std::size_t size_class) {
  std::vector<Slab*>& with_room = with_room_[stream].at(size_class);
  if (with_room.empty()) return {};
  make_room_to_await();
  ++slots_out_;
  Slab* slab = with_room.back();
  const std::size_t index = slab->free_slots.back();
  slab->free_slots.pop_back();
  if (slab->free_slots.empty()) with_room.pop_back();
  return {slab->base + index * kSlotSizes.at(size_class), slab};
}

SlabAllocator::Slot SlabAllocator::try_allocate(Bytes bytes, StreamId stream, Attempt& attempt,
                                                Bytes& grown) {
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

  auto slab = std::make_unique<Slab>();
  slab->stream = stream;
  slab->size_class = size_class;
  slab->slots = kSlab.count / kSlotSizes.at(size_class);
  for (std::size_t i = slab->slots; i-- > 0;) {
    slab->free_slots.push_back(static_cast<std::uint16_t>(i));
  }
  void* base = pool_.try_allocate(kSlab, stream, "small tensors", attempt);
  if (base == nullptr) return {};
  slab->base = static_cast<std::byte*>(base);
  grown = *pool_.block_size(kSlab);
  lock.lock();
  try {
    return add_slab(std::move(slab));
  } catch (...) {
    lock.unlock();
    pool_.deallocate(base, stream);
    throw;
  }
}

SlabAllocator::Slot SlabAllocator::add_slab(std::unique_ptr<Slab> slab) {
  Slab& added = *slab;
  std::vector<Slab*>& with_room = with_room_[added.stream].at(added.size_class);
  // Reserved for every slab, so that returning a slot cannot fail half way.
  if (with_room.capacity() <= slabs_.size()) with_room.reserve(2 * (slabs_.size() + 1));
  make_room_to_await();
  slabs_.emplace(&added, std::move(slab));
  with_room.push_back(&added);
  return take_slot(added.stream, added.size_class);
}

std::unique_ptr<SlabAllocator::Slab> SlabAllocator::return_slot(Slot slot) {
  Slab& slab = *slot.slab;
  const std::size_t size = kSlotSizes.at(slab.size_class);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(slot.pointer) - slab.base);
  std::vector<Slab*>& with_room = with_room_[slab.stream].at(slab.size_class);
  --slots_out_;
  if (slab.free_slots.empty()) with_room.push_back(&slab);
  slab.free_slots.push_back(static_cast<std::uint16_t>(offset / size));
  if (slab.free_slots.size() < slab.slots || with_room.size() < 2) return nullptr;
  std::erase(with_room, &slab);
  const auto owned = slabs_.find(&slab);
  std::unique_ptr<Slab> empty = std::move(owned->second);
  slabs_.erase(owned);
  return empty;
}

void SlabAllocator::give_back(std::span<const std::unique_ptr<Slab>> slabs) noexcept {
  if (slabs.empty()) return;
  for (const auto& slab : slabs) free_slab(*slab);
  {
    const Lock lock(mutex_);
    giving_back_ -= slabs.size();
    given_back_ += slabs.size();
  }
  changed_.notify_all();
}

void SlabAllocator::deallocate(Slot slot, std::span<const StreamId> others) {
  if (others.size() > kMostOtherStreams) throw UsageError("slab: too many streams used one slot");
  Awaiting awaiting{.slot = slot};
  // Record each, passed or not: later work is not part of the free.
  for (const StreamId other : others) awaiting.points.at(awaiting.count++) = try_record(other);
  const bool free_now = all_reached(awaiting.uses());
  std::unique_ptr<Slab> empty;
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

Point SlabAllocator::try_record(StreamId stream) {
  try {
    return progress_.record(stream);
  } catch (...) {
    return {stream, Block::kUnrecorded};  // poll() tries again
  }
}

bool SlabAllocator::all_reached(std::span<const Point> uses) {
  try {
    return std::ranges::all_of(uses, [this](Point use) { return progress_.reached(use); });
  } catch (...) {
    return false;  // poll() asks again; the slot must be recorded whatever the device says
  }
}

void SlabAllocator::poll() {
  // Per thread: once warm, a submission allocates nothing here.
  struct Scratch {
    std::vector<Point> passed;    // how far each awaited stream has come
    std::vector<Point> recorded;  // new points, of streams that lack one
    std::vector<std::unique_ptr<Slab>> empties;
  };
  auto& scratch = thread_scratch<Scratch>();
  std::vector<Point>& passed = scratch.passed;
  std::vector<Point>& recorded = scratch.recorded;
  std::vector<std::unique_ptr<Slab>>& empties = scratch.empties;
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
    if (slot.serial > looked) break;  // freed since: its uses may be later than the recorded points
    for (Point& use : slot.uses()) {
      if (use.sequence != Block::kUnrecorded) continue;
      use.sequence = sequence_on(recorded, use.stream).value_or(Block::kUnrecorded);
    }
  }
  empties.reserve(awaiting_.size());  // from here on nothing can fail half way
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

bool SlabAllocator::give_back_empty_slabs() {
  std::vector<std::unique_ptr<Slab>> empties;
  {
    const Lock lock(mutex_);
    empties.reserve(slabs_.size());  // so that nothing can fail half way
    for (auto& [stream, classes] : with_room_) {
      for (std::vector<Slab*>& with_room : classes) {
        std::erase_if(with_room, [&](Slab* slab) WEIR_REQUIRES(mutex_) {
          if (slab->free_slots.size() < slab->slots) return false;
          const auto owned = slabs_.find(slab);
          empties.push_back(std::move(owned->second));
          slabs_.erase(owned);
          return true;
        });
      }
    }
    giving_back_ += empties.size();
  }
  give_back(empties);
  return !empties.empty();
}

bool SlabAllocator::await_given_back(std::uint64_t looked) {
  const NoCancel no_cancel;
  Lock lock(mutex_);
  // A slab being returned is a free in the pool, which waits for nothing.
  while (giving_back_ != 0 && given_back() == looked) changed_.wait(lock);
  return given_back() != looked;
}

bool SlabAllocator::reclaim(bool may_wait, std::uint64_t looked, Attempt& attempt) {
  poll();
  if (give_back_empty_slabs()) return true;
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
    // A slot can await one point after another is passed. A wait for a passed point would return at
    // once, and so would the next call.
    if (progress_.reached(point)) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool reached = progress_.wait(point, attempt.limit);
    ++attempt.waits;
    attempt.waited += std::chrono::steady_clock::now() - start;
    return reached;
  }
  poll();
  return give_back_empty_slabs() || await_given_back(looked);
}

}  // namespace weir
