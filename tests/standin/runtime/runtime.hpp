#pragma once

// Common code of every function of the runtime around its calls of the driver, which it finds as
// the toolkit's does: through cuGetProcAddress.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <type_traits>
#include <utility>

namespace weir::standin {

// The functions of the driver that the runtime calls, by base name. <cuda.h> makes each the name of
// its current version, and so tells the right type.
// clang-format off
#define WEIR_STANDIN_CALLS(CALL) \
  CALL(cuInit) CALL(cuCtxGetCurrent) CALL(cuCtxSetCurrent) CALL(cuCtxGetDevice)                   \
  CALL(cuCtxSynchronize) CALL(cuCtxGetStreamPriorityRange) CALL(cuDeviceGet)                      \
  CALL(cuDeviceGetCount) CALL(cuDeviceGetName) CALL(cuDeviceGetAttribute)                         \
  CALL(cuDeviceTotalMem) CALL(cuDeviceGetUuid) CALL(cuDevicePrimaryCtxRetain)                     \
  CALL(cuDevicePrimaryCtxReset) CALL(cuDeviceGetDefaultMemPool) CALL(cuDeviceGetMemPool)          \
  CALL(cuDeviceSetMemPool) CALL(cuMemGetInfo) CALL(cuMemAlloc) CALL(cuMemAllocPitch)              \
  CALL(cuMemAllocManaged) CALL(cuMemFree) CALL(cuArrayCreate) CALL(cuArray3DCreate)               \
  CALL(cuArrayDestroy) CALL(cuIpcGetMemHandle) CALL(cuIpcOpenMemHandle)                           \
  CALL(cuIpcCloseMemHandle) CALL(cuIpcGetEventHandle) CALL(cuIpcOpenEventHandle)                  \
  CALL(cuDeviceCanAccessPeer) CALL(cuCtxEnablePeerAccess) CALL(cuCtxDisablePeerAccess)            \
  CALL(cuMemHostAlloc) CALL(cuMemFreeHost) CALL(cuMemHostRegister) CALL(cuMemHostUnregister)      \
  CALL(cuMemHostGetDevicePointer) CALL(cuMemHostGetFlags) CALL(cuPointerGetAttributes)            \
  CALL(cuMemcpy) CALL(cuMemcpyHtoD) CALL(cuMemcpyDtoH) CALL(cuMemcpyDtoD) CALL(cuMemcpyAsync)     \
  CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoHAsync) CALL(cuMemcpyDtoDAsync) CALL(cuMemcpy2DAsync)   \
  CALL(cuMemsetD8) CALL(cuMemsetD8Async) CALL(cuStreamCreateWithPriority) CALL(cuStreamDestroy)   \
  CALL(cuStreamSynchronize) CALL(cuStreamQuery) CALL(cuStreamWaitEvent) CALL(cuStreamGetFlags)    \
  CALL(cuStreamGetPriority) CALL(cuStreamGetId) CALL(cuLaunchHostFunc)                            \
  CALL(cuStreamAddCallback) CALL(cuStreamGetCaptureInfo) CALL(cuUserObjectCreate)                 \
  CALL(cuUserObjectRelease) CALL(cuGraphRetainUserObject) CALL(cuDeviceGetPCIBusId)               \
  CALL(cuEventCreate) CALL(cuEventDestroy) CALL(cuEventRecord) CALL(cuEventRecordWithFlags)       \
  CALL(cuEventQuery) CALL(cuEventSynchronize) CALL(cuEventElapsedTime)                            \
  CALL(cuStreamBeginCapture) CALL(cuStreamEndCapture) CALL(cuStreamIsCapturing)                   \
  CALL(cuThreadExchangeStreamCaptureMode) CALL(cuGraphInstantiateWithFlags) CALL(cuGraphLaunch)   \
  CALL(cuGraphGetNodes) CALL(cuGraphDestroy) CALL(cuGraphExecDestroy) CALL(cuMemAllocAsync)       \
  CALL(cuMemFreeAsync) CALL(cuMemAllocFromPoolAsync) CALL(cuMemPoolCreate)                        \
  CALL(cuMemPoolDestroy) CALL(cuMemPoolTrimTo) CALL(cuMemPoolSetAttribute)                        \
  CALL(cuMemPoolGetAttribute) CALL(cuMemPoolSetAccess) CALL(cuMemPoolGetAccess)                   \
  CALL(cuDeviceGetGraphMemAttribute) CALL(cuDeviceGraphMemTrim) CALL(cuLibraryLoadData)           \
  CALL(cuLibraryGetKernel) CALL(cuKernelGetFunction) CALL(cuFuncGetAttribute)                     \
  CALL(cuFuncSetAttribute) CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)             \
  CALL(cuLaunchKernel) CALL(cuLaunchKernelEx)
