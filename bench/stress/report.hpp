#pragma once

// The tables of the stress benchmarks, as text. Pure.

#include <span>
#include <string>
#include <vector>

#include "bench/stress/run_ahead.hpp"

namespace weir::bench {

/// A pattern's row: a cell for each allocator.
struct PatternRow {
  std::string name;
  std::string what;  ///< a short description
  std::vector<std::string> cells{};
};

/// Returns a table of patterns and allocators, within 100 columns. `wide` adds what the patterns do
/// and folds nothing. pattern_legend explains the rows.
[[nodiscard]] std::string pattern_table(const std::vector<std::string>& allocators,
                                        const std::vector<PatternRow>& rows, bool wide);

/// Returns what each pattern does, a line each; empty if the table is `wide` and says so itself.
[[nodiscard]] std::string pattern_legend(const std::vector<PatternRow>& rows, bool wide);

/// Returns the table of run-ahead by policy, with its legend.
[[nodiscard]] std::string run_ahead_table(const std::vector<RunAheadFigures>& rows, bool wide);

}  // namespace weir::bench
