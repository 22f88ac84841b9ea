#include "allocator/memory/driver_pages_cuda.hpp"

#include <algorithm>
#include <bit>

namespace weir {
namespace {

CUmemAllocationProp memory_of(int device) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUmemAccessDesc access_of(int device) noexcept {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

// A handle may be zero, but a zero Page is none.
Page page_of(CUmemGenericAllocationHandle handle) noexcept { return {handle + 1}; }
CUmemGenericAllocationHandle handle_of(Page page) noexcept { return page.id - 1; }

CUdeviceptr device_address(const void* address) noexcept {
  return reinterpret_cast<CUdeviceptr>(address);
}

}  // namespace

bool PageCalls::complete() const noexcept {
  return granularity != nullptr && reserve != nullptr && unreserve != nullptr &&
         create != nullptr && release != nullptr && map != nullptr && unmap != nullptr &&
         set_access != nullptr;
}

DriverPages::DriverPages(const PageCalls& calls, int device) noexcept
    : calls_(calls), device_(device) {
  const CUmemAllocationProp properties = memory_of(device);
  std::size_t granularity = 0;
  const CUresult code =
      calls.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (code == CUDA_SUCCESS && std::has_single_bit(granularity)) page_ = {granularity};
}

void* DriverPages::reserve(Bytes size) const noexcept {
  CUdeviceptr address = 0;
  const CUresult code = calls_.reserve(&address, size.count, page_.count, 0, 0);
  return code == CUDA_SUCCESS ? reinterpret_cast<void*>(address) : nullptr;
}

CUresult DriverPages::unreserve(void* address, Bytes size) const noexcept {
  return calls_.unreserve(device_address(address), size.count);
}

PagesDone DriverPages::create(std::span<Page> pages, PageSharing sharing) const noexcept {
  CUmemAllocationProp properties = memory_of(device_);
  if (sharing == PageSharing::kByFile) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult code = calls_.create(&handle, page_.count, &properties, 0);
    if (code != CUDA_SUCCESS) return {i, code, "cuMemCreate"};
    pages[i] = page_of(handle);
  }
  return {.count = pages.size()};
}

CUresult DriverPages::export_page(Page page, int& file) const noexcept {
  if (calls_.export_page == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return calls_.export_page(&file, handle_of(page), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

PagesDone DriverPages::destroy(std::span<const Page> pages) const noexcept {
  PagesDone done;
  for (const Page page : pages) {
    const CUresult code = calls_.release(handle_of(page));
    if (code == CUDA_SUCCESS) {
      ++done.count;
    } else {
      done.code = code;
      done.call = "cuMemRelease";
    }
  }
  return done;
}

PagesDone DriverPages::map(std::span<const Mapping> mappings,
                           std::span<const int> others) const noexcept {
  PagesDone done;
  while (done.count < mappings.size()) {
    const auto rest = mappings.subspan(done.count);
    const auto gap =
        std::adjacent_find(rest.begin(), rest.end(), [this](const Mapping& a, const Mapping& b) {
          return device_address(a.address) + page_.count != device_address(b.address);
        });
    const std::size_t run =
        gap == rest.end() ? rest.size() : static_cast<std::size_t>(gap - rest.begin()) + 1;
    const PagesDone mapped = map_run(rest.first(run), others);
    done.count += mapped.count;
    if (mapped.count == run) continue;
    done.code = mapped.code;
    done.call = mapped.call;
    break;
  }
  return done;
}

PagesDone DriverPages::map_run(std::span<const Mapping> run,
                               std::span<const int> others) const noexcept {
  PagesDone done;
  for (; done.count < run.size(); ++done.count) {
    const Mapping& each = run[done.count];
    done.code = calls_.map(device_address(each.address), page_.count, 0, handle_of(each.page), 0);
    if (done.code == CUDA_SUCCESS) continue;
    done.call = "cuMemMap";
    break;
  }
  if (done.count == 0) return done;
  void* const start = run.front().address;
  const Bytes size = page_ * done.count;
  CUresult code = allow(start, size, device_);
  for (const int other : others) {
    if (code == CUDA_SUCCESS) code = allow(start, size, other);
  }
  if (code == CUDA_SUCCESS) return done;
  // An unusable mapping counts as unmapped. If it stays mapped, it is still found: the driver
  // refuses to map over it and to free the addresses.
  (void)unmap(run.first(done.count));
  return {0, code, "cuMemSetAccess"};
}

PagesDone DriverPages::unmap(std::span<const Mapping> mappings) const noexcept {
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const CUresult code = calls_.unmap(device_address(mappings[i].address), page_.count);
    if (code != CUDA_SUCCESS) return {i, code, "cuMemUnmap"};
  }
  return {.count = mappings.size()};
}

CUresult DriverPages::allow(void* address, Bytes size, int device) const noexcept {
  const CUmemAccessDesc access = access_of(device);
  return calls_.set_access(device_address(address), size.count, &access, 1);
}

}  // namespace weir
