// Kernels: a launch copies its arguments, and the stream's thread runs the host function. Modules
// and libraries: device code is not read, each has every requested kernel and takes the configured
// memory of the device.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"
#include "tests/standin/standin.hpp"

namespace weir::standin {
namespace {

/// The target of CUfunction and CUkernel. Never freed: handles of kernels do not end.
struct Kernel {
  const void* symbol = nullptr;
  void (*run)(const WeirStandinLaunch*) = nullptr;  ///< null: known by name only
  std::vector<std::size_t> sizes;
};

struct Kernels {
  std::map<std::string, Kernel> by_name;  ///< in the device's code
  std::map<const void*, Kernel> by_symbol;
};

Kernels& kernels() {
  static auto* const kKernels = new Kernels;
  return *kKernels;
}

/// The arguments at the time of the launch.
class Arguments {
 public:
  Arguments(const std::vector<std::size_t>& sizes, void** arguments) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      // new provides the widest alignment of a parameter.
      auto& copy = copies_.emplace_back(std::max<std::size_t>(sizes[i], 1));
      std::memcpy(copy.data(), arguments[i], sizes[i]);
      addresses_.push_back(copy.data());
    }
  }
  /// Treats every value that looks like a pointer to the driver's memory as one.
  void touch(Driver& driver, const std::vector<std::size_t>& sizes,
             std::vector<Touch>& touches) const {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::uintptr_t pointer = 0;
      if (sizes[i] != sizeof pointer) continue;
      std::memcpy(&pointer, copies_[i].data(), sizeof pointer);
      standin::touch(driver, pointer, touches);
    }
  }
  [[nodiscard]] void** addresses() { return addresses_.data(); }

 private:
  std::vector<std::vector<unsigned char>> copies_;
  std::vector<void*> addresses_;
};

bool valid(const dim3& grid, const dim3& block, unsigned int shared_bytes) {
  constexpr unsigned kMostShared = 227 << 10;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647 || grid.y > 65535 ||
      grid.z > 65535) {
    return false;
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 ||
      block.z > 64) {
    return false;
  }
  return block.x * block.y * block.z <= 1024 && shared_bytes <= kMostShared;
}

CUresult launch(CUfunction function, dim3 grid, dim3 block, unsigned int shared_bytes,
                CUstream handle, void** arguments, void** extra) {
  return api("cuLaunchKernel", Needs::kContext, [&](Call& call) {
    require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
    const auto& kernel = *reinterpret_cast<const Kernel*>(function);
    require(kernel.run != nullptr, CUDA_ERROR_NOT_FOUND);
    require(extra == nullptr, CUDA_ERROR_NOT_SUPPORTED);
    require(valid(grid, block, shared_bytes) && (arguments != nullptr || kernel.sizes.empty()));
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    auto copies = std::make_shared<Arguments>(kernel.sizes, arguments);
    auto* const run = kernel.run;
    const void* symbol = kernel.symbol;
    Operation operation{.is_kernel = true};
    operation.work = [=] {
      const WeirStandinLaunch launch{symbol, grid, block, shared_bytes, copies->addresses()};
      run(&launch);
    };
    copies->touch(call.driver, kernel.sizes, operation.touches);
    submit(call, stream, std::move(operation));
    end_launch(call, stream);
  });
}

/// Waits until the set number of loads have come, long enough for any that will.
void meet(Call& call) {
  Driver& driver = call.driver;
  if (driver.loads_to_meet < 2) return;
  const std::uint64_t meeting = driver.load_meetings;
  if (++driver.loads_waiting == driver.loads_to_meet) {
    driver.loads_waiting = 0;
    ++driver.load_meetings;
    driver.loads_met.notify_all();
    return;
  }
  if (driver.loads_met.wait_for(call.lock, std::chrono::minutes(5),
                                [&] { return driver.load_meetings != meeting; })) {
    return;
  }
  --driver.loads_waiting;
  pass(CUDA_ERROR_LAUNCH_TIMEOUT);
}

CUresult load_module(const char* name, CUmodule* module, const void* image,
                     const char* file = nullptr) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    require(file == nullptr || access(file, R_OK) == 0, CUDA_ERROR_FILE_NOT_FOUND);
    require(module != nullptr && image != nullptr);
    const std::size_t bytes = call.driver.module_memory;
    call.context->device->charge(bytes);
    *module = call.driver.modules.add({.context = call.context, .charged = bytes});
    meet(call);
  });
}

/// A library needs no context. If there is one, its code is loaded into it.
CUresult load_library(const char* name, CUlibrary* library, const void* code,
                      const char* file = nullptr) {
  return api(name, Needs::kDriver, [&](Call& call) {
    require(file == nullptr || access(file, R_OK) == 0, CUDA_ERROR_FILE_NOT_FOUND);
    require(library != nullptr && code != nullptr);
    Module made;
    if (!this_thread().contexts.empty()) {
      made.context = find_context(call.driver, this_thread().contexts.back());
    }
    if (made.context != nullptr) {
      made.charged = call.driver.module_memory;
      made.context->device->charge(made.charged);
    }
    *library = call.driver.libraries.add(made);
    meet(call);
  });
}

