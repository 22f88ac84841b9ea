#include "allocator/memory/page_source_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <exception>
#include <string>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"

namespace weir {
namespace {

/// Returns the driver's function of this name, or null. Asks the runtime, so that no driver needs
/// to be loaded.
template <typename F>
void look_up(const char* name, F& function) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;  // the version of the declarations in <cuda.h>
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found);
#endif
  if (take_cuda_error(code) != cudaSuccess || found != cudaDriverEntryPointSuccess) return;
  static_assert(sizeof address == sizeof function);
  std::memcpy(&function, &address, sizeof function);
}

PageCalls look_up_calls() noexcept {
  PageCalls calls;
  look_up("cuMemGetAllocationGranularity", calls.granularity);
  look_up("cuMemAddressReserve", calls.reserve);
  look_up("cuMemAddressFree", calls.unreserve);
  look_up("cuMemCreate", calls.create);
  look_up("cuMemRelease", calls.release);
  look_up("cuMemMap", calls.map);
  look_up("cuMemUnmap", calls.unmap);
  look_up("cuMemSetAccess", calls.set_access);
  return calls;
}

bool supports_pages(int device) noexcept {
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  look_up("cuDeviceGetAttribute", attribute);
  int supported = 0;
  // The runtime has no name for this attribute. It numbers devices as the driver does.
  return attribute != nullptr &&
         attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ==
             CUDA_SUCCESS &&
         supported != 0;
}

/// The driver and the runtime share error codes (since CUDA 10.1).
cudaError_t runtime_code(CUresult code) noexcept { return static_cast<cudaError_t>(code); }

void report(const PagesDone& done, const char* what) noexcept {
  try {
    log(LogLevel::kError, std::string(what) + ": " + done.call +
                              " failed: " + describe_cuda_error(runtime_code(done.code)));
  } catch (const std::exception&) {
    log(LogLevel::kError, what);
  }
}

/// Calls `work` on the device and returns what it did: nothing if the device cannot be used.
template <typename Work>
PagesDone on_device(int device, const Work& work) noexcept {
  try {
    const CudaScope scope(device);
    return work();
  } catch (const CudaError& error) {
    return {0, static_cast<CUresult>(error.code()), "cudaSetDevice"};
  }
}

}  // namespace

std::unique_ptr<CudaPages> CudaPages::open(int device, CapacityGauge& gauge) {
  const CudaScope scope(device);
  const PageCalls calls = look_up_calls();
  if (!calls.complete() || !supports_pages(device)) return nullptr;
  const DriverPages pages(calls, device);
  if (pages.page_size().count == 0) return nullptr;
  return std::unique_ptr<CudaPages>(new CudaPages(pages, device, gauge));
}

void* CudaPages::reserve(Bytes size) {
  const CudaScope scope(device_);
  return pages_.reserve(size);
}

void CudaPages::unreserve(void* address, Bytes size) noexcept {
  const PagesDone done = on_device(device_, [&]() -> PagesDone {
    return {0, pages_.unreserve(address, size), "cuMemAddressFree"};
  });
  if (done.code != CUDA_SUCCESS) report(done, "addresses cannot be released");
}

std::size_t CudaPages::create(std::span<Page> pages) {
  const std::size_t taken = gauge_.take_up_to(pages.size(), page_size());
  PagesDone made = on_device(device_, [&] { return pages_.create(pages.first(taken)); });
  if (made.code != CUDA_SUCCESS && made.code != CUDA_ERROR_OUT_OF_MEMORY) {
    destroy(pages.first(made.count));
    gauge_.withdraw(page_size() * (taken - made.count));
    throw CudaError(made.call, runtime_code(made.code), format_bytes(page_size()));
  }
  gauge_.withdraw(page_size() * (taken - made.count));
  return made.count;
}

/// Memory that cannot be returned stays charged permanently.
void CudaPages::destroy(std::span<const Page> pages) noexcept {
  const PagesDone done = on_device(device_, [&] { return pages_.destroy(pages); });
  gauge_.withdraw(page_size() * done.count);
  if (done.code != CUDA_SUCCESS) report(done, "pages cannot be released");
}

std::size_t CudaPages::map(std::span<const Mapping> mappings) noexcept {
  const PagesDone done = on_device(device_, [&] { return pages_.map(mappings); });
  if (done.code != CUDA_SUCCESS && done.code != CUDA_ERROR_OUT_OF_MEMORY) {
    report(done, "a page cannot be mapped");
  }
  return done.count;
}

std::size_t CudaPages::unmap(std::span<const Mapping> mappings) noexcept {
  const PagesDone done = on_device(device_, [&] { return pages_.unmap(mappings); });
  if (done.code != CUDA_SUCCESS) report(done, "a page cannot be unmapped");
  return done.count;
}

}  // namespace weir
