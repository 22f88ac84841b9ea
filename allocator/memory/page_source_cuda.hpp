#pragma once

// Pages of GPU memory, which the driver maps into reserved addresses.

#include <memory>

#include "allocator/memory/driver_pages_cuda.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir {

/// Mapped memory works with every CUDA function, except that other processes get no handle for it
/// (cudaIpcGetMemHandle), and other GPUs get no access, whatever cudaDeviceEnablePeerAccess says.
/// Mapping and unmapping may wait for the device.
class CudaPages final : public PageSource {
 public:
  /// Opens pages of GPU number `device`, charged to `gauge`, which outlives them. Returns null if
  /// the driver or device lacks them. Throws CudaError.
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
