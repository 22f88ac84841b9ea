#pragma once

// Where sparse batches come from. Batch number i depends only on the source's arguments and i, so
// that a run may begin at any batch, and any thread may make it.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "trainer/sparse/sparse_draw.hpp"
#include "trainer/sparse/sparse_rows.hpp"

namespace weir {

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
