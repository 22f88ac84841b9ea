#pragma once

/// @file
/// The only way in which kernels are started. Kernels are plain functions to it, without the
/// launch syntax of nvcc, so that a host compiler can compile the same files against an emulation
/// of the thread model: such a one defines WEIR_LAUNCH_IS_EMULATED and `Grid` and `launch` itself,
/// before this is included.

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
/// copied now. Throws CudaError, with `name` in it, when the launch fails. A fault while the kernel
/// runs shows in a later call, as every one of a device does. Thread-safe.
template <typename... P, typename... A>
void launch(const char* name, void (*kernel)(P...), Grid grid, cudaStream_t stream,
            A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> parameters(static_cast<P>(arguments)...);
  const cudaError_t code = std::apply(
      [&](P&... each) {
        // One more than there are: an array of none is not allowed.
        void* addresses[sizeof...(P) + 1] = {static_cast<void*>(&each)..., nullptr};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.blocks),
                                dim3(grid.threads), addresses, 0, stream);
      },
      parameters);
  check_cuda(code, name);
}

}  // namespace weir::cuda

#endif
