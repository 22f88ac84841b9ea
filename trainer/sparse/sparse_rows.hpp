#pragma once

// Rows of sparse inputs and their labels in host memory: a data set, or a batch before it is
// packed.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace weir {

/// The most rows, columns and classes: their numbers and counts have 32 bits on the device.
inline constexpr std::uint64_t kMostSparse = std::numeric_limits<std::uint32_t>::max();

struct SparseRows {
  std::size_t columns = 0;
  std::size_t classes = 0;
  std::vector<std::uint64_t> starts{0};        ///< rows + 1: where the entries of each row begin
  std::vector<std::uint32_t> indices{};        ///< column of each entry, ascending within a row
  std::vector<float> values{};                 ///< as many, all finite
  std::vector<std::uint64_t> label_starts{0};  ///< rows + 1
  std::vector<std::uint32_t> labels{};         ///< ascending within a row, each below `classes`

  [[nodiscard]] std::size_t rows() const noexcept { return starts.size() - 1; }

  /// Removes all rows, and keeps the memory for new ones.
  void clear() {
    starts.resize(1);
    indices.clear();
    values.clear();
    label_starts.resize(1);
    labels.clear();
  }
  /// Makes a row of the entries and labels that were added since the last one.
  void end_row() {
    starts.push_back(indices.size());
    label_starts.push_back(labels.size());
  }
  /// Copies row `row` of `from` to the end.
  void append(const SparseRows& from, std::size_t row) {
    const auto copy = [](const auto& all, const auto& bounds, std::size_t i, auto& to) {
      to.insert(to.end(), all.data() + bounds[i], all.data() + bounds[i + 1]);
    };
    copy(from.indices, from.starts, row, indices);
    copy(from.values, from.starts, row, values);
    copy(from.labels, from.label_starts, row, labels);
    end_row();
  }

  friend bool operator==(const SparseRows&, const SparseRows&) = default;
};

}  // namespace weir
