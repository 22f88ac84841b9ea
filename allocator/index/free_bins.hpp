#pragma once

// Free pieces by size: finds a good fit in a few steps. There are 64 bins for each doubling of the
// size and a bit for each bin that is not empty. The two levels of bits are those of TLSF (Masmano,
// Ripoll, Crespo, Real: TLSF, ECRTS 2004). A data structure only: takes no lock.
//
// Sizes are multiples of the granule. Up to 128 granules a bin holds one size; above, its sizes
// differ by less than 1/64. A search takes the first that fits among a bin's first few pieces, else
// a piece of the next bin that has any. Only if no larger bin has one, and before asking for
// memory, does it look at all pieces of the bin. A long bin of several sizes is ordered by size,
// and its smallest that fits is taken.

#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"
#include "allocator/index/block_tree.hpp"

namespace weir {

class FreeBins {
 public:
  static constexpr Bytes kGranule{512};

  /// Allocates host memory for pieces of up to `largest`. May fail.
  void reserve(Bytes largest);
  /// `piece` is in no list by its by_stream link. Allocates host memory for a group's first piece.
  /// Without memory, the piece goes into a list that every search walks.
  void insert(Block& piece) noexcept;
  void remove(Block& piece) noexcept;
  /// A piece of `size` or little more; null if there is none.
  [[nodiscard]] Block* best(Bytes size) const noexcept;
  /// Calls `visit(Block&)` for pieces that fit, bins ascending, until it returns false. Of the
  /// first bin's list, looks at the first few.
  template <typename Visit>
  void for_each_fit(Bytes size, const Visit& visit) const {
    const auto [number, bin] = place_of(size);
    if ((used_ >> number & 1U) != 0 && !visit_own(groups_[number]->bins[bin], size, visit)) return;
    for (Block* piece = loose_.front(); piece != nullptr; piece = Loose::next(*piece)) {
      if (piece->size >= size && !visit(*piece)) return;
    }
    std::uint64_t left_out =
        bin + 1 < kBins ? ~(~std::uint64_t{0} << (bin + 1)) : ~std::uint64_t{0};
    for (std::size_t group = number; group < kGroups; ++group, left_out = 0) {
      if ((used_ >> group & 1U) == 0) continue;
      for (std::uint64_t left = groups_[group]->used & ~left_out; left != 0; left &= left - 1) {
        const Bin& pieces = groups_[group]->bins[static_cast<std::size_t>(std::countr_zero(left))];
        for (Block* piece = pieces.front(); piece != nullptr; piece = pieces.next(*piece)) {
          if (!visit(*piece)) return;
        }
      }
    }
  }
  [[nodiscard]] Bytes largest() const noexcept;
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

  /// Calls `visit(Block&)`, bins descending, until it returns false.
  template <typename Visit>
  void for_each_largest(const Visit& visit) const {
    for (Block* piece = loose_.front(); piece != nullptr; piece = Loose::next(*piece)) {
      if (!visit(*piece)) return;
    }
    for (std::size_t group = kGroups; group-- != 0;) {
      if ((used_ >> group & 1U) == 0) continue;
      for (std::uint64_t left = groups_[group]->used; left != 0;) {
        const auto bin = static_cast<std::size_t>(std::bit_width(left) - 1);
        left &= ~(std::uint64_t{1} << bin);
        const Bin& pieces = groups_[group]->bins[bin];
        for (Block* piece = pieces.front(); piece != nullptr; piece = pieces.next(*piece)) {
          if (!visit(*piece)) return;
        }
      }
    }
  }

 private:
  /// A list, or a tree while that is not empty.
  struct Bin {
    BlockList<&Block::by_stream> list;
    SizeTree tree;

    [[nodiscard]] bool empty() const noexcept { return list.empty() && tree.empty(); }
    [[nodiscard]] Block* front() const noexcept;
    [[nodiscard]] Block* next(const Block& piece) const noexcept;
    /// One of at least `size`; in a list, of the first `most`.
    [[nodiscard]] Block* fit(Bytes size, std::size_t most) const noexcept;
    void order() noexcept;  ///< moves the list to the tree
  };
  template <typename Visit>
  [[nodiscard]] static bool visit_own(const Bin& own, Bytes size, const Visit& visit) {
    if (!own.tree.empty()) {
      Block* piece = own.tree.first_from(size.count);
      for (; piece != nullptr; piece = own.tree.next(*piece)) {
        if (!visit(*piece)) return false;
      }
      return true;
    }
    Block* piece = own.list.front();
    for (std::size_t i = 0; piece != nullptr && i < kLooked; ++i, piece = own.next(*piece)) {
      if (piece->size >= size && !visit(*piece)) return false;
    }
    return true;
  }
  /// Pieces of a list that a search looks at.
  static constexpr std::size_t kLooked = 4;
  /// Longest list of several sizes. Updating a tree reads some ten uncached pieces; with 100,000
  /// live blocks of all sizes most bins are lists.
  static constexpr std::uint16_t kListed = 256;
  static constexpr unsigned kBinBits = 6;
  static constexpr std::size_t kBins = std::size_t{1} << kBinBits;
  static constexpr std::size_t kGroups = 50;  ///< for sizes up to 2^64
  struct Group {
    std::uint64_t used = 0;                        ///< a bit per non-empty bin
    std::array<std::uint16_t, kBins> listed = {};  ///< pieces per list of several sizes
    std::array<Bin, kBins> bins;
  };
  struct Place {
    std::size_t group;
    std::size_t bin;
  };

  /// Group 0 has sizes below 64 granules; each further group is a doubling.
  [[nodiscard]] static constexpr Place place_of(Bytes size) noexcept {
    const std::uint64_t granules = size.count / kGranule.count;
    if (granules < kBins) return {0, static_cast<std::size_t>(granules)};
    const auto doubling = static_cast<unsigned>(std::bit_width(granules)) - kBinBits - 1;
    return {doubling + 1U, static_cast<std::size_t>(granules >> doubling) - kBins};
  }
  [[nodiscard]] static constexpr bool is_exact(std::size_t group) noexcept { return group <= 1; }

  using Loose = BlockList<&Block::by_stream>;
  /// Moves loose pieces into the new group; null if there is no memory.
  Group* make_group(std::size_t number) noexcept;
  [[nodiscard]] Block* best_loose(Bytes size) const noexcept;
  void insert_into(Group& group, Place place, Block& piece) noexcept;

  std::uint64_t used_ = 0;  ///< a bit per non-empty group
  Bytes bytes_;
  Loose loose_;  ///< pieces whose group could not be created
  std::array<std::unique_ptr<Group>, kGroups> groups_;
};

}  // namespace weir
