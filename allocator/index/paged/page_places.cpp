#include "allocator/index/paged/page_places.hpp"

namespace weir {

void StalePlaces::end_move(StreamId stream) noexcept {
  const auto stale = stale_.find(stream);
  if (--stale->second.moves == 0 && stale->second.pieces.empty()) stale_.erase(stale);
}

void StalePlaces::add(Block& piece, StreamId stream) noexcept {
  pages_ += pages_of(piece);
  piece.state = BlockState::kStale;
  stale_.find(stream)->second.pieces.insert_sorted(piece,
                                                   [](const Block& b) { return b.home_sequence; });
}

void StalePlaces::add_retired(Block& piece) noexcept {
  pages_ += pages_of(piece);
  put_back_retired(piece);
}

void StalePlaces::note_passed(StreamId stream, std::uint64_t sequence) noexcept {
  const auto stale = stale_.find(stream);
  if (stale == stale_.end()) return;
  while (Block* piece = stale->second.pieces.front()) {
    if (piece->home_sequence > sequence) return;
    stale->second.pieces.remove(*piece);
    retired_.push_back(*piece);
  }
  if (stale->second.moves == 0) stale_.erase(stale);
}

Block* StalePlaces::take_retired() noexcept {
  Block* piece = retired_.front();
  if (piece == nullptr) return nullptr;
  retired_.remove(*piece);
  taken_.push_back(*piece);
  return piece;
}

void StalePlaces::put_back_retired(Block& piece) noexcept {
  piece.state = BlockState::kStale;
  retired_.push_back(piece);
}

}  // namespace weir
