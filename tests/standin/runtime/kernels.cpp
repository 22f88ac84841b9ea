// The kernels and variables that nvcc's code registers when the program starts, and launches.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/standin/after_fork.hpp"
#include "tests/standin/runtime/runtime.hpp"

namespace weir::standin {
namespace {

/// One per program or library compiled by nvcc, whose code holds it as a void**.
struct Module {
  void* code = nullptr;
  CUlibrary library = nullptr;
};

struct KernelOf {
  Module* module = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

struct Registry {
  std::mutex mutex;
  std::map<void**, std::unique_ptr<Module>> modules;
  std::map<const void*, KernelOf> kernels;
};

Registry& registry() {
  static auto* const kRegistry = new Registry;
  return *kRegistry;
}

struct Launch {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<Launch> configurations;

/// Needs the registry's lock.
CUkernel load(KernelOf& known) {
  const Calls& driver = library().legacy;
  if (known.kernel != nullptr) return known.kernel;
  Module& module = *known.module;
  if (module.library == nullptr &&
      driver.cuLibraryLoadData(&module.library, module.code, nullptr, nullptr, 0, nullptr, nullptr,
                               0) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (driver.cuLibraryGetKernel(&known.kernel, module.library, known.name.c_str()) !=
      CUDA_SUCCESS) {
    return nullptr;
  }
  return known.kernel;
}

}  // namespace

CUfunction function_of(const void* symbol) {
  if (library().function_of != nullptr) {
    if (CUfunction function = library().function_of(symbol); function != nullptr) return function;
  }
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.kernels.find(symbol);
  if (found == known.kernels.end()) return nullptr;
  CUkernel kernel = load(found->second);
  CUfunction function = nullptr;
  if (kernel == nullptr ||
      library().legacy.cuKernelGetFunction(&function, kernel) != CUDA_SUCCESS) {
    return nullptr;
  }
  return function;
}

namespace {

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
}  // namespace weir::standin

// No header declares these: nvcc writes the declarations into its code.
extern "C" {

using namespace weir::standin;

void** __cudaRegisterFatBinary(void* code) {
  if (is_forked()) return nullptr;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  auto module = std::make_unique<Module>();
  module->code = code;
  auto** handle = reinterpret_cast<void**>(module.get());
  known.modules.emplace(handle, std::move(module));
  return handle;
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (is_forked()) return;  // a child that ends
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.modules.find(handle);
  if (found == known.modules.end()) return;
  std::erase_if(known.kernels,
                [&](const auto& entry) { return entry.second.module == found->second.get(); });
  known.modules.erase(found);
}

char __cudaInitModule(void** /*handle*/) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host_function, char* /*device_function*/,
                            const char* device_name, int /*thread_limit*/, uint3* /*thread*/,
                            uint3* /*block*/, dim3* /*block_dim*/, dim3* /*grid_dim*/,
                            int* /*warp_size*/) {
  if (is_forked()) return;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.modules.find(handle);
  if (found == known.modules.end()) return;
  known.kernels[host_function] = {found->second.get(), device_name, nullptr};
}

// Device variables are not simulated: a query of one returns an error.
void __cudaRegisterVar(void** /*handle*/, char* /*variable*/, char* /*address*/,
                       const char* /*name*/, int /*extern*/, size_t /*bytes*/, int /*constant*/,
                       int /*global*/) {}
void __cudaRegisterManagedVar(void** /*handle*/, void** /*variable*/, char* /*address*/,
                              const char* /*name*/, int /*extern*/, size_t /*bytes*/,
                              int /*constant*/, int /*global*/) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  if (configurations.empty()) return note_own(cudaErrorMissingConfiguration);
  const Launch launch = configurations.back();
  configurations.pop_back();
  *grid = launch.grid;
  *block = launch.block;
  *shared_bytes = launch.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = launch.stream;
  return cudaSuccess;
}

// NAME and its variant for per-thread default streams. CALL gets the default stream and the rest.
#define BOTH(name, parameters, call, ...)                                           \
  cudaError_t name parameters { return call(DefaultStream::kLegacy, __VA_ARGS__); } \
  cudaError_t name##_ptsz parameters { return call(DefaultStream::kPerThread, __VA_ARGS__); }

BOTH(cudaLaunchKernel,
     (const void* symbol, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
      cudaStream_t stream),
     launch_symbol, symbol, grid, block, arguments, shared_bytes, stream)
BOTH(cudaLaunchKernelExC, (const cudaLaunchConfig_t* config, const void* symbol, void** arguments),
     launch_config, config, symbol, arguments)
// nvcc's code for a launch with <<<>>>.
BOTH(__cudaLaunchKernel,
     (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
      cudaStream_t stream),
     launch, reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared_bytes, stream)

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return with_function(symbol, [&](const Calls& /*driver*/, CUfunction function) {
    *kernel = reinterpret_cast<cudaKernel_t>(function);
    return CUDA_SUCCESS;
  });
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return __cudaGetKernel(kernel, symbol);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
  return with_function(symbol, [&](const Calls& driver, CUfunction function) {
    if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *attributes = {};
    CUresult result = CUDA_SUCCESS;
    const auto ask = [&](int* value, CUfunction_attribute attribute) {
      if (result == CUDA_SUCCESS) result = driver.cuFuncGetAttribute(value, attribute, function);
    };
    ask(&attributes->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    ask(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
    ask(&attributes->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    return result;
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

#undef BOTH