// clang-format on

/// The functions for one kind of default stream.
struct Calls {
#define CALL(name) decltype(&::name) name = nullptr;
  WEIR_STANDIN_CALLS(CALL)
#undef CALL
};

/// The driver, or the reason why there is none.
struct Library {
  cudaError_t status = cudaSuccess;  ///< otherwise no driver can be used
  int version = 0;                   ///< 0: none at all
  Calls legacy = {};
  Calls per_thread = {};  ///< functions without such a variant are the same ones
  decltype(&::cuGetProcAddress) get = nullptr;
  CUfunction (*function_of)(const void* symbol) = nullptr;  ///< of the stand-in driver alone
  void (*refuse)(int code) = nullptr;                       ///< likewise
};

/// Opens the driver once. Thread-safe, also before constructors of static objects.
const Library& library();

/// Forgets this thread's earlier result of the driver, at the start of a call.
void forget_answers();
/// Remembers an error for cudaGetLastError.
cudaError_t note(cudaError_t error);
/// The same, for an error that no driver call has returned.
cudaError_t note_own(cudaError_t error);
inline cudaError_t note(CUresult result) { return note(static_cast<cudaError_t>(result)); }

/// Makes this thread's device current, with its primary context.
cudaError_t use_device();
/// The device that this thread chose.
int chosen_device();
cudaError_t choose_device(int device);
/// The primary context of another device, created if needed.
cudaError_t context_of(int device, CUcontext* context);
/// The primary context of `device` was reset: retains it again at the next use.
void forget_device(int device);

/// A function that needs the driver, and no context.
template <typename Body>
cudaError_t with_driver(Body&& body) {
  forget_answers();
  if (library().status != cudaSuccess) return note(library().status);
  return note(std::forward<Body>(body)(library().legacy));
}

/// A function that needs a context.
template <typename Body>
cudaError_t with_context(Body&& body) {
  const cudaError_t error = use_device();
  return error == cudaSuccess ? note(std::forward<Body>(body)(library().legacy)) : note(error);
}

/// The driver functions that a variant uses.
enum class DefaultStream { kLegacy, kPerThread };

/// A function with a stream: `body` gets the functions with the right meaning of stream 0.
template <typename Body>
cudaError_t on_stream(DefaultStream meant, Body&& body) {
  const cudaError_t error = use_device();
  if (error != cudaSuccess) return note(error);
  const Library& driver = library();
  return note(std::forward<Body>(body)(meant == DefaultStream::kLegacy ? driver.legacy
                                                                       : driver.per_thread));
}

/// The driver's form of an argument: handles, enumerations and pointers have the same bits.
template <typename To, typename From>
To driver_form(From from) {
  if constexpr (std::is_convertible_v<From, To>) {
    return static_cast<To>(from);
  } else {
    return std::bit_cast<To>(from);
  }
}
template <typename... P, typename... A>
CUresult forward(CUresult (*function)(P...), A... arguments) {
  return function(driver_form<P>(arguments)...);
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

/// The driver's function for the kernel with this address in the host's code: by the name that nvcc
/// registered, or as the test registered it with the driver. Null if there is neither.
CUfunction function_of(const void* symbol);

}  // namespace weir::standin
