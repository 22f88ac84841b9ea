#pragma once

// Maps images to batches: which image is where in which epoch. Pure functions.

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/idx.hpp"
#include "trainer/data/reader.hpp"

namespace weir {

/// Returns the numbers 0 … count − 1, each once, in an order that depends only on (seed, epoch).
/// All orders are equally likely: Fisher-Yates swaps (R. Durstenfeld, "Algorithm 235: Random
/// permutation", CACM 7, 1964), drawn from Philox without remainder bias.
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint32_t count, std::uint64_t seed,
                                                     std::uint64_t epoch);

/// Batches in each epoch's order: inputs are pixels / 255, a row's target is its label. The spans
/// set the number of rows; batch `index` starts at row `(index % batches_per_epoch) *
/// rows_per_batch` of epoch `index / batches_per_epoch`.
[[nodiscard]] BatchSource shuffled_source(std::shared_ptr<const DataSet> data,
                                          std::uint64_t rows_per_batch, std::uint64_t seed);
/// Batches in file order, starting again after the last image. `images` must outlive it.
[[nodiscard]] BatchSource ordered_source(const LabelledImages& images,
                                         std::uint64_t rows_per_batch);

/// Returns the number of batches of `rows` out of `items`; the last may be smaller.
[[nodiscard]] constexpr std::uint64_t batches_of(std::uint64_t items, std::uint64_t rows) noexcept {
  return (items + rows - 1) / rows;
}

}  // namespace weir
