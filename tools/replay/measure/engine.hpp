#pragma once

// Replays a trace against a subject and reports the results.

#include <cstdint>
#include <functional>
#include <optional>

#include "tools/replay/read/trace.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::replay {

/// The first request of a trace that a subject could not serve.
struct Refusal {
  std::uint64_t operation = 0;  ///< from 1
  Bytes asked;
  Bytes requested;  ///< live at that time, as requested
  Footprint footprint;
};

/// The results of a replay. A peak is the highest level after any one operation.
struct Figures {
  std::uint64_t operations = 0;  ///< completed
  Bytes peak_requested;          ///< up to where the replay ended
  Bytes peak_allocated;          ///< zero if the subject does not report it
  Bytes peak_reserved;
  Bytes waste;                 ///< allocated less requested, at the peak of allocated
  Bytes free_at_peak;          ///< reserved less allocated, when reserved reached its peak
  Bytes largest_free_at_peak;  ///< the largest free block at that time
  std::uint64_t driver_calls = 0;
  std::uint64_t mapped_pages = 0;
  std::uint64_t waits = 0;
  std::optional<Refusal> refusal;  ///< what ended the replay, if it was refused

  /// Returns 1 − peak allocated / peak reserved, or nothing if allocated is unknown.
  [[nodiscard]] std::optional<double> fragmentation() const;
  /// Returns the largest free block over all free bytes, when reserved reached its peak. Returns
  /// nothing if no bytes were free.
  [[nodiscard]] std::optional<double> largest_free_share() const;
};

/// The effect of one operation, for pictures.
struct Step {
  std::uint64_t operation = 0;  ///< from 0
  const Operation& what;
  const void* pointer = nullptr;  ///< of the buffer
  Bytes requested;                ///< live after it, as requested
  const Footprint& footprint;     ///< after it
};
using Observe = std::function<void(const Step&)>;

/// Replays `trace` to its end or to the first refusal, then frees the live buffers. Measures the
/// subject after each operation and calls `observe`, if given.
[[nodiscard]] Figures replay(const Trace& trace, Subject& subject, const Observe& observe = {});

/// Returns whether `subject` serves the whole of `trace`. Measures nothing else.
[[nodiscard]] bool completes(const Trace& trace, Subject& subject);

/// Returns nanoseconds per operation of a replay without measurements, up to where it ended.
[[nodiscard]] double time_replay(const Trace& trace, Subject& subject);

}  // namespace weir::replay
