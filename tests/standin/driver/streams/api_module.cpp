// Modules and libraries. Device code is not read: each has every requested kernel, and takes the
// configured memory of the device.

#include <unistd.h>

#include "tests/standin/driver/streams/kernels.hpp"

namespace {

using namespace weir::standin;

/// Waits until the set number of loads have come, long enough for any that will.
CUresult meet(Call& call) {
  Driver& driver = call.driver;
  if (driver.loads_to_meet < 2) return CUDA_SUCCESS;
  const std::uint64_t meeting = driver.load_meetings;
  if (++driver.loads_waiting == driver.loads_to_meet) {
    driver.loads_waiting = 0;
    ++driver.load_meetings;
    driver.loads_met.notify_all();
    return CUDA_SUCCESS;
  }
  if (driver.loads_met.wait_for(call.lock, std::chrono::seconds(20),
                                [&] { return driver.load_meetings != meeting; })) {
    return CUDA_SUCCESS;
  }
  --driver.loads_waiting;
  return CUDA_ERROR_LAUNCH_TIMEOUT;
}

CUresult load_module(Call& call, CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t bytes = call.driver.module_memory;
  if (!call.context->device->charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *module = call.driver.modules.add({.context = call.context, .charged = bytes});
  return meet(call);
}

CUresult load_image(const char* name, CUmodule* module, const void* image) {
  return api(name, Needs::kCanCapture,
             [&](Call& call) { return load_module(call, module, image); });
}

/// A library needs no context. If there is one, its code is loaded into it.
CUresult load_library(Call& call, CUlibrary* library, const void* code) {
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module made;
  if (!this_thread().contexts.empty()) {
    made.context = find_context(call.driver, this_thread().contexts.back());
  }
  if (made.context != nullptr) {
    made.charged = call.driver.module_memory;
    if (!made.context->device->charge(made.charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *library = call.driver.libraries.add(made);
  return meet(call);
}

/// Whether a readable file has this name.
bool is_file(const char* name) { return access(name, R_OK) == 0; }

template <typename Handle>
void unload(Handles<Handle, Module>& modules, Handle handle) {
  const Module& module = *modules.find(handle);
  if (module.context != nullptr) module.context->device->credit(module.charged);
  modules.remove(handle);
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return api("cuModuleLoad", Needs::kCanCapture, [&](Call& call) {
    if (file != nullptr && !is_file(file)) return CUDA_ERROR_FILE_NOT_FOUND;
    return load_module(call, module, file);
  });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_image("cuModuleLoadData", module, image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return load_image("cuModuleLoadDataEx", module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_image("cuModuleLoadFatBinary", module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  return api("cuModuleUnload", Needs::kCanCapture, [&](Call& call) {
    if (call.driver.modules.find(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    unload(call.driver.modules, module);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return api("cuModuleGetFunction", Needs::kContext, [&](Call& call) {
    if (call.driver.modules.find(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(&kernel_by_name(name));
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  return api("cuLibraryLoadData", Needs::kDriver,
             [&](Call& call) { return load_library(call, library, code); });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  return api("cuLibraryLoadFromFile", Needs::kDriver, [&](Call& call) {
    if (file != nullptr && !is_file(file)) return CUDA_ERROR_FILE_NOT_FOUND;
    return load_library(call, library, file);
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return api("cuLibraryUnload", Needs::kDriver, [&](Call& call) {
    if (call.driver.libraries.find(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    unload(call.driver.libraries, library);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return api("cuLibraryGetKernel", Needs::kDriver, [&](Call& call) {
    if (call.driver.libraries.find(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *kernel = reinterpret_cast<CUkernel>(&kernel_by_name(name));
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
