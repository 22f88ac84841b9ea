#pragma once

/// @file
/// A sparse batch in one piece of memory, so that it reaches a device in one copy: words of four
/// bytes in the order of SparseBatch's members, without gaps. Tensors hold float32, so the integers
/// among them travel as their bytes.

#include <cstdint>
#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// What decides the layout. Differs from batch to batch.
struct PackedSizes {
  std::size_t rows = 0;     ///< at least 1
  std::size_t entries = 0;  ///< inputs that are not zero
  std::size_t touched = 0;  ///< columns that have entries
  std::size_t labels = 0;   ///< of all rows together
  /// The rows that are worked on, where each of several ranks works on some; 0: all. They do not
  /// change the layout.
  std::size_t part_rows = 0;
  std::size_t part_first = 0;

  [[nodiscard]] std::size_t own_rows() const noexcept { return part_rows == 0 ? rows : part_rows; }
  friend bool operator==(const PackedSizes&, const PackedSizes&) = default;
};

/// The width of the inputs and of the outputs.
struct SparseWidths {
  std::size_t columns = 0;
  std::size_t classes = 0;
};

struct SparseBatch {
  CsrRows rows;
  CsrColumns columns;
  SparseLabels labels;
};

/// The same to be filled in.
struct SparseBatchParts {
  std::span<std::uint32_t> row_starts;
  std::span<std::uint32_t> row_indices;
  std::span<float> row_values;
  std::span<std::uint32_t> touched;
  std::span<std::uint32_t> column_starts;
  std::span<std::uint32_t> column_rows;
  std::span<float> column_values;
  std::span<std::uint32_t> label_starts;
  std::span<std::uint32_t> label_indices;
};

/// Returns the words that a batch takes.
[[nodiscard]] std::size_t packed_words(const PackedSizes& sizes) noexcept;

/// Returns the views of a packed batch, which may be on a device. The rows and the labels are those
/// of the part, if there is one; the columns are those of the batch. Throws UsageError if `words`
/// are not exactly as many as the sizes take. Thread-safe.
[[nodiscard]] SparseBatch unpack(std::span<const float> words, const PackedSizes& sizes,
                                 SparseWidths widths);
/// The same for host memory that is to be filled in.
[[nodiscard]] SparseBatchParts parts_of(std::span<float> words, const PackedSizes& sizes);

}  // namespace weir
