#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "allocator/base/error_cuda.hpp"
#include "allocator/memory/page_source_kit.hpp"
#include "allocator/memory/upstream_cuda.hpp"
#include "support/mapped_cuda.hpp"
#include "support/sanitized.hpp"

namespace weir::testing {
namespace {

/// Checked before an access: work on unmapped memory would break the context.
bool has_memory(const void* address) {
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
  // The runtime has loaded it, and has no name for this call.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) throw Error("libcuda.so.1 is not loaded");
  void* const ask = dlsym(driver, "cuPointerGetAttributes");
  dlclose(driver);
  return is_mapped(reinterpret_cast<decltype(&cuPointerGetAttributes)>(ask), address);
}

class CudaPaged final : public PagedUpstream {
 public:
  explicit CudaPaged(Bytes capacity) : upstream_(0, capacity) {}
  [[nodiscard]] Upstream& upstream() override { return upstream_; }
  [[nodiscard]] Bytes used() const override { return upstream_.used(); }
  [[nodiscard]] bool write(void* to, unsigned char value, std::size_t bytes) override {
    if (!has_memory(to)) return false;
    check_cuda(cudaMemset(to, value, bytes), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return true;
  }
  [[nodiscard]] std::vector<unsigned char> read(void* from, std::size_t bytes) override {
    if (!has_memory(from)) return {};
    std::vector<unsigned char> there(bytes);
    check_cuda(cudaMemcpy(there.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return there;
  }

 private:
  CudaUpstream upstream_;
};

}  // namespace

std::vector<PageKind> page_kinds() {
  const auto make = [](Bytes capacity) -> std::unique_ptr<PagedUpstream> {
    return std::make_unique<CudaPaged>(capacity);
  };
  return {{.name = "cuda",
           .make = make,
           .many = 100,
           .rounds = 30,
           .huge = WEIR_TEST_SANITIZED != 0 ? gib(64) : gib(16 * 1024),
           .reserve_call = "cuMemAddressReserve"}};
}

std::vector<PageKind> kinds_without_pages() {
  const auto make = [](Bytes capacity) -> std::unique_ptr<PagedUpstream> {
    return std::make_unique<HostMemory<PinnedUpstream>>(0, capacity);
  };
  return {{.name = "pinned", .make = make, .huge = {}}};
}

}  // namespace weir::testing
