// The library of the driver, the current device, and the last error.

#include "tests/standin/runtime/runtime.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "tests/standin/after_fork.hpp"
#include "tests/standin/codes.hpp"

namespace weir::standin {
namespace {

template <typename F>
void look_up(const Library& library, const char* name, cuuint64_t flags, F& function) {
  void* found = nullptr;
  const int version = std::min(library.version, CUDA_VERSION);
  if (library.get(name, &found, version, flags, nullptr) != CUDA_SUCCESS) found = nullptr;
  function = reinterpret_cast<F>(found);
}

void look_up_all(const Library& library, cuuint64_t flags, Calls& calls) {
#define CALL(name) look_up(library, #name, flags, calls.name);
  WEIR_STANDIN_CALLS(CALL)
#undef CALL
}

/// As the toolkit's runtime does: one symbol by dlsym, through which it looks up everything, itself
/// too.
bool find_lookup(Library& library) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto first =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(driver, "cuGetProcAddress_v2"));
  if (first == nullptr) return false;
  void* probe = nullptr;
  (void)first("", &probe, 0, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  void* older = nullptr;
  void* newer = nullptr;
  (void)first("cuGetProcAddress", &older, 11030, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  (void)first("cuGetProcAddress", &newer, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  library.get = newer == nullptr ? first : reinterpret_cast<decltype(&::cuGetProcAddress)>(newer);
  void* version = nullptr;
  (void)library.get("cuDriverGetVersion", &version, 2020, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  return version != nullptr && reinterpret_cast<decltype(&::cuDriverGetVersion)>(version)(
                                   &library.version) == CUDA_SUCCESS;
}

/// The runtime refuses a driver of an older major version.
int required_version() {
  const char* const text = std::getenv("WEIR_STANDIN_RUNTIME_VERSION");
  return text != nullptr ? std::atoi(text) : CUDART_VERSION;
}

Library open() {
  Library library;
  if (!find_lookup(library)) {
    library.status = cudaErrorInsufficientDriver;
    return library;
  }
  // Minor versions may differ, major ones not.
  if (library.version / 1000 < required_version() / 1000) {
    library.status = cudaErrorInsufficientDriver;
    return library;
  }
  look_up_all(library, CU_GET_PROC_ADDRESS_LEGACY_STREAM, library.legacy);
  look_up_all(library, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, library.per_thread);
  look_up(library, "weir_standin_function_of", CU_GET_PROC_ADDRESS_DEFAULT, library.function_of);
  look_up(library, "weir_standin_refuse_runtime", CU_GET_PROC_ADDRESS_DEFAULT, library.refuse);
  library.status = static_cast<cudaError_t>(library.legacy.cuInit(0));
  return library;
}

constexpr int kMostDevices = 64;

struct Devices {
  std::mutex mutex;
  std::array<CUcontext, kMostDevices> contexts{};  ///< of the device, once it was used
  std::array<bool, kMostDevices> retained{};       ///< and not reset since
};

Devices& devices() {
  static auto* const kDevices = new Devices;
  return *kDevices;
}

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

/// Errors from which a device does not recover.
bool is_fault(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

/// Whether a query of the last error keeps it.
bool stays(cudaError_t error) {
  if (error == cudaSuccess) return false;
  if (error == library().status) return true;
  if (!is_fault(error)) return false;
  CUdevice device = 0;
  return static_cast<cudaError_t>(library().legacy.cuCtxGetDevice(&device)) == error;
}

cudaError_t check_device(int device) {
  int count = 0;
  const CUresult counted = library().legacy.cuDeviceGetCount(&count);
  if (counted != CUDA_SUCCESS) return static_cast<cudaError_t>(counted);
  const bool known = device >= 0 && device < count && device < kMostDevices;
  return known ? cudaSuccess : cudaErrorInvalidDevice;
}

/// Needs the lock of `known`.
CUresult retain(Devices& known, int device, CUcontext* context) {
  const auto index = static_cast<std::size_t>(device);
  if (!known.retained.at(index)) {
    const CUresult retained =
        library().legacy.cuDevicePrimaryCtxRetain(&known.contexts.at(index), device);
    if (retained != CUDA_SUCCESS) return retained;
    known.retained.at(index) = true;
  }
  *context = known.contexts.at(index);
  return CUDA_SUCCESS;
}

cudaError_t make_current(int device) {
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  CUcontext context = nullptr;
  const CUresult retained = retain(known, device, &context);
  if (retained != CUDA_SUCCESS) return static_cast<cudaError_t>(retained);
  return static_cast<cudaError_t>(library().legacy.cuCtxSetCurrent(context));
}

/// Whether `context` is this thread's device from before somebody reset it.
bool was_reset(CUcontext context) {
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  const auto index = static_cast<std::size_t>(device_of_thread);
  return known.contexts.at(index) == context && !known.retained.at(index);
}

}  // namespace

const Library& library() {
  static constinit std::atomic<const Library*> opened{nullptr};
  if (const Library* const known = opened; known != nullptr) return *known;
  // Another thread of the parent was opening it, and a child cannot wait for that.
  static constexpr Library kUnopened{.status = cudaErrorInitializationError};
  if (is_forked()) return kUnopened;
  begin_use();
  static const auto* const kLibrary = new Library(open());
  opened = kLibrary;
  return *kLibrary;
}

cudaError_t note(cudaError_t error) {
  if (error == cudaSuccess) return error;
  last_error = error;
  if (library().refuse != nullptr) library().refuse(error);
  return error;
}

cudaError_t note_own(cudaError_t error) {
  forget_answers();
  return note(error);
}

void forget_answers() {
  if (library().refuse != nullptr) library().refuse(cudaSuccess);
}

int chosen_device() { return device_of_thread; }

cudaError_t use_device() {
  if (library().status != cudaSuccess) return library().status;
  CUcontext current = nullptr;
  const CUresult asked = library().legacy.cuCtxGetCurrent(&current);
  if (asked != CUDA_SUCCESS) return static_cast<cudaError_t>(asked);
  if (current != nullptr && !was_reset(current)) return cudaSuccess;
  return make_current(device_of_thread);
}

cudaError_t choose_device(int device) {
  if (library().status != cudaSuccess) return library().status;
  const cudaError_t error = check_device(device);
  if (error != cudaSuccess) return error;
  device_of_thread = device;
  return make_current(device);
}

cudaError_t context_of(int device, CUcontext* context) {
  const cudaError_t error = check_device(device);
  if (error != cudaSuccess) return error;
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  return static_cast<cudaError_t>(retain(known, device, context));
}

void forget_device(int device) {
  if (is_forked()) return;
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  known.retained.at(static_cast<std::size_t>(device)) = false;
  (void)library().legacy.cuCtxSetCurrent(nullptr);
}

}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  if (!stays(error)) last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  const Code* code = find_code(error);
  return code == nullptr ? "unrecognized error code" : code->runtime_name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Code* code = find_code(error);
  return code == nullptr ? "unrecognized error code" : code->text;
}

}  // extern "C"

/// Implements the functions of rest.cpp.
extern "C" int weir_standin_runtime_rest() { return note_own(cudaErrorNotSupported); }
