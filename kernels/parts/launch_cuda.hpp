#pragma once

/// @file
/// The only way to start a kernel. Uses plain functions without nvcc's launch syntax, so that a
/// host compiler can compile the same files against an emulated thread model. Such an emulation
/// defines WEIR_LAUNCH_IS_EMULATED and its own `Grid` and `launch` before it includes this.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <tuple>
#include <utility>

#include "allocator/base/error_cuda.hpp"

#if !defined(WEIR_LAUNCH_IS_EMULATED)

namespace weir::cuda {

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
  check_cuda(code, name);
}

}  // namespace weir::cuda

#endif
