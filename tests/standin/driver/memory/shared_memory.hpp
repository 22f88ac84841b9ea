#pragma once

// Device memory that another process can map: each block is a file of its own, without a name. Only
// where WEIR_STANDIN_SHAREABLE is 1, since it costs two calls of the system for each block. All of
// it under the driver's lock.

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::standin {

/// Where another process finds a block: one of its own descriptors, which stay open with the block.
struct SharedFile {
  std::uint64_t process = 0;
  int descriptor = -1;
  std::uint64_t bytes = 0;
};

/// New memory; null when there is none.
void* take_shareable(std::size_t bytes);
/// False where it is not from `take_shareable`.
bool give_shareable(const void* memory);
/// Nothing where the memory is not from `take_shareable`.
std::optional<SharedFile> file_of(const void* memory);
/// Memory of another process, mapped here until munmap; null where it is gone.
void* map_shared(const SharedFile& file);

}  // namespace weir::standin
