#pragma once

// Device memory that another process can map: each block is an unnamed file. Only with
// WEIR_STANDIN_SHAREABLE=1, since each block costs two system calls. All functions need the
// driver's lock.

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::standin {

/// Where another process finds a block: a file descriptor that stays open with the block.
struct SharedFile {
  std::uint64_t process = 0;
  int descriptor = -1;
  std::uint64_t bytes = 0;
};

/// Takes new memory; null if there is none.
void* take_shareable(std::size_t bytes);
/// Returns false for memory that is not from `take_shareable`.
bool give_shareable(const void* memory);
/// Returns nothing for memory that is not from `take_shareable`.
std::optional<SharedFile> file_of(const void* memory);
/// Maps another process's memory until munmap; null if it is gone.
void* map_shared(const SharedFile& file);

}  // namespace weir::standin
