#pragma once

// Replays a trace against a subject and says what came of it.

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
  Bytes requested;  ///< live then, by what was asked for
  Footprint footprint;
};

/// What a replay came to. A peak is the highest level after any one operation.
struct Figures {
  std::uint64_t operations = 0;  ///< that were done
  Bytes peak_requested;          ///< as far as the replay came
  Bytes peak_allocated;          ///< zero where the subject does not say
  Bytes peak_reserved;
  Bytes waste;                 ///< allocated less requested, when allocated was at its peak
  Bytes free_at_peak;          ///< reserved less allocated, when reserved came to its peak
  Bytes largest_free_at_peak;  ///< the largest of it
  std::uint64_t driver_calls = 0;
  std::uint64_t mapped_pages = 0;
  std::uint64_t waits = 0;
  std::optional<Refusal> refusal;  ///< the replay ended there

  /// 1 − peak allocated / peak reserved; nothing where allocated is not known.
  [[nodiscard]] std::optional<double> fragmentation() const;
  /// The largest free block over all free bytes, when reserved came to its peak; nothing where
  /// nothing was free.
  [[nodiscard]] std::optional<double> largest_free_share() const;
};

/// What an operation did, for who draws it.
struct Step {
  std::uint64_t operation = 0;  ///< from 0
  const Operation& what;
  const void* pointer = nullptr;  ///< of the buffer
  Bytes requested;                ///< live after it, by what was asked for
  const Footprint& footprint;     ///< after it
};
using Observe = std::function<void(const Step&)>;

/// Replays `trace` up to its end or to the first refusal, then frees what is still live. Looks at
/// the subject after each operation, and tells `observe`, if given.
[[nodiscard]] Figures replay(const Trace& trace, Subject& subject, const Observe& observe = {});

/// Whether `subject` serves the whole of `trace`. Looks at nothing else.
[[nodiscard]] bool completes(const Trace& trace, Subject& subject);

/// Nanoseconds an operation of a replay that looks at nothing, up to where it ended.
[[nodiscard]] double time_replay(const Trace& trace, Subject& subject);

}  // namespace weir::replay
