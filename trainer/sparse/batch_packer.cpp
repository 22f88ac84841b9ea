#include "trainer/sparse/batch_packer.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

/// Their counts stay in the first cache.
constexpr unsigned kMostDigitBits = 11;

void copy_starts(const std::vector<std::uint64_t>& from, std::span<std::uint32_t> to) {
  std::ranges::transform(from, to.begin(),
                         [](std::uint64_t start) { return static_cast<std::uint32_t>(start); });
}

}  // namespace

/// A radix sort from the lowest digit up (D. Knuth, "The Art of Computer Programming" 3, 5.2.5).
/// It is stable, and entries come row by row, so those of a column stay in the order of rows.
void BatchPacker::sort_by_column(const SparseRows& rows) {
  const auto bits =
      static_cast<unsigned>(std::bit_width(std::max<std::size_t>(rows.columns, 2) - 1));
  const unsigned digits = (bits + kMostDigitBits - 1) / kMostDigitBits;
  const unsigned width = (bits + digits - 1) / digits;
  const std::uint32_t mask = (1U << width) - 1;
  const auto place = [&](unsigned digit, std::uint32_t column) -> std::uint32_t& {
    return places_[(digit << width) + ((column >> (digit * width)) & mask)];
  };

  places_.assign(std::size_t{digits} << width, 0);
  for (const std::uint32_t column : rows.indices) {
    for (unsigned digit = 0; digit < digits; ++digit) ++place(digit, column);
  }
  for (unsigned digit = 0; digit < digits; ++digit) {
    std::uint32_t next = 0;
    for (std::uint32_t value = 0; value <= mask; ++value) {
      next += std::exchange(places_[(digit << width) + value], next);
    }
  }

  sorted_.resize(rows.indices.size());
  spare_.resize(digits == 1 ? 0 : rows.indices.size());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::uint64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      const std::uint32_t column = rows.indices[i];
      sorted_[place(0, column)++] = {column, static_cast<std::uint32_t>(row), rows.values[i]};
    }
  }
  for (unsigned digit = 1; digit < digits; ++digit) {
    for (const Entry& entry : sorted_) spare_[place(digit, entry.column)++] = entry;
    std::swap(sorted_, spare_);
  }
}

PackedSizes BatchPacker::prepare(const SparseRows& rows) {
  if (rows.rows() == 0) throw UsageError("a batch of no rows cannot be packed");
  if (std::max({rows.rows(), rows.indices.size(), rows.labels.size()}) > kMostSparse) {
    throw UsageError("a batch of more than " + std::to_string(kMostSparse) +
                     " rows, entries or labels cannot be packed");
  }
  sort_by_column(rows);
  std::size_t touched = sorted_.empty() ? 0 : 1;
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    touched += sorted_[i].column != sorted_[i - 1].column ? 1U : 0U;
  }
  sizes_ = {.rows = rows.rows(),
            .entries = rows.indices.size(),
            .touched = touched,
            .labels = rows.labels.size()};
  return sizes_;
}

void BatchPacker::write(const SparseRows& rows, std::span<float> words) const {
  const SparseBatchParts parts = parts_of(words, sizes_);
  copy_starts(rows.starts, parts.row_starts);
  std::ranges::copy(rows.indices, parts.row_indices.begin());
  std::ranges::copy(rows.values, parts.row_values.begin());
  copy_starts(rows.label_starts, parts.label_starts);
  std::ranges::copy(rows.labels, parts.label_indices.begin());

  std::size_t column = 0;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    if (i == 0 || sorted_[i].column != sorted_[i - 1].column) {
      parts.touched[column] = sorted_[i].column;
      parts.column_starts[column++] = static_cast<std::uint32_t>(i);
    }
    parts.column_rows[i] = sorted_[i].row;
    parts.column_values[i] = sorted_[i].value;
  }
  parts.column_starts[column] = static_cast<std::uint32_t>(sorted_.size());
}

}  // namespace weir
