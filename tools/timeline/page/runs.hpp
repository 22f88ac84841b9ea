#pragma once

// Slices of one lane, with those that are too short to see joined into runs.

#include <cstdint>
#include <vector>

#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// One slice, or several that lie in one column of the screen. Times in nanoseconds.
struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t busy = 0;     ///< sum of its slices
  std::uint64_t count = 1;    ///< of slices
  std::uint64_t longest = 0;  ///< duration of the slice that name, batch and category are of
  std::uint64_t bytes = 0;    ///< sum of its slices
  std::uint32_t name = 0;
  std::uint32_t batch = 0;
  std::uint32_t category = 0;

  friend bool operator==(const Run&, const Run&) = default;
};

/// Joins slices that are shorter than a column with their neighbours in it.
class RunThinner {
 public:
  explicit RunThinner(Columns columns) : columns_(columns) {}

  /// In order of `begin`.
  void add(const Run& run);
  /// Ends the lane and returns it.
  [[nodiscard]] std::vector<Run> take();

 private:
  [[nodiscard]] bool joins(const Run& last, const Run& next) const;

  Columns columns_;
  std::vector<Run> out_;
};

/// The same lane in fewer columns.
[[nodiscard]] std::vector<Run> thin(const std::vector<Run>& runs, Columns columns);

}  // namespace weir::timeline
