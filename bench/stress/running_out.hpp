#pragma once

// Runs a pattern in too little memory and checks the allocator afterwards.

#include <cstdint>
#include <span>
#include <string>

#include "tools/replay/read/trace.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

enum class Ending : std::uint8_t {
  kCompleted,
  kClean,        ///< a request was refused without any other effect
  kUnclean,      ///< a request was refused, with a fault afterwards
  kCannotBegin,  ///< refuses even the smallest request when nothing is live
};

struct RunningOut {
  Ending ending = Ending::kCompleted;
  std::uint64_t refused_at =
      0;  ///< the refused operation, from 1; with several threads, the number of refusals
  std::string wrong;  ///< the fault
};

/// Replays `trace` on what `make` makes of `capacity`. Where a request is refused, asks whether
///  - the byte counts are as they were before it, and agree with each other and with what is live;
///  - a smaller request is served: a half of it, a quarter and so on, down to 512 bytes, or else,
///  once
///    one live buffer is freed, one as large as half of that buffer;
///  - once all is freed nothing is held, and the refused request is served, if a new subject of
///  that
///    capacity would serve it.
[[nodiscard]] RunningOut run_out(const replay::Trace& trace, const replay::MakeSubject& make,
                                 Bytes capacity);

/// Replays each trace on its own thread, all on one subject. A thread continues without a refused
/// buffer. Then checks the counts as above.
[[nodiscard]] RunningOut run_out_threads(std::span<const replay::Trace> traces,
                                         const replay::MakeSubject& make, Bytes capacity);

/// The results of threads that share a subject.
struct ThreadsFigures {
  Bytes peak_requested;  ///< of all threads together, as it happened
  Bytes peak_reserved;  ///< the highest level seen by any thread, which checks every few operations
  std::uint64_t refused = 0;  ///< number of refused requests
};
[[nodiscard]] ThreadsFigures replay_threads(std::span<const replay::Trace> traces,
                                            replay::Subject& subject);

}  // namespace weir::bench
