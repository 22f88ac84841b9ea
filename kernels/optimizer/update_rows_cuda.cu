#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/elements_cuda.hpp"
#include "kernels/optimizer/update_cuda.hpp"
#include "kernels/parts/step_state_cuda.hpp"
#include "kernels/sparse/weighted_rows_cuda.hpp"

namespace weir::cuda {
namespace {

/// Elements of a tile, which a block takes at a time: enough that finding its rows costs little
/// beside them.
constexpr std::size_t kTileElements = 8192;
/// One thread finds one row.
constexpr std::size_t kMostTileRows = kBlockThreads;
/// Entries of a column that are loaded at once. Few, since most columns have one or two,
/// and each takes registers.
constexpr std::size_t kEntriesTogether = 2;
/// Blocks that a multiprocessor must be able to hold at once: 4 have 1024 threads, and 48 KiB of
/// loads under way.
constexpr unsigned kRowUpdateBlocks = 4;
/// An index within a row or a tile has 32 bits.
constexpr std::size_t kMostColumns = std::size_t{1} << 31U;

/// The layer of a call. Tiles are of its rows, or of the touched ones alone.
struct RowLayer {
  std::size_t rows = 0;     ///< to change
  std::uint32_t width = 0;  ///< of a row, in float or float4
  std::uint32_t tile_rows = 0;
  bool all = false;  ///< whether untouched rows change
  const float* dy = nullptr;
  const std::uint32_t* touched = nullptr;
  std::size_t touched_count = 0;
  const std::uint32_t* starts = nullptr;
  const std::uint32_t* entry_rows = nullptr;
  const float* values = nullptr;
};

/// A row of w and its entries.
struct TileRow {
  std::uint32_t row;
  std::uint32_t begin;
  std::uint32_t end;
};

/// The i-th row to change.
__device__ TileRow find_row(const RowLayer& layer, std::size_t i) {
  if (!layer.all) return {layer.touched[i], layer.starts[i], layer.starts[i + 1]};
  const auto row = static_cast<std::uint32_t>(i);
  std::size_t below = 0;  // touched columns before the row
  std::size_t end = layer.touched_count;
  while (below < end) {
    const std::size_t middle = below + (end - below) / 2;
    if (layer.touched[middle] < row) {
      below = middle + 1;
    } else {
      end = middle;
    }
  }
  if (below == layer.touched_count || layer.touched[below] != row) return {row, 0, 0};
  return {row, layer.starts[below], layer.starts[below + 1]};
}

/// A block for each tile: many and short ones, as in update_cuda.cu.
template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads, kRowUpdateBlocks)
    update_rows_kernel(OptimizerOptions options, const StepState* state, Elements all,
                       RowLayer layer) {
  constexpr std::size_t kGroup = sizeof(T) / sizeof(float);
  if (state->overflow != 0) return;
  __shared__ Rule shared;
  __shared__ TileRow tile[kMostTileRows];
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * layer.tile_rows;
  const std::size_t left = layer.rows - first;
  const std::uint32_t rows =
      left < layer.tile_rows ? static_cast<std::uint32_t>(left) : layer.tile_rows;
  make_rule(options, *state, shared);
  if (threadIdx.x < rows) tile[threadIdx.x] = find_row(layer, first + threadIdx.x);
  __syncthreads();
  const Rule rule = shared;
  const T* const dy = reinterpret_cast<const T*>(layer.dy);
  // Threads beside each other take neighbouring columns of one row, and whole rows of a block's
  // threads at a time if a row is short.
  const std::uint32_t lanes = layer.width < kBlockThreads ? layer.width : kBlockThreads;
  const std::uint32_t at_once = kBlockThreads / lanes;
  if (threadIdx.x >= at_once * lanes) return;
  for (std::uint32_t r = threadIdx.x / lanes; r < rows; r += at_once) {
    const TileRow one = tile[r];
    const std::size_t start = static_cast<std::size_t>(one.row) * layer.width;
    for (std::uint32_t column = threadIdx.x % lanes; column < layer.width; column += lanes) {
      update_at<T>(rule, all, (start + column) * kGroup, [&] {
        return sum_weighted_rows<kEntriesTogether>(layer.entry_rows + one.begin,
                                                   layer.values + one.begin, one.end - one.begin,
                                                   dy + column, layer.width);
      });
    }
  }
}

bool in_fours(const Weights& weights, std::size_t n, std::span<const float> dy) {
  const auto aligned = [](const auto* data, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;  // true for none
  };
  return n % 4 == 0 && aligned(weights.w.data(), 16) && aligned(weights.first.data(), 16) &&
         aligned(weights.second.data(), 16) && aligned(dy.data(), 16) &&
         (weights.copy.words.empty() || aligned(weights.copy.words.data(), 8));
}

}  // namespace

void update_rows(cudaStream_t stream, const OptimizerOptions& options, const Weights& weights,
                 DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                 std::span<const float> state, UpdatedRows rows) {
  require_update("update_rows", options, weights);
  require_rows("update_rows", weights, shape, x, dy);
  const StepState* const on_device = device_step_state("update_rows", state);
  if (shape.n > kMostColumns) {
    throw UsageError("update_rows: a row has " + std::to_string(shape.n) +
                     " elements, expected at most " + std::to_string(kMostColumns));
  }
  const bool all = rows == UpdatedRows::kAll && moments_of(options.optimizer) > 0;
  const std::size_t count = all ? shape.k : x.touched.size();
  if (count == 0 || shape.n == 0) return;
  const bool fours = in_fours(weights, shape.n, dy);
  const std::size_t tile_rows = std::clamp<std::size_t>(kTileElements / shape.n, 1, kMostTileRows);
  const RowLayer layer{.rows = count,
                       .width = static_cast<std::uint32_t>(fours ? shape.n / 4 : shape.n),
                       .tile_rows = static_cast<std::uint32_t>(tile_rows),
                       .all = all,
                       .dy = dy.data(),
                       .touched = x.touched.data(),
                       .touched_count = x.touched.size(),
                       .starts = x.starts.data(),
                       .entry_rows = x.rows.data(),
                       .values = x.values.data()};
  const Grid grid{.blocks = static_cast<unsigned>((count + tile_rows - 1) / tile_rows),
                  .threads = kBlockThreads};
  with_rule(options.optimizer, [&]<typename Rule>() {
    launch("update_rows",
           fours ? update_rows_kernel<Rule, float4> : update_rows_kernel<Rule, float>, grid, stream,
           options, on_device, Elements(weights), layer);
  });
}

}  // namespace weir::cuda
