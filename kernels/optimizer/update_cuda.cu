#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/optimizer/rules.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/sparse/weighted_rows_cuda.hpp"

namespace weir::cuda {
namespace {

__global__ void begin_kernel(StepState* state, double beta1, double beta2) {
  *state = begun(*state, beta1, beta2);
}

__global__ void end_kernel(StepState* state, LossScaling scaling) {
  *state = ended(*state, scaling);
}

/// Weights as a kernel's argument.
struct Elements {
  float* w = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  std::uint16_t* copy = nullptr;
  HalfKind kind = HalfKind::kBf16;

  explicit Elements(const Weights& weights)
      : w(weights.w.data()),
        first(weights.first.data()),
        second(weights.second.data()),
        copy(weights.copy.words.empty() ? nullptr : weights.copy.words.data()),
        kind(weights.copy.kind) {}

  __device__ std::uint16_t half_of(float weight) const {
    return kind == HalfKind::kBf16 ? bf16_of_float(weight) : fp16_of_float(weight);
  }
};

/// The elements from one index on, as many as T has: float or float4. Loads all before it stores
/// one.
template <typename Rule, typename T>
struct Loaded;

template <typename Rule>
struct Loaded<Rule, float> {
  Element e;

  __device__ Loaded(const Elements& all, std::size_t i) {
    e.w = all.w[i];
    if constexpr (Rule::kMoments > 0) e.first = all.first[i];
    if constexpr (Rule::kMoments > 1) e.second = all.second[i];
  }
  __device__ void step(const Rule& rule, float g) { rule.step(e, g); }
  __device__ void store(const Elements& all, std::size_t i) const {
    all.w[i] = e.w;
    if constexpr (Rule::kMoments > 0) all.first[i] = e.first;
    if constexpr (Rule::kMoments > 1) all.second[i] = e.second;
    if (all.copy != nullptr) all.copy[i] = all.half_of(e.w);
  }
};

template <typename Rule>
struct Loaded<Rule, float4> {
  float4 w{};
  float4 first{};
  float4 second{};

  __device__ Loaded(const Elements& all, std::size_t i) : w(load_four(all.w + i)) {
    if constexpr (Rule::kMoments > 0) first = load_four(all.first + i);
    if constexpr (Rule::kMoments > 1) second = load_four(all.second + i);
  }
  __device__ void step(const Rule& rule, float4 g) {
    step_one(rule, w.x, first.x, second.x, g.x);
    step_one(rule, w.y, first.y, second.y, g.y);
    step_one(rule, w.z, first.z, second.z, g.z);
    step_one(rule, w.w, first.w, second.w, g.w);
  }
  __device__ void store(const Elements& all, std::size_t i) const {
    store_four(all.w + i, w);
    if constexpr (Rule::kMoments > 0) store_four(all.first + i, first);
    if constexpr (Rule::kMoments > 1) store_four(all.second + i, second);
    if (all.copy == nullptr) return;
    *reinterpret_cast<ushort4*>(all.copy + i) =
        ushort4{all.half_of(w.x), all.half_of(w.y), all.half_of(w.z), all.half_of(w.w)};
  }

 private:
  __device__ static void step_one(const Rule& rule, float& w, float& first, float& second,
                                  float g) {
    Element e{w, first, second};
    rule.step(e, g);
    w = e.w;
    first = e.first;
    second = e.second;
  }
};

/// Changes the elements from i on by their gradient, which `gradient` returns: it is called after
/// the loads have begun, so that its own overlap with them.
template <typename T, typename Rule, typename Gradient>
__device__ void update_at(const Rule& rule, const Elements& all, std::size_t i,
                          const Gradient& gradient) {
  Loaded<Rule, T> loaded(all, i);
  loaded.step(rule, gradient());
  loaded.store(all, i);
}

/// Makes the step's rule, once for a block and so in shared memory; the block must then wait for
/// all its threads. The last thread does it, so that the first can do something else meanwhile.
template <typename Rule>
__device__ void make_rule(const OptimizerOptions& options, const StepState& state, Rule& rule) {
  if (threadIdx.x == blockDim.x - 1) rule = Rule::of(options, state);
}

/// Groups, and elements alone, of a block. Blocks are many and short, so that the device's own
/// order of them evens out how fast its multiprocessors are.
constexpr std::size_t kUpdateItems = std::size_t{4} * kBlockThreads;

/// Blocks that a multiprocessor must be able to hold at once: 6 have 1536 threads, and 96 KiB of
/// loads under way.
constexpr unsigned kUpdateBlocks = 6;

template <typename Rule>
__global__ void __launch_bounds__(kBlockThreads, kUpdateBlocks)
    update_kernel(OptimizerOptions options, const StepState* state, Elements all, const float* g,
                  Split split, std::size_t count) {
  if (state->overflow != 0) return;
  __shared__ Rule shared;
  make_rule(options, *state, shared);
  __syncthreads();
  const Rule rule = shared;
  const std::size_t begin = blockIdx.x * kUpdateItems;
  const auto end_of = [begin](std::size_t items) {
    return items < begin + kUpdateItems ? items : begin + kUpdateItems;
  };
  for (std::size_t k = begin + threadIdx.x; k < end_of(split.groups); k += kBlockThreads) {
    const std::size_t i = split.head + k * 4;
    update_at<float4>(rule, all, i, [&] { return load_four(g + i); });
  }
  const std::size_t grouped = split.groups * 4;
  for (std::size_t k = begin + threadIdx.x; k < end_of(count - grouped); k += kBlockThreads) {
    const std::size_t i = k < split.head ? k : k + grouped;
    update_at<float>(rule, all, i, [&] { return g[i]; });
  }
}

/// Groups of four need all floats at a boundary of 16 bytes, and the copy at one of 8.
template <typename Rule>
Split split_of(const Weights& weights, std::span<const float> g) {
  const float* const w = weights.w.data();
  const float* const first = Rule::kMoments > 0 ? weights.first.data() : w;
  const float* const second = Rule::kMoments > 1 ? weights.second.data() : w;
  const Split split = split_at_alignment(g.size(), 4, w, first, second, g.data());
  const auto copy = reinterpret_cast<std::uintptr_t>(weights.copy.words.data());
  const bool aligned = (copy + split.head * sizeof(std::uint16_t)) % 8 == 0;
  return weights.copy.words.empty() || aligned ? split : Split{};
}

/// A step without a state, by a rule whose loss scale is 1.
template <typename Rule>
struct PlainStep {
  static constexpr std::size_t kGroup = 4;
  Rule rule;
  Elements all;
  const float* g;

