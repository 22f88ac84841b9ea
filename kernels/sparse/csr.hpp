#pragma once

/// @file
/// A batch of sparse rows as the kernels read it: by rows (CSR), the same entries by columns, and
/// the labels of each row. Plain views of memory that others own, on the host or on a device.
///
/// Starts count entries from 0: row i has the entries from starts[i] up to, but not including,
/// starts[i + 1]. The first start is 0 and the last is the number of entries, unless these are some
/// rows of a batch whose entries are all there. At most 2^32 - 1
/// entries, rows and columns. Whoever fills a batch makes sure of all this (packed.hpp);
/// kernels check the sizes alone, since the contents may be on a device.

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

/// The entries of a matrix [rows x columns], row by row.
struct CsrRows {
  std::size_t columns = 0;
  std::span<const std::uint32_t> starts;   ///< rows + 1
  std::span<const std::uint32_t> indices;  ///< the column of each entry, ascending within a row
  std::span<const float> values;           ///< as many

  [[nodiscard]] std::size_t rows() const noexcept { return starts.empty() ? 0 : starts.size() - 1; }
};

/// The same entries, column by column. Columns without entries are not in it.
struct CsrColumns {
  std::span<const std::uint32_t> touched;  ///< columns that have entries, ascending
  std::span<const std::uint32_t> starts;   ///< touched + 1
  std::span<const std::uint32_t> rows;     ///< the row of each entry, ascending within a column
  std::span<const float> values;           ///< as many
};

/// The classes of each row. A row may have none.
struct SparseLabels {
  std::size_t classes = 0;
  std::span<const std::uint32_t> starts;   ///< rows + 1
  std::span<const std::uint32_t> indices;  ///< ascending within a row, each below `classes`
  /// Not 0: these rows are some of a batch with this many. `starts` are then those of the batch,
  /// `indices` the labels of all of it, and a loss is this part of the batch's mean.
  std::size_t batch_rows = 0;

  [[nodiscard]] std::size_t rows() const noexcept { return starts.empty() ? 0 : starts.size() - 1; }
  /// Returns the rows over which a loss is the mean.
  [[nodiscard]] std::size_t mean_rows() const noexcept {
    return batch_rows == 0 ? rows() : batch_rows;
  }
};

}  // namespace weir
