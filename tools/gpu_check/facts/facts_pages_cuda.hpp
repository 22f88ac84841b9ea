#pragma once

// Pages of the first device and addresses for them, for the duration of a question.

#include <vector>

#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {

[[nodiscard]] inline CUmemAllocationProp of_first_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  return properties;
}

[[nodiscard]] inline std::size_t granularity(const Driver& driver,
                                             CUmemAllocationGranularity_flags which) {
  const CUmemAllocationProp properties = of_first_device();
  std::size_t bytes = 0;
  CALL(driver, cuMemGetAllocationGranularity, &bytes, &properties, which);
  return bytes;
}

/// Some pages and a range of addresses for as many, for the duration of a question.
class Pages {
 public:
  /// Each page is as large as `large` smallest ones.
  Pages(const Driver& driver, std::size_t count, std::size_t large = 1)
      : driver_(driver), page_(granularity(driver, CU_MEM_ALLOC_GRANULARITY_MINIMUM) * large) {
    CALL(driver_, cuMemAddressReserve, &range_, count * page_, std::size_t{0}, CUdeviceptr{0},
         0ULL);
    size_ = count * page_;
  }
  ~Pages() {
    for (const CUdeviceptr at : mapped_) (void)RAW(driver_, cuMemUnmap, at, page_);
    for (const CUmemGenericAllocationHandle page : pages_) (void)RAW(driver_, cuMemRelease, page);
    (void)RAW(driver_, cuMemAddressFree, range_, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] CUdeviceptr at(std::size_t n) const { return range_ + n * page_; }
  [[nodiscard]] std::size_t page() const { return page_; }

  void create() {
    const CUmemAllocationProp properties = of_first_device();
    CUmemGenericAllocationHandle page = 0;
    CALL(driver_, cuMemCreate, &page, page_, &properties, 0ULL);
    pages_.push_back(page);
  }
  void release() {
    CALL(driver_, cuMemRelease, pages_.back());
    pages_.pop_back();
  }
  /// Maps page n at the n-th place.
  void map(std::size_t n) { check(try_map(n, n), "cuMemMap"); }
  [[nodiscard]] CUresult try_map(std::size_t place, std::size_t page) {
    const CUresult code =
        RAW(driver_, cuMemMap, at(place), page_, std::size_t{0}, pages_.at(page), 0ULL);
    if (code == CUDA_SUCCESS) mapped_.push_back(at(place));
    return code;
  }
  void allow(std::size_t first, std::size_t count) {
    CUmemAccessDesc access{};
    access.location = of_first_device().location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(driver_, cuMemSetAccess, at(first), count * page_, &access, std::size_t{1});
  }
  void unmap(std::size_t n) {
    CALL(driver_, cuMemUnmap, at(n), page_);
    std::erase(mapped_, at(n));
  }
  /// Unmaps the first `count` mapped pages with one call.
  [[nodiscard]] CUresult unmap_at_once(std::size_t count) {
    const CUresult code = RAW(driver_, cuMemUnmap, range_, count * page_);
    if (code == CUDA_SUCCESS) mapped_.clear();
    return code;
  }
  /// Maps one page and lets the device use it.
  void map_one() {
    create();
    map(0);
    allow(0, 1);
  }

 private:
  const Driver& driver_;
  const std::size_t page_;
  CUdeviceptr range_ = 0;
  std::size_t size_ = 0;
  std::vector<CUmemGenericAllocationHandle> pages_;
  std::vector<CUdeviceptr> mapped_;
};

/// Measures each call for making, mapping, opening, unmapping and releasing pages one by one.
/// Returns the medians over `count` pages, each as large as `large` smallest ones.
[[nodiscard]] std::string page_costs(const Driver& driver, std::size_t count,
                                     std::size_t large = 1);

}  // namespace weir::gpu_check
