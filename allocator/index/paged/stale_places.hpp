#pragma once

// Pieces whose pages live elsewhere, and are still mapped here, until the device has passed the
// point of their free. A data structure only: it takes no lock.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"

namespace weir {

class StalePlaces {
 public:
  explicit StalePlaces(Bytes page) : page_(page) {}

  /// How many pages of addresses there are, retired ones included.
  [[nodiscard]] std::size_t pages() const noexcept { return pages_; }

  /// What `begin_move` needs; may fail. Then adding pieces of `stream` cannot, until the move ends.
  void make_room(StreamId stream) { (void)stale_[stream]; }
  void begin_move(StreamId stream) noexcept { ++stale_.find(stream)->second.moves; }
  void end_move(StreamId stream) noexcept;
  /// A piece of `stream`, in no list, whose pages are mapped elsewhere now.
  void add(Block& piece, StreamId stream) noexcept;
  /// The same of a piece whose point is passed already.
  void add_retired(Block& piece) noexcept;
  /// What `stream` has up to the point `sequence` is retired.
  void note_passed(StreamId stream, std::uint64_t sequence) noexcept;

  /// A piece that the device is done with, to be unmapped; null if there is none. It is counted
  /// until `end` or put back.
  [[nodiscard]] Block* take_retired() noexcept;
  /// A piece that was taken is the caller's alone: unmapped, or to be put back.
  void release_taken(Block& piece) noexcept { taken_.remove(piece); }
  void put_back_retired(Block& piece) noexcept;
  /// So many pages of what was taken are mapped no more.
  void end(std::size_t pages) noexcept { pages_ -= pages; }

  /// Calls `visit(const Block&)` for each that stays mapped until something else has happened: the
  /// device passes its point, or who has taken it has unmapped it.
  template <typename Visit>
  void for_each_waiting(const Visit& visit) const {
    for (const Block* b = taken_.front(); b != nullptr; b = List::next(*b)) visit(*b);
    for (const auto& [stream, stale] : stale_) {
      for (const Block* b = stale.pieces.front(); b != nullptr; b = List::next(*b)) visit(*b);
    }
  }

 private:
  using List = BlockList<&Block::by_stream>;
  /// Of one stream, in the order of their points.
  struct Stale {
    List pieces;
    std::size_t moves = 0;  ///< under way that may add to it
  };

  [[nodiscard]] std::size_t pages_of(const Block& piece) const noexcept {
    return piece.size.count / page_.count;
  }

  const Bytes page_;
  std::unordered_map<StreamId, Stale> stale_;
  List retired_;  ///< those whose points are passed
  List taken_;    ///< of these, on their way to be unmapped
  std::size_t pages_ = 0;
};

}  // namespace weir
