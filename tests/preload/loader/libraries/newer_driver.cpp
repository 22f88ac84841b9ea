// The look-ups of a later driver: from 99.0 on cuMemAlloc is another function, with other
// parameters; up to 99.0 it is the exported one.

#include <cuda.h>

#include <cstring>

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* /*pointer*/, std::size_t /*bytes*/) { return CUDA_SUCCESS; }
CUresult cuMemAlloc_v3(CUdeviceptr* /*pointer*/, std::size_t /*bytes*/, int /*more*/) {
  return CUDA_SUCCESS;
}
// The first version, of 32 bits.
CUresult cuMemAlloc_v1(unsigned int* /*pointer*/, unsigned int /*bytes*/) { return CUDA_SUCCESS; }
CUresult cuMemAllocAsync(CUdeviceptr* /*pointer*/, std::size_t /*bytes*/, CUstream /*stream*/) {
  return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* /*pointer*/, std::size_t /*bytes*/, CUstream /*one*/) {
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* /*result*/) {
  *function = nullptr;
  if (std::strcmp(symbol, "cuMemAlloc") == 0) {
    *function = version >= 99000  ? reinterpret_cast<void*>(&cuMemAlloc_v3)
                : version >= 3020 ? reinterpret_cast<void*>(&cuMemAlloc_v2)
                                  : reinterpret_cast<void*>(&cuMemAlloc_v1);
  } else if (std::strcmp(symbol, "cuMemAllocAsync") == 0) {
    *function = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                    ? reinterpret_cast<void*>(&cuMemAllocAsync_ptsz)
                    : reinterpret_cast<void*>(&cuMemAllocAsync);
  } else if (std::strcmp(symbol, "cuGetProcAddress") == 0) {
    *function = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
