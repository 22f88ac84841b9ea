#pragma once

// Weir's memory as a snapshot shows it: segments whose pieces follow each other without a gap.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/preload/borders/weir.h"

namespace weir::torch_plug {

/// A piece of a segment.
template <typename Block>
struct Piece {
  weir_block memory;
  const Block* block;  ///< the tensor's; null if it is free
};

/// Pieces without a gap between them, at least one.
template <typename Block>
using Pieces = std::vector<Piece<Block>>;

/// Returns the memory in `memory`, which is sorted by address, segment by segment. `find` returns
/// the block at an address, or null. Allocated memory without a block is another user's of Weir:
/// native's segments or another library's. It is left out and ends a segment, which may go on
/// behind it.
template <typename Block, typename Find>
[[nodiscard]] std::vector<Pieces<Block>> segments_of(std::span<const weir_block> memory,
                                                     Find find) {
  std::vector<Pieces<Block>> segments;
  std::uint64_t end = 0;      // of the piece before
  std::uint64_t segment = 0;  // its segment, as Weir sees it
  for (const weir_block& each : memory) {
    const bool allocated = each.state == WEIR_ALLOCATED;
    const Block* const block = allocated ? find(each.address) : nullptr;
    if (allocated && block == nullptr) continue;
    if (segments.empty() || each.address != end || each.segment != segment) {
      segments.emplace_back();
    }
    segments.back().push_back({each, block});
    end = each.address + each.size;
    segment = each.segment;
  }
  return segments;
}

struct SegmentFigures {
  std::int64_t segments = 0;
  std::int64_t split_blocks = 0;  ///< free blocks in segments that are not free as a whole
  std::int64_t split_bytes = 0;
};

/// Counts the segments in `memory`, which is sorted by address, and what native would call inactive
/// and split in them.
[[nodiscard]] inline SegmentFigures figures_of(std::span<const weir_block> memory) {
  const auto is_free = [](const weir_block& block) { return block.state == WEIR_CACHED; };
  SegmentFigures sum;
  for (auto first = memory.begin(); first != memory.end();) {
    const auto last = std::find_if(first, memory.end(), [first](const weir_block& block) {
      return block.segment != first->segment;
    });
    const bool split = !std::all_of(first, last, is_free);
    for (auto block = first; split && block != last; ++block) {
      if (!is_free(*block)) continue;
      ++sum.split_blocks;
      sum.split_bytes += static_cast<std::int64_t>(block->size);
    }
    ++sum.segments;
    first = last;
  }
  return sum;
}

/// Returns all blocks that `list` has, which fills up to a number of them and returns how many
/// there are, as weir_blocks does. Where blocks keep coming faster than they are listed, returns
/// the first of the last try.
template <typename List>
[[nodiscard]] std::vector<weir_block> all_of(const List& list) {
  constexpr int kMostTries = 8;
  constexpr std::size_t kMore = 64;  // for those that come between the calls
  std::vector<weir_block> memory;
  std::size_t there = list(memory.data(), memory.size());
  for (int tries = 0; there > memory.size() && tries < kMostTries; ++tries) {
    memory.resize(there + kMore);
    there = list(memory.data(), memory.size());
  }
  memory.resize(std::min(there, memory.size()));
  return memory;
}

}  // namespace weir::torch_plug
