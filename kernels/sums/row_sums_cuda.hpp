#pragma once

/// @file
/// The sum of a term for each row of a batch, such as its loss. For the kernels' sources.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "kernels/sums/sum_tiles_cuda.hpp"

namespace weir::cuda {

/// out[0] = the finished sum of the rows' terms, in reduce.hpp's order.
///
/// `enqueue_terms(begin, rows, terms)` enqueues what writes the terms of `rows` rows from `begin`
/// on; it is called for at most kRowsAtOnce rows at a time, whose terms are at the front of the
/// scratch memory. The rest of that, at least 4 * kSumTile elements, is for the sums. kRowsAtOnce
/// is a power of two of tiles, so that it divides TileSums' capacity.
template <std::size_t kRowsAtOnce, typename EnqueueTerms>
void sum_of_rows(const char* name, cudaStream_t stream, std::size_t rows,
                 const EnqueueTerms& enqueue_terms, Finish finish, float* out,
                 std::span<float> scratch) {
  static_assert(std::has_single_bit(kRowsAtOnce) && kRowsAtOnce / kSumTile <= kSumTile);
  const std::span<float> terms = scratch.first(kRowsAtOnce);
  TileSums sums(name, stream, scratch.subspan(kRowsAtOnce));
  for (std::size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, rows - begin);
    enqueue_terms(begin, count, terms.data());
    const bool alone = rows <= kSumTile;
    float* const tile_sums = alone ? out : sums.next(tiles_of(count));
    launch_tiles(name, stream, ElementTerms{terms.data()}, true, count, tile_sums,
                 alone ? finish : Finish{});
    if (alone) return;
  }
  sums.finish(finish, out);
}

}  // namespace weir::cuda
