#pragma once

/// @file
/// Starts kernels; no other code does. Also chooses the number of threads, and has operations of a
/// warp and kernels that treat each element alone.
///
/// Uses plain functions without nvcc's launch syntax, so that a host compiler can compile the same
/// files against an emulated thread model. Such an emulation defines WEIR_LAUNCH_IS_EMULATED and
/// its own `Grid` and `launch` before it includes this.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "kernels/parts/check.hpp"

#if !defined(WEIR_LAUNCH_IS_EMULATED)

namespace weir::cuda {

/// Throws CudaError unless a launch of `name` succeeded.
void check_launch(cudaError_t code, const char* name);

/// One-dimensional: `blocks` blocks of `threads` threads, neither zero.
struct Grid {
  unsigned blocks = 1;
  unsigned threads = 1;
};

/// Enqueues `kernel` on `stream` with `arguments`, each converted to its parameter's type and
/// copied now. Throws CudaError with `name` if the launch fails. A fault in the running kernel is
/// reported by a later call. Thread-safe.
template <typename... P, typename... A>
void launch(const char* name, void (*kernel)(P...), Grid grid, cudaStream_t stream,
            A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> parameters(static_cast<P>(arguments)...);
  const cudaError_t code = std::apply(
      [&](P&... each) {
        // One extra, because an empty array is not allowed.
        void* addresses[sizeof...(P) + 1] = {static_cast<void*>(&each)..., nullptr};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.blocks),
                                dim3(grid.threads), addresses, 0, stream);
      },
      parameters);
  check_launch(code, name);
}

}  // namespace weir::cuda

#endif

namespace weir::cuda {

/// Threads of every block: a multiple of the 32 lanes of a warp.
inline constexpr unsigned kBlockThreads = 256;

/// Lanes of a warp.
inline constexpr unsigned kWarpLanes = 32;

/// Warps of every block.
inline constexpr unsigned kBlockWarps = kBlockThreads / kWarpLanes;

/// Returns the blocks for `items` pieces of work, `items_of_block` per block at once: as many as
/// fill the current device, and no more than needed. Grid-stride loops do the rest, with the same
/// results for any grid. Thread-safe. Throws CudaError if the device cannot be queried.
[[nodiscard]] Grid grid_for(std::size_t items, std::size_t items_of_block = kBlockThreads);

#if defined(__CUDACC__) || defined(WEIR_LAUNCH_IS_EMULATED)

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Step 3 of reduce.hpp's order. Lane 0 gets the sum; the other lanes' results are undefined.
__device__ inline float fold_lanes(float value) {
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    value += __shfl_down_sync(kAllLanes, value, half);
  }
  return value;
}

/// Returns the sum of fold_lanes to each lane.
__device__ inline float fold_lanes_to_all(float value) {
  return __shfl_sync(kAllLanes, fold_lanes(value), 0);
}

/// Returns the largest of all lanes' values to each lane. No value is NaN.
__device__ inline float largest_of_lanes(float value) {
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, static_cast<int>(half));
    value = other > value ? other : value;
  }
  return value;
}

/// Loads four neighbours at once; `data` must be aligned to 16 bytes.
__device__ inline float4 load_four(const float* data) {
  return *reinterpret_cast<const float4*>(data);
}
__device__ inline void store_four(float* data, float4 value) {
  *reinterpret_cast<float4*>(data) = value;
}

/// Calls `work` for each of the four places of some float4s, and returns the results.
template <typename Work, typename... Four>
__device__ float4 each_of_four(const Work& work, const Four&... fours) {
  return float4{work(fours.x...), work(fours.y...), work(fours.z...), work(fours.w...)};
}

/// Whether all of `data` may be accessed sixteen bytes at a time.
template <typename... T>
[[nodiscard]] bool are_aligned(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % 16 == 0) && ...);
}

// Kernels that treat each element alone. The work on an element is a structure with
//
//   static constexpr std::size_t kGroup          how many neighbours are done at once
//   __device__ void one(std::size_t i) const     element i
//   __device__ void group(std::size_t i) const   elements i ... i + kGroup - 1, by 16-byte accesses
//
// whose pointers are not restricted: an input may be the output. Each reads all its elements
// before it writes one.

/// How a call's elements are split: `head` alone, then `groups` groups, then the rest alone.
struct Split {
  std::size_t head = 0;
  std::size_t groups = 0;
};

/// Groups start at the first element where all of `data` are aligned to 16 bytes. There are none if
/// there is no such element.
template <typename... T>
[[nodiscard]] Split split_at_alignment(std::size_t count, std::size_t group, const T*... data) {
  for (std::size_t head = 0; head < group && head < count; ++head) {
    if (are_aligned((data + head)...)) return {.head = head, .groups = (count - head) / group};
  }
  return {};
}

template <typename Each>
__global__ void each_kernel(Each each, Split split, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t start = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::size_t g = start; g < split.groups; g += stride) {
    each.group(split.head + g * Each::kGroup);
  }
  const std::size_t grouped = split.groups * Each::kGroup;
  for (std::size_t i = start; i < count - grouped; i += stride) {
    each.one(i < split.head ? i : i + grouped);
  }
}

/// Enqueues `each` for elements 0 ... count - 1, if there are any.
template <typename Each, typename... T>
void launch_each(const char* name, cudaStream_t stream, Each each, std::size_t count,
                 const T*... data) {
  if (count == 0) return;
  const Split split = split_at_alignment(count, Each::kGroup, data...);
  const std::size_t alone = count - split.groups * Each::kGroup;
  const std::size_t threads = split.groups > alone ? split.groups : alone;
  launch(name, each_kernel<Each>, grid_for(threads), stream, each, split, count);
}

#endif

}  // namespace weir::cuda
