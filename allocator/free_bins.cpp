#include "allocator/free_bins.hpp"

namespace weir {

void FreeBins::reserve(Bytes largest) {
  for (std::size_t group = 0; group <= place_of(largest).group; ++group) {
    auto& place = groups_.at(group);
    if (place == nullptr) place = std::make_unique<Group>();
  }
}

void FreeBins::insert(Block& piece) noexcept {
  const auto [number, bin] = place_of(piece.size);
  Group& group = *groups_[number];
  Bin& pieces = group.bins[bin];
  // Of equal pieces the one at the lowest address is found first, as far as that costs nothing.
  if (!pieces.empty() && piece.begin() < pieces.front()->begin()) {
    pieces.push_front(piece);
  } else {
    pieces.push_back(piece);
  }
  group.used |= std::uint64_t{1} << bin;
  used_ |= std::uint64_t{1} << number;
}

void FreeBins::remove(Block& piece) noexcept {
  const auto [number, bin] = place_of(piece.size);
  Group& group = *groups_[number];
  group.bins[bin].remove(piece);
  if (!group.bins[bin].empty()) return;
  group.used &= ~(std::uint64_t{1} << bin);
  if (group.used == 0) used_ &= ~(std::uint64_t{1} << number);
}

Block* FreeBins::best_of(const Bin& bin, Bytes size) noexcept {
  constexpr int kEnough = 4;  // to look at more gained nothing on any trace
  constexpr int kMost = 16;   // hardly too small: the next bin's fit, and are hardly larger
  const auto is_better = [](const Block& a, const Block& b) {
    return a.size < b.size || (a.size == b.size && a.begin() < b.begin());
  };
  Block* best = nullptr;
  Block* piece = bin.front();
  for (int i = 0; piece != nullptr && i < kMost; ++i, piece = Bin::next(*piece)) {
    if (piece->size >= size && (best == nullptr || is_better(*piece, *best))) best = piece;
    if (best != nullptr && i >= kEnough) break;
  }
  return best;
}

Block* FreeBins::best(Bytes size) const noexcept {
  const auto [number, bin] = place_of(size);
  const auto from = [](std::size_t bit) { return ~std::uint64_t{0} << bit; };
  if ((used_ >> number & 1U) != 0) {
    const Group& group = *groups_[number];
    if ((group.used >> bin & 1U) != 0) {
      if (Block* piece = best_of(group.bins[bin], size)) return piece;
    }
    const std::uint64_t larger = bin + 1 < kBins ? group.used & from(bin + 1) : 0;
    if (larger != 0) {
      return best_of(group.bins[static_cast<std::size_t>(std::countr_zero(larger))], size);
    }
  }
  const std::uint64_t groups = used_ & from(number + 1);
  if (groups == 0) return nullptr;
  const Group& group = *groups_[static_cast<std::size_t>(std::countr_zero(groups))];
  return best_of(group.bins[static_cast<std::size_t>(std::countr_zero(group.used))], size);
}

Bytes FreeBins::largest() const noexcept {
  if (used_ == 0) return {};
  const Group& group = *groups_[static_cast<std::size_t>(std::bit_width(used_) - 1)];
  Bytes largest;
  const Bin& bin = group.bins[static_cast<std::size_t>(std::bit_width(group.used) - 1)];
  for (const Block* piece = bin.front(); piece != nullptr; piece = Bin::next(*piece)) {
    if (piece->size > largest) largest = piece->size;
  }
  return largest;
}

}  // namespace weir
