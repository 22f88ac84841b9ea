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
  // A small one is reused while caches still hold what is known of it. A large one waits its turn,
  // so that its neighbours may become free and join it: that costs less memory on most traces.
  constexpr Bytes kWaits = mib(1);
  if (piece.size < kWaits) {
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

Block* FreeBins::first_fit(const Bin& bin, Bytes size, std::size_t most) noexcept {
  Block* piece = bin.front();
  for (std::size_t i = 0; piece != nullptr && i < most; ++i, piece = Bin::next(*piece)) {
    if (piece->size >= size) return piece;
  }
  return nullptr;
}

Block* FreeBins::best(Bytes size) const noexcept {
  // Those of the next bin fit, and are hardly larger. Where it has none a better one may be passed
  // over: to look further, then or always, gained nothing on any trace. To look at none, as TLSF
  // does, cost memory on most of them.
  constexpr std::size_t kMost = 4;
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
      if (Block* piece = first_fit(*own, size, kMost)) return piece;
    }
    const std::uint64_t larger = bin + 1 < kBins ? group.used & from(bin + 1) : 0;
    if (larger != 0) return group.bins[lowest(larger)].front();
  }
  const std::uint64_t groups = used_ & from(number + 1);
  if (groups != 0) {
    const Group& group = *groups_[lowest(groups)];
    return group.bins[lowest(group.used)].front();
  }
  // There is nothing larger, and a piece that fits is worth looking at them all.
  return own != nullptr ? first_fit(*own, size, SIZE_MAX) : nullptr;
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
