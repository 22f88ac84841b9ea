#include "tools/timeline/recorder/chunks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace weir::timeline {
namespace {

constexpr std::size_t kFewest = 4;

/// Maps memory directly: a thread may need a chunk under any lock, and in any destructor.
Chunk* make_chunk() noexcept {
  void* memory = mmap(nullptr, Chunk::kSize.count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? nullptr : ::new (memory) Chunk;
}

void free_chunk(Chunk* chunk) noexcept { (void)munmap(chunk, Chunk::kSize.count); }

}  // namespace

ChunkStore::ChunkStore(Bytes most)
    : most_(std::max<std::size_t>(kFewest, most.count / Chunk::kSize.count)), to_be_had_(most_) {
  free_.reserve(most_);
  in_use_.reserve(most_);
  full_.reserve(most_);
}

ChunkStore::~ChunkStore() {
  const Lock lock(mutex_);
  for (const auto* list : {&free_, &in_use_, &full_}) {
    for (Chunk* chunk : *list) free_chunk(chunk);
  }
}

Chunk* ChunkStore::exchange(Chunk* used) noexcept {
  // Without room, every event arrives here and must not wait for the lock.
  if (used == nullptr && to_be_had_.load(std::memory_order_relaxed) == 0) return nullptr;
  const Lock lock(mutex_);
  if (used != nullptr) end_use(*used);
  Chunk* const chunk = take_free();
  if (chunk == nullptr) return nullptr;
  chunk->place = static_cast<std::uint32_t>(in_use_.size());
  in_use_.push_back(chunk);
  return chunk;
}

void ChunkStore::give(Chunk& used) noexcept {
  const Lock lock(mutex_);
  end_use(used);
}

void ChunkStore::end_use(Chunk& chunk) noexcept {
  Chunk* const last = in_use_.back();
  last->place = chunk.place;
  in_use_[chunk.place] = last;
  in_use_.pop_back();
  full_.push_back(&chunk);
  full_count_.fetch_add(1, std::memory_order_relaxed);
}

Chunk* ChunkStore::take_free() noexcept {
  if (to_be_had_.load(std::memory_order_relaxed) == 0) return nullptr;
  Chunk* chunk = nullptr;
  if (!free_.empty()) {
    chunk = free_.back();
    free_.pop_back();
  } else {
    chunk = make_chunk();
    if (chunk == nullptr) return nullptr;
  }
  to_be_had_.fetch_sub(1, std::memory_order_relaxed);
  return chunk;
}

void ChunkStore::collect(std::vector<Chunk*>& full, std::vector<Chunk*>& in_use) {
  full.reserve(full.size() + most_);
  in_use.reserve(in_use.size() + most_);
  const Lock lock(mutex_);
  full.insert(full.end(), full_.begin(), full_.end());
  in_use.insert(in_use.end(), in_use_.begin(), in_use_.end());
  full_count_.store(0, std::memory_order_relaxed);
  full_.clear();
}

void ChunkStore::recycle(Chunk& read) noexcept {
  read.filled.store(0, std::memory_order_relaxed);
  read.drained = 0;
  const Lock lock(mutex_);
  free_.push_back(&read);
  to_be_had_.fetch_add(1, std::memory_order_relaxed);
}

void ChunkStore::shrink() noexcept {
  const Lock lock(mutex_);
  for (Chunk* chunk : free_) free_chunk(chunk);
  free_.clear();
}

}  // namespace weir::timeline