  __device__ void one(std::size_t i) const {
    update_at<float>(rule, all, i, [&] { return g[i]; });
  }
  __device__ void group(std::size_t i) const {
    update_at<float4>(rule, all, i, [&] { return load_four(g + i); });
  }
};

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

/// A block for each tile: many and short ones, as above.
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
  const auto* const copy = weights.copy.words.data();
  return n % 4 == 0 &&
         are_aligned(weights.w.data(), weights.first.data(), weights.second.data(), dy.data()) &&
         (weights.copy.words.empty() || reinterpret_cast<std::uintptr_t>(copy) % 8 == 0);
}

}  // namespace

void begin_step(cudaStream_t stream, std::span<float> state, double beta1, double beta2) {
  require_betas("begin_step", beta1, beta2);
  StepState* const on_device = device_step_state("begin_step", state);
  launch("begin_step", begin_kernel, {}, stream, on_device, beta1, beta2);
}

void end_step(cudaStream_t stream, std::span<float> state, const LossScaling& scaling) {
  require_scaling("end_step", scaling);
  launch("end_step", end_kernel, {}, stream, device_step_state("end_step", state), scaling);
}

void update(cudaStream_t stream, const OptimizerOptions& options, const Weights& weights,
            std::span<const float> g, std::span<const float> state) {
  require_update("update", options, weights);
  require_elements({"update", "g"}, g.size(), weights.w.size());
  const StepState* const on_device = device_step_state("update", state);
  if (g.empty()) return;
  with_rule(options.optimizer, [&]<typename Rule>() {
    const Split split = split_of<Rule>(weights, g);
    const std::size_t alone = g.size() - split.groups * 4;
    const std::size_t items = split.groups > alone ? split.groups : alone;
    const Grid grid{.blocks = static_cast<unsigned>((items + kUpdateItems - 1) / kUpdateItems),
                    .threads = kBlockThreads};
    launch("update", update_kernel<Rule>, grid, stream, options, on_device, Elements(weights),
           g.data(), split, g.size());
  });
}

void update_rows(cudaStream_t stream, const OptimizerOptions& options, const Weights& weights,
                 DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                 std::span<const float> state, UpdatedRows rows) {
  require_update("update_rows", options, weights);
  require_rows("update_rows", weights, shape, x, dy);
  const StepState* const on_device = device_step_state("update_rows", state);
  require_at_most("update_rows", "elements in a row", shape.n, kMostColumns);
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

void sgd(Stream stream, std::span<float> w, std::span<const float> g, float lr) {
  require_elements({"sgd", "g"}, g.size(), w.size());
  const PlainStep<SgdRule> step{{.unscale = 1, .rate = lr}, Elements({w, {}, {}, {}}), g.data()};
  launch_each("sgd", stream, step, w.size(), w.data(), g.data());
}

void sgd_momentum(Stream stream, std::span<float> w, std::span<const float> g, std::span<float> v,
                  float lr, float momentum) {
  require_elements({"sgd_momentum", "g"}, g.size(), w.size());
  require_elements({"sgd_momentum", "v"}, v.size(), w.size());
  const PlainStep<MomentumRule> step{
      {.unscale = 1, .rate = lr, .momentum = momentum}, Elements({w, v, {}, {}}), g.data()};
  launch_each("sgd_momentum", stream, step, w.size(), w.data(), g.data(), v.data());
}

}  // namespace weir::cuda
