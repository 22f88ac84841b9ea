#include <cuda_runtime_api.h>

#include <cstdlib>

#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/device_cuda.hpp"
#include "scheduler/device/kit.hpp"

namespace weir::testing {
namespace {

/// Four streams of the program, never destroyed.
CudaUserStreams user_streams() {
  const auto made = [] {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
    return stream;
  };
  return {.compute = made(), .compute2 = made(), .copy_in = made(), .copy_out = made()};
}

class CudaKit final : public DeviceKit {
 public:
  /// With WEIR_TEST_USER_STREAMS, all of its streams are the program's.
  [[nodiscard]] std::unique_ptr<DeviceBackend> open(Bytes memory) override {
    const bool users = std::getenv("WEIR_TEST_USER_STREAMS") != nullptr;
    return std::make_unique<CudaDevice>(0, memory, users ? user_streams() : CudaUserStreams{});
  }
  void step(Stream& stream, std::function<void()> step) override {
    auto* const late = new std::function<void()>(std::move(step));
    const auto call = [](void* data) {
      const std::unique_ptr<std::function<void()>> function(
          static_cast<std::function<void()>*>(data));
      (*function)();
    };
    check_cuda(cudaLaunchHostFunc(cuda_stream(stream), call, late), "cudaLaunchHostFunc");
  }
  void set_bytes(Stream& stream, void* to, int value, Bytes size) override {
    check_cuda(cudaMemsetAsync(to, value, size.count, cuda_stream(stream)), "cudaMemsetAsync");
  }
};

}  // namespace

DeviceKit& kit() {
  static CudaKit kit;
  return kit;
}

}  // namespace weir::testing
