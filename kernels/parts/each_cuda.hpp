#pragma once

/// @file
/// Kernels that treat each element alone, for the sources of this folder. The work on an element is
/// a structure with
///
///   static constexpr std::size_t kGroup          how many neighbours are done at once
///   __device__ void one(std::size_t i) const     element i
///   __device__ void group(std::size_t i) const   elements i ... i + kGroup - 1, by 16-byte
///   accesses
///
/// whose pointers are not restricted: an input may be the output. Each reads all its elements
/// before it writes one.

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/parts/grid_cuda.hpp"
#include "kernels/parts/launch_cuda.hpp"

namespace weir::cuda {

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
    const bool aligned = ((reinterpret_cast<std::uintptr_t>(data + head) % 16 == 0) && ...);
    if (aligned) return {.head = head, .groups = (count - head) / group};
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

/// Loads four neighbours at once; `data` must be aligned to 16 bytes.
__device__ inline float4 load_four(const float* data) {
  return *reinterpret_cast<const float4*>(data);
}
__device__ inline void store_four(float* data, float4 value) {
  *reinterpret_cast<float4*>(data) = value;
}

}  // namespace weir::cuda
