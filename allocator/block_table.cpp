#include "allocator/block_table.hpp"

#include <algorithm>
#include <utility>

namespace weir {

Block& BlockTable::insert(void* pointer) {
  make_room(promised_ + 1);
  const std::uint32_t number = free_.back();
  free_.pop_back();
  const std::size_t place = place_of(pointer);
  slots_[place] = hash(pointer).tag | number;
  ++size_;
  Block& block = block_of(slots_[place]);
  block.pointer = pointer;
  return block;
}

void BlockTable::promise(std::size_t blocks) {
  make_room(promised_ + blocks);
  promised_ += blocks;
}

void BlockTable::make_room(std::size_t blocks) {
  constexpr std::size_t kFewest = 256;
  while (free_.size() < blocks) {
    const std::size_t first = chunks_.size() * kChunk + 1;
    free_.reserve(first + kChunk);  // for all numbers, so that erasing cannot fail
    chunks_.push_back(std::make_unique<Chunk>());
    for (std::size_t i = kChunk; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(first + i));
  }
  // Every number fits the slots' low bits, and at most seven eighths of the slots are full.
  const std::size_t most = chunks_.size() * kChunk;
  if (most * 8 <= slots_.size() * 7) return;
  std::vector<std::uint32_t> slots(std::max(kFewest, std::bit_ceil(most * 8 / 7 + 1)));
  std::vector<std::pair<const void*, std::uint32_t>> numbers;
  numbers.reserve(size_);
  for (const std::uint32_t slot : slots_) {
    if (slot != 0) numbers.emplace_back(block_of(slot).pointer, slot & number_mask());
  }
  slots_.swap(slots);
  for (const auto& [pointer, number] : numbers) {
    slots_[place_of(pointer)] = hash(pointer).tag | number;
  }
}

void BlockTable::erase(Block& block) noexcept {
  std::size_t hole = place_of(block.pointer);
  free_.push_back(slots_[hole] & number_mask());
  --size_;
  // Slots behind the hole move into it when their search, which starts at home, passes there, so
  // that nothing dead is left behind (Knuth 3, 6.4, algorithm R).
  const auto distance = [this](std::size_t from, std::size_t to) {
    return (to - from) & (slots_.size() - 1);
  };
  for (std::size_t i = next(hole); slots_[i] != 0; i = next(i)) {
    const std::size_t home = hash(block_of(slots_[i]).pointer).home;
    if (distance(home, i) < distance(hole, i)) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = 0;
  block = {};
}

}  // namespace weir
