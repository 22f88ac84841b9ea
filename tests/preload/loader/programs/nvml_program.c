/* Linked with the driver and the management library: prints the total and the used bytes of the
   first device as that tells them, before and after it uses 30 MiB. */

#include <cuda.h>
#include <stdio.h>

typedef struct {
  unsigned long long total, free, used;
} Memory;

// NOLINTBEGIN(readability-identifier-naming): the library's names
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory);
// NOLINTEND(readability-identifier-naming)

static int print(const char* when) {
  void* device = NULL;
  Memory memory = {0, 0, 0};
  if (nvmlInit_v2() != 0 || nvmlDeviceGetHandleByIndex_v2(0, &device) != 0 ||
      nvmlDeviceGetMemoryInfo(device, &memory) != 0) {
    printf("not so: NVML answers\n");
    return 0;
  }
  printf("%s %llu %llu\n", when, memory.total, memory.used);
  return 1;
}

int main(void) {
  CUcontext context = NULL;
  CUdeviceptr pointer = 0;
  if (!print("before")) return 1;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuMemAlloc(&pointer, (size_t)30 << 20) != CUDA_SUCCESS) {
    printf("not so: there is a device\n");
    return 1;
  }
  return print("after") ? 0 : 1;
}
