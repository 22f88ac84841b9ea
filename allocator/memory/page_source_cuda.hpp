#pragma once

// Pages of a GPU's memory, mapped into reserved addresses by the driver.

#include <memory>

#include "allocator/memory/driver_pages_cuda.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir {

/// What is mapped here is memory of the device for every function of CUDA, but for these: it has no
/// handle for other processes (cudaIpcGetMemHandle), and other GPUs have no access, whatever
/// cudaDeviceEnablePeerAccess says. To map and to unmap may wait for the device.
class CudaPages final : public PageSource {
 public:
  /// Pages of GPU number `device`, taken of `gauge`, which outlives them. Null where the driver is
  /// too old for them or the device cannot. Throws CudaError.
  [[nodiscard]] static std::unique_ptr<CudaPages> open(int device, CapacityGauge& gauge);

  [[nodiscard]] Bytes page_size() const override { return pages_.page_size(); }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;

 private:
  CudaPages(const DriverPages& pages, int device, CapacityGauge& gauge) noexcept
      : pages_(pages), device_(device), gauge_(gauge) {}

  const DriverPages pages_;
  const int device_;
  CapacityGauge& gauge_;
};

}  // namespace weir
