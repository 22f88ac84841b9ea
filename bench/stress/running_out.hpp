#pragma once

// What becomes of a pattern in too little memory, and of the allocator after it.

#include <cstdint>
#include <span>
#include <string>

#include "tools/replay/read/trace.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

enum class Ending : std::uint8_t {
  kCompleted,
  kClean,        ///< a request was refused, and it changed nothing
  kUnclean,      ///< it was, and something was wrong after it
  kCannotBegin,  ///< it refuses even the smallest request when nothing is live
};

struct RunningOut {
  Ending ending = Ending::kCompleted;
  std::uint64_t refused_at =
      0;              ///< the operation, from 1; of several threads how many were refused
  std::string wrong;  ///< what was not as it should be
};

/// Replays `trace` on what `make` makes of `capacity`. Where a request is refused, asks whether
///  - the books are as they were before it, and agree with themselves and with what is live;
///  - a smaller request is served: a half of it, a quarter and so on, down to 512 bytes, or else,
///  once
///    one live buffer is freed, one as large as half of that buffer;
///  - once all is freed nothing is held, and the refused request is served, if a new subject of
///  that
///    capacity would serve it.
[[nodiscard]] RunningOut run_out(const replay::Trace& trace, const replay::MakeSubject& make,
                                 Bytes capacity);

/// Replays each trace on a thread of its own, all on one subject. A thread goes on without a buffer
/// that it was refused. Then asks for the books, as above.
[[nodiscard]] RunningOut run_out_threads(std::span<const replay::Trace> traces,
                                         const replay::MakeSubject& make, Bytes capacity);

/// What threads that share a subject came to.
struct ThreadsFigures {
  Bytes peak_requested;       ///< of all threads together, as it came about
  Bytes peak_reserved;        ///< the highest that a thread met, which looks every few operations
  std::uint64_t refused = 0;  ///< requests
};
[[nodiscard]] ThreadsFigures replay_threads(std::span<const replay::Trace> traces,
                                            replay::Subject& subject);

}  // namespace weir::bench
