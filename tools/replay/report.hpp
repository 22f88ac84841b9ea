#pragma once

// What replays came to, as a table for people and as JSON for programs. Pure.

#include <span>
#include <string>

#include "tools/replay/measure.hpp"

namespace weir::replay {

/// What every figure depends on besides the trace.
struct Setup {
  std::string upstream;  ///< as parse_upstream reads it
  Bytes capacity;
  std::uint64_t lag = 0;
};

/// A heading and a table for each trace.
[[nodiscard]] std::string results_text(std::span<const TraceResults> results, const Setup& setup);
/// The same figures: sizes in bytes, shares from 0 to 1.
[[nodiscard]] std::string results_json(std::span<const TraceResults> results, const Setup& setup);

/// Whether any replay ran out of memory with the whole capacity.
[[nodiscard]] bool any_refused(std::span<const TraceResults> results);

}  // namespace weir::replay
