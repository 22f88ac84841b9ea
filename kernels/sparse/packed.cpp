#include "kernels/sparse/packed.hpp"

#include <string>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

/// Cuts words off the front, one part after another.
class Cutter {
 public:
  Cutter(std::span<float> words, const PackedSizes& sizes) : rest_(words) {
    const std::size_t needed = packed_words(sizes);
    if (words.size() == needed) return;
    throw UsageError("a packed batch has " + std::to_string(words.size()) +
                     " words, but its sizes take " + std::to_string(needed));
  }
  [[nodiscard]] std::span<float> values(std::size_t count) {
    const std::span<float> part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }
  [[nodiscard]] std::span<std::uint32_t> numbers(std::size_t count) {
    const std::span<float> part = values(count);
    return {reinterpret_cast<std::uint32_t*>(part.data()), part.size()};
  }

 private:
  std::span<float> rest_;
};

}  // namespace

std::size_t packed_words(const PackedSizes& sizes) noexcept {
  const std::size_t by_rows = sizes.rows + 1 + 2 * sizes.entries;
  const std::size_t by_columns = sizes.touched + sizes.touched + 1 + 2 * sizes.entries;
  return by_rows + by_columns + sizes.rows + 1 + sizes.labels;
}

SparseBatchParts parts_of(std::span<float> words, const PackedSizes& sizes) {
  Cutter cut(words, sizes);
  // Braces keep the order: it is that of the members.
  return {.row_starts = cut.numbers(sizes.rows + 1),
          .row_indices = cut.numbers(sizes.entries),
          .row_values = cut.values(sizes.entries),
          .touched = cut.numbers(sizes.touched),
          .column_starts = cut.numbers(sizes.touched + 1),
          .column_rows = cut.numbers(sizes.entries),
          .column_values = cut.values(sizes.entries),
          .label_starts = cut.numbers(sizes.rows + 1),
          .label_indices = cut.numbers(sizes.labels)};
}

SparseBatch unpack(std::span<const float> words, const PackedSizes& sizes, SparseWidths widths) {
  const std::size_t own = sizes.own_rows();
  if (sizes.part_first + own > sizes.rows) {
    throw UsageError("a part of a packed batch ends at row " +
                     std::to_string(sizes.part_first + own) + " of " + std::to_string(sizes.rows));
  }
  // Only views of const leave here.
  const SparseBatchParts p =
      parts_of({const_cast<float*>(words.data()), words.size()}, sizes);  // NOLINT
  return {.rows = {.columns = widths.columns,
                   .starts = p.row_starts.subspan(sizes.part_first, own + 1),
                   .indices = p.row_indices,
                   .values = p.row_values},
          .columns = {.touched = p.touched,
                      .starts = p.column_starts,
                      .rows = p.column_rows,
                      .values = p.column_values},
          .labels = {.classes = widths.classes,
                     .starts = p.label_starts.subspan(sizes.part_first, own + 1),
                     .indices = p.label_indices,
                     .batch_rows = sizes.part_rows == 0 ? 0 : sizes.rows}};
}

}  // namespace weir
