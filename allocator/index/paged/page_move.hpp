#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace weir
