#pragma once

// Reports replay results as tables for people and as JSON for programs. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/measure/recommend.hpp"

namespace weir::replay {

/// The conditions of a replay besides the trace.
struct Setup {
  std::string upstream;  ///< a name of UpstreamKind
  Bytes capacity;
  std::uint64_t lag = 0;
  std::vector<SettingLine> settings{};  ///< of the program, for results_json
};

/// Describes the setup in one line.
[[nodiscard]] std::string setup_text(const Setup& setup);

/// The recommendation, and each candidate's environment variables.
struct Advice {
  std::optional<Recommendation> recommendation;  ///< nothing if no candidate completed
  std::vector<std::string> variables;
};

// The tables fit 100 columns. `wide` adds the columns with details and cuts nothing.

/// Returns a heading and a table for each trace.
[[nodiscard]] std::string results_text(std::span<const TraceResults> results, const Setup& setup,
                                       bool wide = false);
/// Returns one table: a row for each candidate, a column for each trace.
[[nodiscard]] std::string summary_text(std::span<const TraceResults> results, const Setup& setup,
                                       bool wide = false);
/// Returns a table for every breakdown, all sizes in one unit; empty if there is none.
[[nodiscard]] std::string breakdown_text(std::span<const TraceResults> results, const Setup& setup,
                                         bool wide = false);
/// Returns the advice as a paragraph, and for which lag it holds.
[[nodiscard]] std::string advice_text(const Advice& advice, const Setup& setup);
/// Returns the same figures as JSON: sizes in bytes, shares from 0 to 1.
[[nodiscard]] std::string results_json(std::span<const TraceResults> results, const Setup& setup,
                                       const std::optional<Advice>& advice = {});

/// Returns whether any replay ran out of memory with the whole capacity.
[[nodiscard]] bool any_refused(std::span<const TraceResults> results);

}  // namespace weir::replay
