#pragma once

// Rows of numbers over time, reduced for a screen without losing a peak.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::timeline {

/// Rows of `width` numbers each. The first number of a row is its time in nanoseconds; rows are in
/// order of time.
struct Series {
  std::size_t width = 1;
  std::vector<std::int64_t> values;  ///< row by row

  [[nodiscard]] std::size_t rows() const noexcept { return values.size() / width; }
  [[nodiscard]] std::span<const std::int64_t> row(std::size_t index) const noexcept {
    return std::span(values).subspan(index * width, width);
  }
};

/// Divides the time into equal columns.
struct Columns {
  std::uint64_t duration = 1;  ///< of the whole timeline, in nanoseconds
  std::uint32_t count = 1;     ///< number of columns

  /// Returns the column of a time; later times belong to the last one.
  [[nodiscard]] std::uint32_t of(std::uint64_t time) const noexcept;
  /// Returns the length of a column in nanoseconds, at least 1.
  [[nodiscard]] std::uint64_t width() const noexcept;
};

/// Keeps at most four unchanged rows of each column: those with the largest second, the smallest
/// second and the largest third number, and the last one, which holds until the next row.
class SeriesThinner {
 public:
  /// `width` is at least 3.
  SeriesThinner(std::size_t width, Columns columns);

  /// `row` has `width` numbers; its time is not before that of the previous row.
  void add(std::span<const std::int64_t> row);
  /// Returns the completed series.
  [[nodiscard]] Series take();

 private:
  struct Kept {
    std::uint64_t order = 0;  ///< order of arrival
    std::vector<std::int64_t> row;
  };
  void keep(Kept& kept, std::span<const std::int64_t> row) const;
  void end_column();

  Columns columns_;
  Series out_;
  std::uint64_t arrived_ = 0;
  std::uint32_t column_ = 0;
  bool empty_ = true;
  Kept largest_;
  Kept smallest_;
  Kept largest_third_;
  Kept last_;
};

/// Reduces a series to fewer columns.
[[nodiscard]] Series thin(const Series& series, Columns columns);

// Joins slices of one row that are too short to see into runs.

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

/// Adds a slice to a row, in order of `begin`. Joins slices that are shorter than a column with
/// their neighbours in that column.
void add_to_row(std::vector<Run>& row, const Run& run, Columns columns);
/// Reduces a row to fewer columns.
[[nodiscard]] std::vector<Run> thin(const std::vector<Run>& runs, Columns columns);

}  // namespace weir::timeline
