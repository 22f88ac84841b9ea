#pragma once

// Joins slices of one row that are too short to see into runs.

#include <cstdint>
#include <vector>

#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// One slice, or several within one screen column. Times in nanoseconds.
struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t busy = 0;     ///< sum of its slices
  std::uint64_t count = 1;    ///< number of slices
  std::uint64_t longest = 0;  ///< duration of the slice that provides name, batch and category
  std::uint64_t bytes = 0;    ///< sum of its slices
  std::uint32_t name = 0;
  std::uint32_t batch = 0;
  std::uint32_t category = 0;

  friend bool operator==(const Run&, const Run&) = default;
};

/// Joins slices shorter than a column with their neighbours in that column.
class RunThinner {
 public:
  explicit RunThinner(Columns columns) : columns_(columns) {}

  /// Slices must come in order of `begin`.
  void add(const Run& run);
  /// Returns the completed row.
  [[nodiscard]] std::vector<Run> take();

 private:
  [[nodiscard]] bool joins(const Run& last, const Run& next) const;

  Columns columns_;
  std::vector<Run> out_;
};

/// Reduces a row to fewer columns.
[[nodiscard]] std::vector<Run> thin(const std::vector<Run>& runs, Columns columns);

}  // namespace weir::timeline
