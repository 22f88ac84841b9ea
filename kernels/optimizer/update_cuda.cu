#include <cstddef>
#include <cstdint>

#include "kernels/optimizer/elements_cuda.hpp"
#include "kernels/optimizer/update_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/step_state_cuda.hpp"

namespace weir::cuda {
namespace {

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

}  // namespace

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

}  // namespace weir::cuda
