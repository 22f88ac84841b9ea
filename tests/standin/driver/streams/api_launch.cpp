// Kernels: a launch copies its arguments, and the stream's thread runs the host function.

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/kernels.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace weir::standin {
namespace {

struct Kernels {
  std::map<std::string, std::unique_ptr<Kernel>> by_name;
  std::map<const void*, std::unique_ptr<Kernel>> by_symbol;
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
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto& kernel = *reinterpret_cast<const Kernel*>(function);
    if (kernel.run == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid(grid, block, shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (arguments == nullptr && !kernel.sizes.empty()) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    auto copies = std::make_shared<Arguments>(kernel.sizes, arguments);
    auto* const run = kernel.run;
    const void* symbol = kernel.symbol;
    Operation operation{.work =
                            [=] {
                              const WeirStandinLaunch launch{symbol, grid, block, shared_bytes,
                                                             copies->addresses()};
                              run(&launch);
                            },
                        .is_kernel = true};
    copies->touch(call.driver, kernel.sizes, operation.touches);
    const CUresult submitted = submit(call, stream, std::move(operation));
    if (submitted == CUDA_SUCCESS) end_launch(call, stream);
    return submitted;
  });
}

CUresult refuse_no_config() {
  return api("cuLaunchKernel", Needs::kContext,
             [](Call& /*call*/) { return CUDA_ERROR_INVALID_VALUE; });
}

}  // namespace

Kernel& kernel_by_name(const std::string& name) {
  auto& kernel = kernels().by_name[name];
  if (!kernel) {
    kernel = std::make_unique<Kernel>();
    kernel->name = name;
  }
  return *kernel;
}

Kernel* kernel_by_symbol(const void* symbol) {
  const auto found = kernels().by_symbol.find(symbol);
  return found == kernels().by_symbol.end() ? nullptr : found->second.get();
}

}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

void weir_standin_register_kernel(const void* symbol, const char* name,
                                  void (*run)(const WeirStandinLaunch*), const std::size_t* sizes,
                                  std::size_t count) {
  const Lock lock(driver().mutex);
  const auto fill = [&](Kernel& kernel) {
    kernel.symbol = symbol;
    kernel.run = run;
    kernel.sizes.assign(sizes, sizes + count);
  };
  if (name != nullptr) fill(kernel_by_name(name));
  if (symbol == nullptr) return;
  auto& kernel = kernels().by_symbol[symbol];
  if (!kernel) kernel = std::make_unique<Kernel>();
  fill(*kernel);
}

/// For the stand-in runtime, through cuGetProcAddress: the function of a kernel that is known by
/// its address and not by nvcc's registration. Null if there is none.
CUfunction weir_standin_function_of(const void* symbol) {
  const Lock lock(driver().mutex);
  return reinterpret_cast<CUfunction>(kernel_by_symbol(symbol));
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return api("cuKernelGetFunction", Needs::kContext, [&](Call& /*call*/) {
    if (function == nullptr || kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return api("cuFuncGetAttribute", Needs::kContext, [&](Call& /*call*/) {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 90;
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = 48 << 10;
        break;
      default:
        *value = 0;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) {
  return api("cuFuncSetAttribute", Needs::kContext, [&](Call& /*call*/) {
    return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t, unsigned int) {
  return api("cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::kContext, [&](Call& /*call*/) {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = threads > 1024 ? 0 : std::min(32, 2048 / threads);
    return CUDA_SUCCESS;
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

CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void** arguments, void** extra) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                        per_thread(stream), arguments, extra);
}

// On a device all blocks of such a grid run at once; here they run one after the other.
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** arguments) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                        stream, arguments, nullptr);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x,
                                        unsigned int grid_y, unsigned int grid_z,
                                        unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes,
                                        CUstream stream, void** arguments) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                        per_thread(stream), arguments, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (config == nullptr) return refuse_no_config();
  return launch(function, dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
                dim3(config->blockDimX, config->blockDimY, config->blockDimZ),
                config->sharedMemBytes, config->hStream, arguments, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** arguments,
                               void** extra) {
  if (config == nullptr) return refuse_no_config();
  CUlaunchConfig own = *config;
  own.hStream = per_thread(config->hStream);
  return cuLaunchKernelEx(&own, function, arguments, extra);
}

}  // extern "C"
