#pragma once

// The calling thread: its number, and who learns of its end.

#include <atomic>
#include <cstdint>
#include <memory>

namespace weir::preload {

/// Never used again, unlike the system's: a new thread's default stream is a new stream. A thread
/// that goes on after it was told ended, in the destructors of its variables, gets another one.
[[nodiscard]] std::uint64_t this_thread() noexcept;

/// Becomes true when the calling thread ends. Null where the system has no room for it. Throws
/// std::bad_alloc.
using ThreadEnded = std::shared_ptr<const std::atomic<bool>>;
[[nodiscard]] ThreadEnded end_of_this_thread();

/// The calling thread uses its own default stream from now on: others have no name for it.
void use_own_stream() noexcept;

/// Who uses default streams of threads.
struct OwnStreams {
  bool here = false;        ///< the calling thread
  bool elsewhere = false;   ///< another one that has not ended
  std::uint64_t ended = 0;  ///< how many that ended did
};
[[nodiscard]] OwnStreams own_streams() noexcept;

}  // namespace weir::preload
