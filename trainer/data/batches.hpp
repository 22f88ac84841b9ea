#pragma once

// How images become batches: which image is at which place in which epoch. Pure functions.

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/idx.hpp"
#include "trainer/data/reader.hpp"

namespace weir {

/// The numbers 0 … count − 1, each once, in an order that depends on (seed, epoch) alone. Every
/// order is as likely as any other: the swaps of Fisher and Yates (R. Durstenfeld, "Algorithm 235:
/// Random permutation", CACM 7, 1964), each drawn from Philox without the bias of a remainder.
[[nodiscard]] std::vector<std::uint32_t> epoch_order(std::uint32_t count, std::uint64_t seed,
                                                     std::uint64_t epoch);

/// Batches of the images in the order of each epoch: inputs are pixels / 255, the target of a row
/// is its label. The spans say how many rows; batch `index` starts at row
/// `(index % batches_per_epoch) * rows_per_batch` of epoch `index / batches_per_epoch`.
[[nodiscard]] BatchSource shuffled_source(std::shared_ptr<const DataSet> data,
                                          std::uint64_t rows_per_batch, std::uint64_t seed);
/// Batches of the images in the order of the file, from the start again after the last. `images`
/// must outlive it.
[[nodiscard]] BatchSource ordered_source(const LabelledImages& images,
                                         std::uint64_t rows_per_batch);

/// Of `items` rows, `rows` at a time; the last may be smaller.
[[nodiscard]] constexpr std::uint64_t batches_of(std::uint64_t items, std::uint64_t rows) noexcept {
  return (items + rows - 1) / rows;
}

}  // namespace weir
