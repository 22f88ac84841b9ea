#pragma once

// Pieces whose pages live elsewhere and stay mapped here until the device has passed their free. A
// data structure only: takes no lock.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"

namespace weir {

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
