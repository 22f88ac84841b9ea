#pragma once

// What replays came to, as a table for people and as JSON for programs. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/measure.hpp"
#include "tools/replay/measure/recommend.hpp"

namespace weir::replay {

/// What every figure depends on besides the trace.
struct Setup {
  std::string upstream;  ///< as parse_upstream reads it
  Bytes capacity;
  std::uint64_t lag = 0;
};

/// In one line.
[[nodiscard]] std::string setup_text(const Setup& setup);

/// What is recommended, for each candidate the variables that choose it.
struct Advice {
  std::optional<Recommendation> recommendation;  ///< nothing where no candidate completed
  std::vector<std::string> variables;
};

/// A heading and a table for each trace.
[[nodiscard]] std::string results_text(std::span<const TraceResults> results, const Setup& setup);
/// One table for all of them: a row for each candidate, a column for each trace.
[[nodiscard]] std::string summary_text(std::span<const TraceResults> results, const Setup& setup);
/// A table of every breakdown among them; nothing where there is none.
[[nodiscard]] std::string breakdown_text(std::span<const TraceResults> results);
/// A paragraph.
[[nodiscard]] std::string advice_text(const Advice& advice);
/// The same figures: sizes in bytes, shares from 0 to 1.
[[nodiscard]] std::string results_json(std::span<const TraceResults> results, const Setup& setup,
                                       const std::optional<Advice>& advice = {});

/// Whether any replay ran out of memory with the whole capacity.
[[nodiscard]] bool any_refused(std::span<const TraceResults> results);

}  // namespace weir::replay
