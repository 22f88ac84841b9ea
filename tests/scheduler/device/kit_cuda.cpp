#include <cuda_runtime_api.h>

#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/device_cuda.hpp"
#include "scheduler/device/kit.hpp"

namespace weir::testing {
namespace {

class CudaKit final : public DeviceKit {
 public:
  [[nodiscard]] std::unique_ptr<DeviceBackend> open(Bytes memory) override {
    return std::make_unique<CudaDevice>(0, memory);
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
