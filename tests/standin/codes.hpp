#pragma once

// Codes of the driver and the runtime with the runtime's names and CUDA's texts, and the driver's
// names if they differ in more than the prefix. Both use the same numbers.

#include <algorithm>
#include <array>

namespace weir::standin {

struct Code {
  int number;
  const char* driver_name;
  const char* runtime_name;
  const char* text;
};

/// Those that the stand-in, a fault on demand or a test is likely to use.
inline constexpr std::array kCodes{
    Code{0, "CUDA_SUCCESS", "cudaSuccess", "no error"},
    Code{1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument"},
    Code{2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory"},
    Code{3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error"},
    Code{4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", "driver shutting down"},
    Code{9, nullptr, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    Code{12, nullptr, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    Code{13, nullptr, "cudaErrorInvalidSymbol", "invalid device symbol"},
    Code{16, nullptr, "cudaErrorInvalidHostPointer", "invalid host pointer"},
    Code{17, nullptr, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    Code{20, nullptr, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    Code{21, nullptr, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    Code{34, "CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary", "CUDA driver is a stub library"},
    Code{35, nullptr, "cudaErrorInsufficientDriver",
         "CUDA driver version is insufficient for CUDA runtime version"},
    Code{36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "cudaErrorCallRequiresNewerDriver",
         "API call is not supported in the installed CUDA driver"},
    Code{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable",
         "CUDA-capable device(s) is/are busy or unavailable"},
    Code{49, nullptr, "cudaErrorIncompatibleDriverContext", "incompatible driver context"},
    Code{52, nullptr, "cudaErrorMissingConfiguration",
         "__global__ function call is not configured"},
    Code{98, nullptr, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    Code{100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Code{101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal"},
    Code{200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage",
         "device kernel image is invalid"},
    Code{201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized",
         "invalid device context"},
    Code{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice",
         "no kernel image is available for execution on the device"},
    Code{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable",
         "uncorrectable ECC error encountered"},
    Code{220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "cudaErrorNvlinkUncorrectable",
         "uncorrectable NVLink error detected during the execution"},
    Code{226, "CUDA_ERROR_CONTAINED", "cudaErrorContained",
         "Invalid access of peer GPU memory over nvlink or a hardware error"},
    Code{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported",
         "peer access is not supported between these two devices"},
    Code{301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found"},
    Code{304, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem",
         "OS call failed or operation not supported on this OS"},
    Code{400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle",
         "invalid resource handle"},
    Code{401, "CUDA_ERROR_ILLEGAL_STATE", "cudaErrorIllegalState",
         "the operation cannot be performed in the present state"},
    Code{500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found"},
    Code{600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready"},
    Code{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress",
         "an illegal memory access was encountered"},
    Code{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources",
         "too many resources requested for launch"},
    Code{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout",
         "the launch timed out and was terminated"},
    Code{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "cudaErrorPeerAccessAlreadyEnabled",
         "peer access is already enabled"},
    Code{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled",
         "peer access has not been enabled"},
    Code{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed",
         "context is destroyed"},
    Code{710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered"},
    Code{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered",
         "part or all of the requested memory range is already mapped"},
    Code{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered",
         "pointer does not correspond to a registered memory region"},
    Code{714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError",
         "hardware stack error"},
    Code{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction",
         "an illegal instruction was encountered"},
    Code{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", "misaligned address"},
    Code{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "cudaErrorInvalidAddressSpace",
         "operation not supported on global/shared address space"},
    Code{718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", "invalid program counter"},
    Code{719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure"},
    Code{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cudaErrorCooperativeLaunchTooLarge",
         "too many blocks in cooperative launch"},
    Code{800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted"},
    Code{801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported"},
    Code{802, "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady",
         "system not yet initialized"},
    Code{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cudaErrorSystemDriverMismatch",
         "system has unsupported display driver / cuda driver combination"},
    Code{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported",
         "operation not permitted when stream is capturing"},
    Code{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated",
         "operation failed due to a previous error during capture"},
    Code{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "cudaErrorStreamCaptureMerge",
         "operation would result in a merge of separate capture sequences"},
    Code{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched",
         "capture was not ended in the same stream as it began"},
    Code{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cudaErrorStreamCaptureUnjoined",
         "capturing stream has unjoined work"},
    Code{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "cudaErrorStreamCaptureIsolation",
         "dependency created on uncaptured work in another stream"},
    Code{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit",
         "operation would make the legacy stream depend on a capturing blocking stream"},
    Code{907, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent",
         "operation not permitted on an event last recorded in a capturing stream"},
    Code{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "cudaErrorStreamCaptureWrongThread",
         "attempt to terminate a thread-local capture sequence from another thread"},
    Code{909, "CUDA_ERROR_TIMEOUT", "cudaErrorTimeout", "wait operation timed out"},
    Code{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "cudaErrorGraphExecUpdateFailure",
         "the graph update was not performed because it included changes which violated "
         "constraints specific to instantiated graph update"},
    Code{999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error"},
};

/// Null for an unknown code.
constexpr const Code* find_code(int number) {
  const auto* found = std::find_if(kCodes.begin(), kCodes.end(),
                                   [=](const Code& code) { return code.number == number; });
  return found == kCodes.end() ? nullptr : &*found;
}

}  // namespace weir::standin
