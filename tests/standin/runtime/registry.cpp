#include "tests/standin/runtime/registry.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

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

}  // namespace weir::standin

// No header declares these: nvcc writes the declarations into its code.
extern "C" {

using namespace weir::standin;

void** __cudaRegisterFatBinary(void* code) {
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

}  // extern "C"
