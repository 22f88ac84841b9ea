#pragma once

// The calling thread's number and the notice of its end.

#include <atomic>
#include <cstdint>
#include <memory>

namespace weir::preload {

/// Unlike the system's number, never reused: a new thread's default stream is a new stream. A
/// thread that runs destructors of its variables after its end was reported gets a new number.
[[nodiscard]] std::uint64_t this_thread() noexcept;

/// Becomes true when the calling thread ends. Null if the system has no room. Throws
/// std::bad_alloc.
using ThreadEnded = std::shared_ptr<const std::atomic<bool>>;
[[nodiscard]] ThreadEnded end_of_this_thread();

/// Notes that the calling thread uses its own default stream, which other threads cannot name.
void use_own_stream() noexcept;

/// Which threads use their own default streams.
struct OwnStreams {
  bool here = false;        ///< the calling thread
  bool elsewhere = false;   ///< another live thread
  std::uint64_t ended = 0;  ///< number of ended threads that did
};
[[nodiscard]] OwnStreams own_streams() noexcept;

}  // namespace weir::preload
