#include "allocator/index/free_bins.hpp"

#include <algorithm>
#include <new>

namespace weir {

void FreeBins::reserve(Bytes largest) {
  for (std::size_t number = 0; number <= place_of(largest).group; ++number) {
    if (groups_.at(number) == nullptr && make_group(number) == nullptr) throw std::bad_alloc();
  }
}

FreeBins::Group* FreeBins::make_group(std::size_t number) noexcept {
  auto& group = groups_[number];
  group.reset(new (std::nothrow) Group);
  if (group == nullptr) return nullptr;
  for (Block* piece = loose_.front(); piece != nullptr;) {
    Block* const next = Loose::next(*piece);
    const Place place = place_of(piece->size);
    if (place.group == number) {
      loose_.remove(*piece);
      insert_into(*group, place, *piece);
    }
    piece = next;
  }
  return group.get();
}

Block* FreeBins::best_loose(Bytes size) const noexcept {
  Block* best = nullptr;
  for (Block* piece = loose_.front(); piece != nullptr; piece = Loose::next(*piece)) {
    if (piece->size >= size && (best == nullptr || piece->size < best->size)) best = piece;
  }
  return best;
}

Block* FreeBins::Bin::front() const noexcept { return tree.empty() ? list.front() : tree.front(); }

Block* FreeBins::Bin::next(const Block& piece) const noexcept {
  return tree.empty() ? decltype(list)::next(piece) : tree.next(piece);
}

Block* FreeBins::Bin::fit(Bytes size, std::size_t most) const noexcept {
  if (!tree.empty()) return tree.first_from(size.count);
  Block* piece = list.front();
  for (std::size_t i = 0; piece != nullptr && i < most; ++i, piece = decltype(list)::next(*piece)) {
    if (piece->size >= size) return piece;
  }
  return nullptr;
}

void FreeBins::Bin::order() noexcept {
  while (Block* piece = list.front()) {
    list.remove(*piece);
    tree.insert(*piece);
  }
}

void FreeBins::insert(Block& piece) noexcept {
  bytes_ += piece.size;
  const Place place = place_of(piece.size);
  Group* group = groups_[place.group].get();
  if (group == nullptr) group = make_group(place.group);
  if (group != nullptr) return insert_into(*group, place, piece);
  loose_.push_back(piece);
}

void FreeBins::insert_into(Group& group, Place place, Block& piece) noexcept {
  const auto [number, bin] = place;
  Bin& pieces = group.bins[bin];
  // Reuse small pieces soon, while cached. Large ones wait for neighbours to become free and join:
  // that needs less memory on most traces.
  constexpr Bytes kWaits = mib(1);
  if (!pieces.tree.empty()) {
    pieces.tree.insert(piece);
  } else if (piece.size < kWaits) {
    pieces.list.push_front(piece);
  } else {
    pieces.list.push_back(piece);
  }
  if (!is_exact(number) && pieces.tree.empty() && ++group.listed[bin] > kListed) {
    pieces.order();
    group.listed[bin] = 0;
  }
  group.used |= std::uint64_t{1} << bin;
  used_ |= std::uint64_t{1} << number;
}

void FreeBins::remove(Block& piece) noexcept {
  bytes_ -= piece.size;
  const auto [number, bin] = place_of(piece.size);
  if (groups_[number] == nullptr) return loose_.remove(piece);
  Group& group = *groups_[number];
  Bin& pieces = group.bins[bin];
  if (!pieces.tree.empty()) {
    pieces.tree.remove(piece);
  } else {
    pieces.list.remove(piece);
    if (!is_exact(number)) --group.listed[bin];
  }
  if (!pieces.empty()) return;
  group.used &= ~(std::uint64_t{1} << bin);
  if (group.used == 0) used_ &= ~(std::uint64_t{1} << number);
}

Block* FreeBins::best(Bytes size) const noexcept {
  // Pieces of the next bin fit and are hardly larger. If it is empty, this may miss a better one in
  // its own bin: a longer search gained nothing on any trace; none, as in TLSF, cost memory on
  // most.
  if (!loose_.empty()) {
    if (Block* piece = best_loose(size)) return piece;
  }
  const auto [number, bin] = place_of(size);
  const auto from = [](std::size_t bit) { return ~std::uint64_t{0} << bit; };
  const auto lowest = [](std::uint64_t bits) {
    return static_cast<std::size_t>(std::countr_zero(bits));
  };
  const Bin* own = nullptr;
  if ((used_ >> number & 1U) != 0) {
    const Group& group = *groups_[number];
    if ((group.used >> bin & 1U) != 0) {
      own = &group.bins[bin];
      if (Block* piece = own->fit(size, kLooked)) return piece;
    }
    const std::uint64_t larger = bin + 1 < kBins ? group.used & from(bin + 1) : 0;
    if (larger != 0) return group.bins[lowest(larger)].front();
  }
  const std::uint64_t groups = used_ & from(number + 1);
  if (groups != 0) {
    const Group& group = *groups_[lowest(groups)];
    return group.bins[lowest(group.used)].front();
  }
  // Nothing larger exists, so look at all.
  return own != nullptr ? own->fit(size, kListed) : nullptr;
}

Bytes FreeBins::largest() const noexcept {
  Bytes largest;
  for (const Block* piece = loose_.front(); piece != nullptr; piece = Loose::next(*piece)) {
    largest = std::max(largest, piece->size);
  }
  if (used_ == 0) return largest;
  const Group& group = *groups_[static_cast<std::size_t>(std::bit_width(used_) - 1)];
  const Bin& bin = group.bins[static_cast<std::size_t>(std::bit_width(group.used) - 1)];
  if (!bin.tree.empty()) return std::max(largest, bin.tree.back()->size);
  const Block* piece = bin.list.front();
  for (std::size_t i = 0; piece != nullptr && i < kListed; ++i, piece = bin.next(*piece)) {
    largest = std::max(largest, piece->size);
  }
  return largest;
}

}  // namespace weir
