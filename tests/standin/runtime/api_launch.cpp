// Launches, and attributes of a kernel.

#include "tests/standin/runtime/registry.hpp"
#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

/// The runtime's code for the driver's result of a launch.
CUresult of_launch(CUresult result) {
  if (result == CUDA_ERROR_NOT_FOUND) return static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  if (result == CUDA_ERROR_INVALID_VALUE) {
    return static_cast<CUresult>(cudaErrorInvalidConfiguration);
  }
  return result;
}

CUresult unknown_function() { return static_cast<CUresult>(cudaErrorInvalidDeviceFunction); }

cudaError_t launch(DefaultStream meant, CUfunction function, dim3 grid, dim3 block,
                   void** arguments, std::size_t shared_bytes, cudaStream_t stream) {
  return on_stream(meant, [&](const Calls& driver) {
    if (function == nullptr) return unknown_function();
    return of_launch(driver.cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                           block.z, static_cast<unsigned int>(shared_bytes), stream,
                                           arguments, nullptr));
  });
}

/// A look-up needs a context, like the launch.
cudaError_t launch_symbol(DefaultStream meant, const void* symbol, dim3 grid, dim3 block,
                          void** arguments, std::size_t shared_bytes, cudaStream_t stream) {
  const cudaError_t error = use_device();
  if (error != cudaSuccess) return note(error);
  return launch(meant, function_of(symbol), grid, block, arguments, shared_bytes, stream);
}

cudaError_t launch_config(DefaultStream meant, const cudaLaunchConfig_t* config, const void* symbol,
                          void** arguments) {
  if (config == nullptr) return note_own(cudaErrorInvalidValue);
  return launch_symbol(meant, symbol, config->gridDim, config->blockDim, arguments,
                       config->dynamicSmemBytes, config->stream);
}

template <typename Body>
cudaError_t with_function(const void* symbol, Body body) {
  return with_context([&](const Calls& driver) {
    CUfunction function = function_of(symbol);
    return function == nullptr ? unknown_function() : body(driver, function);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* symbol, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch_symbol(DefaultStream::kLegacy, symbol, grid, block, arguments, shared_bytes,
                       stream);
}
cudaError_t cudaLaunchKernel_ptsz(const void* symbol, dim3 grid, dim3 block, void** arguments,
                                  size_t shared_bytes, cudaStream_t stream) {
  return launch_symbol(DefaultStream::kPerThread, symbol, grid, block, arguments, shared_bytes,
                       stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* symbol,
                                void** arguments) {
  return launch_config(DefaultStream::kLegacy, config, symbol, arguments);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* symbol,
                                     void** arguments) {
  return launch_config(DefaultStream::kPerThread, config, symbol, arguments);
}

// nvcc's code for a launch with <<<>>>.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return with_function(symbol, [&](const Calls& /*driver*/, CUfunction function) {
    *kernel = reinterpret_cast<cudaKernel_t>(function);
    return CUDA_SUCCESS;
  });
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return __cudaGetKernel(kernel, symbol);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return launch(DefaultStream::kLegacy, reinterpret_cast<CUfunction>(kernel), grid, block,
                arguments, shared_bytes, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes, cudaStream_t stream) {
  return launch(DefaultStream::kPerThread, reinterpret_cast<CUfunction>(kernel), grid, block,
                arguments, shared_bytes, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
  return with_function(symbol, [&](const Calls& driver, CUfunction function) {
    if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *attributes = {};
    CUresult result = driver.cuFuncGetAttribute(&attributes->maxThreadsPerBlock,
                                                CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    if (result != CUDA_SUCCESS) return result;
    result = driver.cuFuncGetAttribute(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (result != CUDA_SUCCESS) return result;
    return driver.cuFuncGetAttribute(&attributes->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION,
                                     function);
  });
}

cudaError_t cudaFuncSetAttribute(const void* symbol, cudaFuncAttribute attribute, int value) {
  return with_function(symbol, [&](const Calls& driver, CUfunction function) {
    return driver.cuFuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* symbol,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned int flags) {
  return with_function(symbol, [&](const Calls& driver, CUfunction function) {
    return driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                       shared_bytes, flags);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* symbol,
                                                          int threads, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, symbol, threads,
                                                                shared_bytes, 0);
}

}  // extern "C"
