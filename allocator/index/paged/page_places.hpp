#pragma once

// Where pages are: pages that move, a table of pages by address, and stale places.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

/// Pages that move to a new place or the source. Planned under the pool's lock, executed without
/// it, finished under it.
struct PageMove {
  std::vector<Block*> victims;  ///< pieces whose pages to unmap
  std::vector<Mapping> unmap;   ///< their pages, piece by piece
  /// Pages for `places`: lenders' and spare ones by the plan, unmapped and new ones by the
  /// execution.
  std::vector<Page> pages;
  std::vector<Block*> lenders;  ///< pieces whose pages get a second place
  std::size_t lent = 0;         ///< the first `pages` are theirs
  StreamId borrower;            ///< the lenders' stream
  std::vector<Block*> retired;  ///< stale pieces that the device has passed
  std::vector<Mapping> retire;  ///< their mappings, to unmap finally
  /// For a release: pages that must stay, for stale places; ascending.
  std::vector<std::uint64_t> kept;
  std::size_t create = 0;  ///< new pages needed besides

  Block* target = nullptr;    ///< where the block will be; null for a release
  std::uintptr_t at = 0;      ///< the block's address in target
  Bytes size;                 ///< the block's
  std::vector<void*> places;  ///< where to map pages, ascending

  std::size_t promised = 0;        ///< blocks that finishing may need
  std::size_t promised_pages = 0;  ///< room for more pages

  // Results of the execution:
  std::size_t retired_pages = 0;  ///< of `retire`, from the front
  std::size_t unmapped = 0;       ///< of `unmap`, from the front
  std::size_t created = 0;
  std::size_t destroyed = 0;  ///< of the unmapped or spare ones
  std::size_t mapped = 0;     ///< of `places`, from the front, with the first `pages`
};

/// Maps addresses to pages. A pool reserves far more addresses than it maps, so the table has parts
/// only for those mapped: 4 KiB for 512 pages. A data structure only: takes no lock.
class PageTable {
 public:
  explicit PageTable(Bytes page) noexcept : page_(page) {}

  /// Makes room for these pages. May fail, and then keeps all entries.
  void make_room(std::uintptr_t begin, std::uintptr_t end) {
    if (begin == end) return;
    for (std::uint64_t part = part_of(begin); part <= part_of(end - 1); ++part) {
      std::unique_ptr<Part>& made = parts_[part];
      if (made == nullptr) made = std::make_unique<Part>();
    }
  }
  /// `address` must have room. No page if nothing is mapped.
  [[nodiscard]] Page& at(std::uintptr_t address) {
    return (*parts_.find(part_of(address))->second)[address / page_.count % kPages];
  }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }

  /// Calls `visit(Mapping)` for each page, in arbitrary order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [number, part] : parts_) {
      if (part == nullptr) continue;
      std::uintptr_t address = number * kPages * page_.count;
      for (const Page page : *part) {
        if (page.id != 0) visit(Mapping{reinterpret_cast<void*>(address), page});
        address += page_.count;
      }
    }
  }

 private:
  static constexpr std::size_t kPages = 512;
  using Part = std::array<Page, kPages>;

  [[nodiscard]] std::uint64_t part_of(std::uintptr_t address) const noexcept {
    return address / page_.count / kPages;
  }

  Bytes page_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Part>> parts_;  ///< by number
};

/// Pieces whose pages live elsewhere and stay mapped here until the device has passed their free. A
/// data structure only: takes no lock.
class StalePlaces {
 public:
  explicit StalePlaces(Bytes page) : page_(page) {}

  /// Pages of addresses, retired ones included.
  [[nodiscard]] std::size_t pages() const noexcept { return pages_; }

  /// Call before `begin_move`. May fail. Then adding pieces of `stream` cannot, until the move
  /// ends.
  void make_room(StreamId stream) { (void)stale_[stream]; }
  void begin_move(StreamId stream) noexcept { ++stale_.find(stream)->second.moves; }
  void end_move(StreamId stream) noexcept;
  /// `piece`, of `stream`, is in no list; its pages are mapped elsewhere.
  void add(Block& piece, StreamId stream) noexcept;
  /// The same if the device has passed its point.
  void add_retired(Block& piece) noexcept;
  /// Retires the pieces of `stream` up to the point `sequence`.
  void note_passed(StreamId stream, std::uint64_t sequence) noexcept;

  /// Takes a piece to unmap, which the device has passed; null if there is none. Counts until
  /// `end`, or is put back.
  [[nodiscard]] Block* take_retired() noexcept;
  /// Gives a taken piece to the caller, unmapped or to be put back.
  void release_taken(Block& piece) noexcept { taken_.remove(piece); }
  void put_back_retired(Block& piece) noexcept;
  /// So many pages of taken pieces are unmapped.
  void end(std::size_t pages) noexcept { pages_ -= pages; }

  /// Calls `visit(const Block&)` for each that must stay mapped until the device passes its point
  /// or another move unmaps it.
  template <typename Visit>
  void for_each_waiting(const Visit& visit) const {
    for (const Block* b = taken_.front(); b != nullptr; b = List::next(*b)) visit(*b);
    for (const auto& [stream, stale] : stale_) {
      for (const Block* b = stale.pieces.front(); b != nullptr; b = List::next(*b)) visit(*b);
    }
  }

 private:
  using List = BlockList<&Block::by_stream>;
  /// One stream's, ordered by point.
  struct Stale {
    List pieces;
    std::size_t moves = 0;  ///< in progress that may add pieces
  };

  [[nodiscard]] std::size_t pages_of(const Block& piece) const noexcept {
    return piece.size.count / page_.count;
  }

  const Bytes page_;
  std::unordered_map<StreamId, Stale> stale_;
  List retired_;  ///< pieces that the device has passed
  List taken_;    ///< retired ones, being unmapped
  std::size_t pages_ = 0;
};

}  // namespace weir
