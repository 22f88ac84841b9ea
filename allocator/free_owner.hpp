#pragma once

// Streams as the index of a pool's blocks knows them, and who may have a free block.

#include <cstdint>

#include "allocator/block.hpp"
#include "allocator/progress.hpp"

namespace weir {

/// What is known of a stream and waits for it.
struct StreamBook {
  std::uint64_t passed = 0;
  std::uint64_t last = 0;  ///< highest recorded sequence that a block carries
  BlockList<&Block::by_stream> awaiting;
};

/// Whose the cached blocks of one list, or of one set of bins, are: `home` may have them at once,
/// others when the device has passed the point of their free.
struct FreeOwner {
  StreamId home;
  StreamBook* book = nullptr;  ///< of home

  [[nodiscard]] bool passed(const Block& block) const {
    return block.home_sequence <= book->passed;
  }
};

}  // namespace weir
