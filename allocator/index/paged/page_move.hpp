#pragma once

// Pages on their way from one place to another, or to the source.

#include <cstdint>
#include <vector>

#include "allocator/index/block.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

/// Pages on their way. Planned under the pool's lock, carried out without it, finished under it.
struct PageMove {
  std::vector<Block*> victims;  ///< pieces whose pages are to be unmapped
  std::vector<Mapping> unmap;   ///< those pages, piece by piece
  /// The pages for `places`. The plan puts in those of lenders and spare ones; what is unmapped and
  /// what is made new is added as the plan is carried out.
  std::vector<Page> pages;
  std::vector<Block*> lenders;  ///< pieces whose pages are mapped at a second place
  std::size_t lent = 0;         ///< how many of `pages`, from the front, are theirs
  StreamId borrower;            ///< whose pieces they are
  std::vector<Block*> retired;  ///< stale pieces that the device is done with
  std::vector<Mapping> retire;  ///< what is mapped there, to be unmapped for good
  /// Where pages are given back: those that must stay, since they have stale places, ascending.
  std::vector<std::uint64_t> kept;
  std::size_t create = 0;  ///< how many new ones are needed beside those

  Block* target = nullptr;    ///< where the block will be; null where pages are only given back
  std::uintptr_t at = 0;      ///< the block's address, within target
  Bytes size;                 ///< the block's
  std::vector<void*> places;  ///< where pages are to be mapped, ascending

  std::size_t promised = 0;        ///< blocks that finishing may need
  std::size_t promised_pages = 0;  ///< room for so many more pages

  // As carried out:
  std::size_t retired_pages = 0;  ///< of `retire`, from the front
  std::size_t unmapped = 0;       ///< of `unmap`, from the front
  std::size_t created = 0;
  std::size_t destroyed = 0;  ///< of those that were unmapped or spare
  std::size_t mapped = 0;     ///< of `places`, from the front, with the first of `pages`
};

}  // namespace weir
