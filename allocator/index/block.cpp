#include "allocator/index/block.hpp"

#include <algorithm>
#include <utility>

namespace weir {

void Block::set_label(std::string_view text) noexcept {
  label = {};
  std::ranges::copy(text.substr(0, kLabel), label.begin());
}

std::string_view Block::label_view() const noexcept {
  return {label.begin(), std::ranges::find(label, '\0')};
}

Block& BlockTable::insert(void* pointer) {
  make_room(promised_ + 1);
  const std::uint32_t number = free_.back();
  free_.pop_back();
  const Slot slot{.number = number, .hash = hash(pointer)};
  slots_[empty_place(slot.hash)] = slot;
  ++size_;
  Block& block = block_of(slot);
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
    const std::size_t first = arrays_.size() * kArray + 1;
    free_.reserve(first + kArray);  // for all numbers: erasing cannot fail
    arrays_.push_back(std::make_unique<BlockArray>());
    for (std::size_t i = kArray; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(first + i));
  }
  // At most three quarters full: searches stay short.
  const std::size_t most = arrays_.size() * kArray;
  if (most * 4 <= slots_.size() * 3) return;
  std::vector<Slot> slots(std::max(kFewest, std::bit_ceil(most * 4 / 3 + 1)));
  slots_.swap(slots);
  for (const Slot slot : slots) {
    if (slot.number != 0) slots_[empty_place(slot.hash)] = slot;
  }
}

void BlockTable::erase(Block& block) noexcept {
  std::size_t hole = place_of(block.pointer);
  free_.push_back(slots_[hole].number);
  --size_;
  // Move slots behind the hole into it if their search passes it: no dead slot is left (Knuth 3,
  // 6.4, algorithm R).
  const auto distance = [this](std::size_t from, std::size_t to) {
    return (to - from) & (slots_.size() - 1);
  };
  for (std::size_t i = next(hole); slots_[i].number != 0; i = next(i)) {
    const std::size_t home = home_of(slots_[i].hash);
    if (distance(home, i) < distance(hole, i)) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = {};
  block = Block();
}

}  // namespace weir
