#pragma once

// Packs a batch of rows for the device: by rows, by columns, and its labels.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sparse/packed.hpp"
#include "trainer/sparse/sparse_rows.hpp"

namespace weir {

/// Keeps its working memory, so use one for many batches. One thread at a time.
class BatchPacker {
 public:
  /// Sorts the entries by column and returns the sizes. Throws UsageError if there is no row, or
  /// more than kMostSparse rows, entries or labels.
  [[nodiscard]] PackedSizes prepare(const SparseRows& rows);
  /// Writes the rows of the last `prepare`, which have not changed since, in the layout of
  /// packed.hpp. Throws UsageError if `words` are not exactly packed_words of its sizes.
  void write(const SparseRows& rows, std::span<float> words) const;

 private:
  struct Entry {
    std::uint32_t column;
    std::uint32_t row;
    float value;
  };
  void sort_by_column(const SparseRows& rows);

  PackedSizes sizes_;
  std::vector<Entry> sorted_;  ///< by column, then by row
  std::vector<Entry> spare_;
  std::vector<std::uint32_t> places_;  ///< of each digit's values, where the next one goes
};

}  // namespace weir
