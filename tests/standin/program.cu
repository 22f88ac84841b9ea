// A program made by nvcc, which the stand-in must run as it would run users' programs. Reports
// differences and returns 1; 77 means that it could not be tried here.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/standin/standin.hpp"

extern "C" __global__ void scale(float* numbers, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) numbers[i] *= factor;
}

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s (last error: %s)\n", what, cudaGetErrorString(cudaPeekAtLastError()));
  ++failures;
}

/// Not linked: the program must reach the driver as others do.
template <typename F>
F* stand_in(const char* name, F* /*like*/) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* function = driver == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(driver, name));
  if (function != nullptr) return function;
  std::printf("no %s in libcuda.so.1\n", name);
  std::exit(1);
}
#define STAND_IN(name) stand_in(#name, static_cast<decltype(&(name))>(nullptr))

/// The kernel's work, on the host.
void scale_on_host(const WeirStandinLaunch* launch) {
  auto* numbers = *static_cast<float**>(launch->arguments[0]);
  const float factor = *static_cast<float*>(launch->arguments[1]);
  const int count = *static_cast<int*>(launch->arguments[2]);
  const unsigned threads = launch->grid.x * launch->block.x;
  for (unsigned i = 0; i < threads && i < static_cast<unsigned>(count); ++i) numbers[i] *= factor;
}

void run_kernel(cudaStream_t default_stream) {
  float* device = nullptr;
  std::vector<float> numbers(100, 2.0F);
  expect(cudaMalloc(&device, 400) == cudaSuccess, "memory is allocated");
  expect(cudaMemcpy(device, numbers.data(), 400, cudaMemcpyHostToDevice) == cudaSuccess,
         "numbers are copied to the device");

  scale<<<1, 128>>>(device, 3.0F, 100);
  expect(cudaGetLastError() == cudaErrorInvalidDeviceFunction, "an unknown kernel is refused");
  const std::size_t sizes[] = {sizeof(float*), sizeof(float), sizeof(int)};
  STAND_IN(weir_standin_register_kernel)(nullptr, "scale", &scale_on_host, sizes, 3);

  STAND_IN(weir_standin_hold)(default_stream);
  scale<<<1, 128>>>(device, 3.0F, 100);
  expect(cudaGetLastError() == cudaSuccess, "a kernel is launched");
  expect(STAND_IN(weir_standin_pending)(default_stream) == 1,
         "the kernel is on the default stream that was compiled for");
  expect(device[99] == 2.0F, "the kernel runs late");
  STAND_IN(weir_standin_release)(default_stream);

  expect(cudaMemcpy(numbers.data(), device, 400, cudaMemcpyDeviceToHost) == cudaSuccess,
         "numbers are copied back, behind the kernel");
  for (const float number : numbers) expect(number == 6.0F, "every number was scaled");
  expect(cudaFree(device) == cudaSuccess, "memory is freed");
  expect(STAND_IN(weir_standin_calls)("cuLaunchKernel") == 2, "launches came to the driver");
  expect(STAND_IN(weir_standin_calls)("cuGetProcAddress") > 50,
         "the driver's functions were looked up through cuGetProcAddress");
  expect(STAND_IN(weir_standin_live)().device_blocks == 0, "nothing is left");
}

void expect_no_driver() {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) std::exit(77);
  void* memory = nullptr;
  int number = 7;
  expect(cudaMalloc(&memory, 4) == cudaErrorInsufficientDriver, "cudaMalloc needs a driver");
  expect(cudaGetDeviceCount(&number) == cudaErrorInsufficientDriver, "counting needs one");
  expect(number == 7, "a count that failed is not written");
  expect(cudaDriverGetVersion(&number) == cudaSuccess && number == 0, "no driver has version 0");
  expect(cudaGetLastError() == cudaErrorInsufficientDriver, "the error is remembered");
  expect(cudaGetLastError() == cudaErrorInsufficientDriver, "and stays");
}

void expect_old_driver() {
  void* memory = nullptr;
  int version = 0;
  expect(cudaDriverGetVersion(&version) == cudaSuccess && version == 11080, "the version is told");
  expect(cudaMalloc(&memory, 4) == cudaErrorInsufficientDriver, "an old driver will not do");
}

void expect_no_device() {
  int count = 7;
  expect(cudaGetDeviceCount(&count) == cudaErrorNoDevice, "there is no device");
  expect(count == 0, "the count says so");
  void* memory = nullptr;
  expect(cudaMalloc(&memory, 4) == cudaErrorNoDevice, "there is no memory without a device");
}

void expect_settings() {
  int count = 0;
  expect(cudaGetDeviceCount(&count) == cudaSuccess && count == 3, "there are three devices");
  std::size_t free = 0;
  std::size_t total = 0;
  expect(cudaMemGetInfo(&free, &total) == cudaSuccess && total == std::size_t{5} << 20,
         "they have five MiB each");
  expect(free == std::size_t{4} << 20, "a context takes one MiB");
  const std::size_t sizes[] = {sizeof(float*), sizeof(float), sizeof(int)};
  STAND_IN(weir_standin_register_kernel)(nullptr, "scale", &scale_on_host, sizes, 3);
  scale<<<1, 1>>>(nullptr, 1.0F, 0);
  expect(cudaDeviceSynchronize() == cudaSuccess, "a kernel runs");
  expect(cudaMemGetInfo(&free, &total) == cudaSuccess && free == std::size_t{7} << 19,
         "the program's code takes half a MiB");
}

}  // namespace

int main(int count, char** arguments) {
  const char* mode = count == 2 ? arguments[1] : "";
  if (std::strcmp(mode, "legacy") == 0) {
    run_kernel(cudaStreamLegacy);
  } else if (std::strcmp(mode, "per-thread") == 0) {
    run_kernel(cudaStreamPerThread);
  } else if (std::strcmp(mode, "no-driver") == 0) {
    expect_no_driver();
  } else if (std::strcmp(mode, "old-driver") == 0) {
    expect_old_driver();
  } else if (std::strcmp(mode, "no-device") == 0) {
    expect_no_device();
  } else if (std::strcmp(mode, "settings") == 0) {
    expect_settings();
  } else {
    std::printf("what is '%s'?\n", mode);
    return 2;
  }
  return failures == 0 ? 0 : 1;
}
