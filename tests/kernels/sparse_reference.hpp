#pragma once

// Sparse matrices for the tests of kernels/sparse: made at random, by columns, and made dense.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/parts/philox.hpp"
#include "kernels/sparse/csr.hpp"
#include "tests/kernels/reference.hpp"

namespace weir::reference {

struct SparseRows {
  std::size_t columns = 0;
  std::vector<std::uint32_t> starts{0};
  std::vector<std::uint32_t> indices{};
  std::vector<float> values{};

  [[nodiscard]] std::size_t rows() const { return starts.size() - 1; }
  [[nodiscard]] CsrRows view() const { return {columns, starts, indices, values}; }
  /// Ends a row: the entries since the last end are its.
  void end_row() { starts.push_back(static_cast<std::uint32_t>(indices.size())); }
};

struct SparseColumns {
  std::vector<std::uint32_t> touched;
  std::vector<std::uint32_t> starts{0};
  std::vector<std::uint32_t> rows;
  std::vector<float> values{};

  [[nodiscard]] CsrColumns view() const { return {touched, starts, rows, values}; }
};

struct ClassLists {
  std::size_t classes = 0;
  std::vector<std::uint32_t> starts{0};
  std::vector<std::uint32_t> indices{};

  [[nodiscard]] std::size_t rows() const { return starts.size() - 1; }
  [[nodiscard]] SparseLabels view() const { return {classes, starts, indices}; }
  void end_row() { starts.push_back(static_cast<std::uint32_t>(indices.size())); }
  [[nodiscard]] bool has(std::size_t row, std::size_t class_index) const {
    for (std::uint32_t l = starts[row]; l < starts[row + 1]; ++l) {
      if (indices[l] == class_index) return true;
    }
    return false;
  }
};

/// A matrix's size and how many of a thousand of its elements are entries, on the average.
struct Sparsity {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::uint32_t per_mille = 0;
};

/// Calls `found(row, column)` for each element of a random pattern, row by row, and `end_row()`
/// after each row.
template <typename Found, typename EndRow>
void draw_pattern(Sparsity sparsity, std::uint32_t seed, const Found& found,
                  const EndRow& end_row) {
  for (std::uint32_t i = 0; i < sparsity.rows; ++i) {
    for (std::uint32_t j = 0; j < sparsity.columns; ++j) {
      if (philox4x32({.x = i, .y = j}, {.x = seed}).x % 1000 < sparsity.per_mille) found(i, j);
    }
    end_row();
  }
}

/// Entries from N(0, 1).
[[nodiscard]] inline SparseRows random_sparse(Sparsity sparsity, std::uint32_t seed) {
  SparseRows x{.columns = sparsity.columns};
  draw_pattern(
      sparsity, seed, [&](std::uint32_t, std::uint32_t j) { x.indices.push_back(j); },
      [&] { x.end_row(); });
  x.values = random_numbers(x.indices.size(), seed);
  return x;
}

[[nodiscard]] inline ClassLists random_classes(Sparsity sparsity, std::uint32_t seed) {
  ClassLists labels{.classes = sparsity.columns};
  draw_pattern(
      sparsity, seed, [&](std::uint32_t, std::uint32_t j) { labels.indices.push_back(j); },
      [&] { labels.end_row(); });
  return labels;
}

/// The same entries by columns.
[[nodiscard]] inline SparseColumns by_columns(const SparseRows& x) {
  SparseColumns turned;
  for (std::uint32_t column = 0; column < x.columns; ++column) {
    for (std::uint32_t i = 0; i < x.rows(); ++i) {
      for (std::uint32_t e = x.starts[i]; e < x.starts[i + 1]; ++e) {
        if (x.indices[e] != column) continue;
        turned.rows.push_back(i);
        turned.values.push_back(x.values[e]);
      }
    }
    if (turned.rows.size() == turned.starts.back()) continue;
    turned.touched.push_back(column);
    turned.starts.push_back(static_cast<std::uint32_t>(turned.rows.size()));
  }
  return turned;
}

[[nodiscard]] inline std::vector<float> made_dense(const SparseRows& x) {
  std::vector<float> all(x.rows() * x.columns);
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::uint32_t e = x.starts[i]; e < x.starts[i + 1]; ++e) {
      all[i * x.columns + x.indices[e]] = x.values[e];
    }
  }
  return all;
}

}  // namespace weir::reference
