#pragma once

// Where sparse batches come from. Batch number i depends only on the source's arguments and i, so
// that a run may begin at any batch, and any thread may make it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stop_token>
#include <vector>

namespace weir {

// Rows of sparse inputs and their labels in host memory: a data set, or a batch before it is
// packed.

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

/// The shape of made rows; see SparseDraw.
struct SparseShape {
  std::size_t columns = 0;      ///< at most SparseDraw::kMostColumns
  std::size_t classes = 0;      ///< at most kMostSparse
  std::size_t nnz = 0;          ///< mean entries of a row; half as many more must fit its columns
  std::size_t most_labels = 3;  ///< a row has from one to this many
};

/// Made rows that look like text: a few columns are in most rows, most columns in few; and some of
/// a row's columns follow from its labels, so that the labels can be learned.
///
/// Draws rows by number. Row i depends only on the shape, the seed and i, on every machine.
///
/// Column and class number k (counted by frequency) is drawn with a probability that falls as 1 / k
/// in steps of powers of two (Zipf's law); frequent columns are spread over the width. A row has
/// from nnz / 2 to 3 nnz / 2 entries. For each of its labels, an eighth of them are from the
/// class's own columns. Values are whole thousandths, from 0.001 to 1.
class SparseDraw {
 public:
  static constexpr std::size_t kMostColumns = std::size_t{1} << 26U;

  /// Throws UsageError if a number is 0 or too large.
  SparseDraw(const SparseShape& shape, std::uint64_t seed);

  /// Adds row `number` to `rows`, and sets its widths. Thread-safe for different `rows`.
  void append(std::uint64_t number, SparseRows& rows) const;

  [[nodiscard]] const SparseShape& shape() const noexcept { return shape_; }

 private:
  const SparseShape shape_;
  const std::uint64_t seed_;
  const std::uint64_t step_;  ///< from one column to the next less frequent one
};

/// Adds the rows of batch number `index` to `rows`, which are empty, and sets their widths. Several
/// threads may call it at a time, with different `rows`.
using SparseSource = std::function<void(std::uint64_t index, SparseRows& rows)>;

/// Batches in each epoch's order: see epoch_order. Batch `index` begins at row `index %
/// batches_per_epoch * rows_per_batch` of epoch `index / batches_per_epoch`. The last batch of an
/// epoch has what is left.
[[nodiscard]] SparseSource shuffled_rows(std::shared_ptr<const SparseRows> data,
                                         std::uint64_t rows_per_batch, std::uint64_t seed);
/// Batches in the order of the file, starting again after its last row. `data` must outlive it.
[[nodiscard]] SparseSource ordered_rows(const SparseRows& data, std::uint64_t rows_per_batch);
/// Batches without a file, each of new rows: batch `index` begins with row `index * rows_per_batch`
/// of `draw`. A call throws Cancelled once `stop` is requested: a batch may have any number of
/// rows.
[[nodiscard]] SparseSource generated_rows(SparseDraw draw, std::uint64_t rows_per_batch,
                                          std::stop_token stop = {});

}  // namespace weir
