#include "tests/standin/runtime/runtime.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "tests/standin/codes.hpp"

namespace weir::standin {
namespace {

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
  int count = 0;
  const CUresult counted = library().legacy.cuDeviceGetCount(&count);
  if (counted != CUDA_SUCCESS) return static_cast<cudaError_t>(counted);
  if (device < 0 || device >= count || device >= kMostDevices) return cudaErrorInvalidDevice;
  device_of_thread = device;
  return make_current(device);
}

cudaError_t context_of(int device, CUcontext* context) {
  int count = 0;
  const CUresult counted = library().legacy.cuDeviceGetCount(&count);
  if (counted != CUDA_SUCCESS) return static_cast<cudaError_t>(counted);
  if (device < 0 || device >= count || device >= kMostDevices) return cudaErrorInvalidDevice;
  Devices& known = devices();
  const std::lock_guard lock(known.mutex);
  return static_cast<cudaError_t>(retain(known, device, context));
}

void forget_device(int device) {
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
