#pragma once

// What a thread found last: it asks for the same context and stream again and again.

#include <cuda.h>

#include <cstdint>

#include "allocator/progress/progress.hpp"

namespace weir::preload {

class Arena;
class FollowedStreams;

struct LastFound {
  // By the current context, as of a generation of the arenas.
  CUcontext context = nullptr;
  std::uint64_t generation = 0;
  Arena* arena = nullptr;
  // By a device whose primary context it is.
  int primary_of = -1;
  std::uint64_t primary_generation = 0;
  Arena* primary = nullptr;
  // By a stream's handle, as of so many changes of handles.
  const FollowedStreams* streams = nullptr;
  CUstream handle = nullptr;
  std::uint64_t changes = 0;
  StreamId id{};
};
inline constinit thread_local LastFound last_found{};

}  // namespace weir::preload