template <typename Handle>
CUresult unload(const char* name, Needs needs, Handles<Handle, Module> Driver::*all,
                Handle handle) {
  return api(name, needs, [&](Call& call) {
    const Module module = (call.driver.*all).get(handle, CUDA_ERROR_INVALID_HANDLE);
    if (module.context != nullptr) module.context->device->credit(module.charged);
    (call.driver.*all).remove(handle);
  });
}

/// The function or kernel NAMED, created at first use.
template <typename Out, typename Handle>
CUresult get_kernel(const char* name, Needs needs, Handles<Handle, Module> Driver::*all, Out* out,
                    Handle handle, const char* named) {
  return api(name, needs, [&](Call& call) {
    (void)(call.driver.*all).get(handle, CUDA_ERROR_INVALID_HANDLE);
    require(out != nullptr && named != nullptr);
    *out = reinterpret_cast<Out>(&kernels().by_name[named]);
  });
}

}  // namespace
}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

void weir_standin_register_kernel(const void* symbol, const char* name,
                                  void (*run)(const WeirStandinLaunch*), const std::size_t* sizes,
                                  std::size_t count) {
  control([&](Call& /*call*/) {
    const auto fill = [&](Kernel& kernel) {
      kernel.symbol = symbol;
      kernel.run = run;
      kernel.sizes.assign(sizes, sizes + count);
    };
    if (name != nullptr) fill(kernels().by_name[name]);
    if (symbol != nullptr) fill(kernels().by_symbol[symbol]);
  });
}

/// For the stand-in runtime, through cuGetProcAddress: the function of a kernel that is known by
/// its address and not by nvcc's registration. Null if there is none.
CUfunction weir_standin_function_of(const void* symbol) {
  return control([&](Call& /*call*/) {
    const auto found = kernels().by_symbol.find(symbol);
    return found == kernels().by_symbol.end() ? nullptr
                                              : reinterpret_cast<CUfunction>(&found->second);
  });
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return load_module("cuModuleLoad", module, file, file);
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module("cuModuleLoadData", module, image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return load_module("cuModuleLoadDataEx", module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_module("cuModuleLoadFatBinary", module, image);
}
CUresult cuModuleUnload(CUmodule module) {
  return unload("cuModuleUnload", Needs::kCanCapture, &Driver::modules, module);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return get_kernel("cuModuleGetFunction", Needs::kContext, &Driver::modules, function, module,
                    name);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  return load_library("cuLibraryLoadData", library, code);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  return load_library("cuLibraryLoadFromFile", library, file, file);
}
CUresult cuLibraryUnload(CUlibrary library) {
  return unload("cuLibraryUnload", Needs::kDriver, &Driver::libraries, library);
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return get_kernel("cuLibraryGetKernel", Needs::kDriver, &Driver::libraries, kernel, library,
                    name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return api("cuKernelGetFunction", Needs::kContext, [&](Call& /*call*/) {
    require(kernel != nullptr);
    given(function) = reinterpret_cast<CUfunction>(kernel);
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return api("cuFuncGetAttribute", Needs::kContext, [&](Call& /*call*/) {
    require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
    given(value) = 0;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = 1024;
    if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = 32;
    if (attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION) *value = 90;
    if (attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION) *value = 90;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) *value = 48 << 10;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) {
  return api("cuFuncSetAttribute", Needs::kContext,
             [&](Call& /*call*/) { require(function != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t, unsigned int) {
  return api("cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::kContext, [&](Call& /*call*/) {
    require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
    require(threads > 0);
    given(blocks) = threads > 1024 ? 0 : std::min(32, 2048 / threads);
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                              shared_bytes, 0);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** arguments, void** extra) {
  return launch(function, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                shared_bytes, stream, arguments, extra);
}
WEIR_PTSZ(cuLaunchKernel,
          (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
           unsigned int block_x, unsigned int block_y, unsigned int block_z,
           unsigned int shared_bytes, CUstream stream, void** arguments, void** extra),
          function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
          arguments, extra)

// On a device all blocks of such a grid run at once; here they run one after the other.
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** arguments) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                        stream, arguments, nullptr);
}
WEIR_PTSZ(cuLaunchCooperativeKernel,
          (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
           unsigned int block_x, unsigned int block_y, unsigned int block_z,
           unsigned int shared_bytes, CUstream stream, void** arguments),
          function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
          arguments)

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (config == nullptr) {
    return api("cuLaunchKernel", Needs::kContext, [](Call&) { return CUDA_ERROR_INVALID_VALUE; });
  }
  return launch(function, dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
                dim3(config->blockDimX, config->blockDimY, config->blockDimZ),
                config->sharedMemBytes, config->hStream, arguments, extra);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** arguments,
                               void** extra) {
  if (config == nullptr) return cuLaunchKernelEx(config, function, arguments, extra);
  CUlaunchConfig own = *config;
  own.hStream = per_thread(config->hStream);
  return cuLaunchKernelEx(&own, function, arguments, extra);
}

}  // extern "C"
