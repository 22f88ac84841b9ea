#pragma once

// The driver as the runtime reaches it: opened at the first use, every function of it looked up
// through cuGetProcAddress.

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace weir::standin {

// By base name; <cuda.h> makes the name of the current version of it, and so the right type.
#define WEIR_STANDIN_CALLS(X)                                                                           \
  X(cuInit)                                                                                             \
  X(cuCtxGetCurrent)                                                                                    \
  X(cuCtxSetCurrent)                                                                                    \
  X(cuCtxGetDevice)                                                                                     \
  X(cuCtxSynchronize) X(cuCtxGetStreamPriorityRange) X(cuDeviceGet) X(cuDeviceGetCount) X(              \
      cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetUuid)                   \
      X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxReset) X(cuDeviceGetDefaultMemPool) X(            \
          cuDeviceGetMemPool) X(cuDeviceSetMemPool) X(cuMemGetInfo) X(cuMemAlloc) X(cuMemFree)          \
          X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister) X(             \
              cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuPointerGetAttributes)                 \
              X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyAsync) X(           \
                  cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8)            \
                  X(cuMemsetD8Async) X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(                \
                      cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent)                        \
                      X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuLaunchHostFunc) X(                 \
                          cuEventCreate) X(cuEventDestroy) X(cuEventRecord)                             \
                          X(cuEventRecordWithFlags) X(cuEventQuery) X(cuEventSynchronize) X(            \
                              cuEventElapsedTime) X(cuStreamBeginCapture) X(cuStreamEndCapture)         \
                              X(cuStreamIsCapturing) X(cuThreadExchangeStreamCaptureMode) X(            \
                                  cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphGetNodes)      \
                                  X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuMemAllocAsync) X(         \
                                      cuMemFreeAsync) X(cuMemAllocFromPoolAsync)                        \
                                      X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolTrimTo) X(      \
                                          cuMemPoolSetAttribute) X(cuMemPoolGetAttribute)               \
                                          X(cuLibraryLoadData) X(cuLibraryGetKernel) X(                 \
                                              cuKernelGetFunction) X(cuFuncGetAttribute)                \
                                              X(cuFuncSetAttribute) X(                                  \
                                                  cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
                                                  X(cuLaunchKernel) X(cuLaunchKernelEx)

/// The functions for one kind of default stream.
struct Calls {
#define WEIR_STANDIN_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_STANDIN_CALLS(WEIR_STANDIN_MEMBER)
#undef WEIR_STANDIN_MEMBER
};

/// What became of the driver.
struct Library {
  cudaError_t status = cudaSuccess;  ///< anything else: there is none that can be used
  int version = 0;                   ///< 0: none at all
  Calls legacy;
  Calls per_thread;  ///< functions without such a variant are the same ones
  decltype(&::cuGetProcAddress) get = nullptr;
  CUfunction (*function_of)(const void* symbol) = nullptr;  ///< of the stand-in driver alone
};

/// Opens the driver once. Thread-safe, and ready before objects with constructors are.
const Library& library();

}  // namespace weir::standin
