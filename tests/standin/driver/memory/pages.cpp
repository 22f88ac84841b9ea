// Physical pages, mapped into reserved addresses. Pages are files in memory, so that a page can be
// mapped at two places and keeps its contents. They belong to the process: <cuda.h> lists no code
// about contexts for these functions.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/standin/driver/memory/memory.hpp"

namespace {

using namespace weir::standin;

constexpr int kNoFile = -2;  ///< of pages that are addresses only

/// Reserves addresses that cannot be accessed; at `fixed`, if given, inside a reservation.
void* reserve(std::size_t bytes, void* fixed) {
  const int flags =
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed != nullptr ? MAP_FIXED : 0);
  void* memory = mmap(fixed, bytes, PROT_NONE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Whether one reservation holds the whole range.
bool is_reserved(const Driver& driver, std::uintptr_t address, std::size_t bytes) {
  auto after = driver.reservations.upper_bound(address);
  if (after == driver.reservations.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return address - start < size && bytes <= size - (address - start);
}

bool is_mapped(const Driver& driver, std::uintptr_t address, std::size_t bytes) {
  const auto at_or_after = driver.mappings.lower_bound(address);
  if (at_or_after != driver.mappings.end() && at_or_after->first < address + bytes) return true;
  if (at_or_after == driver.mappings.begin()) return false;
  const auto before = std::prev(at_or_after);
  return before->first + before->second.bytes > address;
}

/// The mappings that make up exactly this range. Refuses any other one.
std::vector<std::uintptr_t> mappings_of(const Driver& driver, std::uintptr_t address,
                                        std::size_t bytes) {
  std::vector<std::uintptr_t> found;
  std::uintptr_t next = address;
  while (next < address + bytes) {
    const auto mapping = driver.mappings.find(next);
    require(mapping != driver.mappings.end());
    found.push_back(next);
    next += mapping->second.bytes;
  }
  require(next == address + bytes && !found.empty());
  return found;
}

/// Pages of which the program has a handle.
Pages& get_pages(Driver& driver, CUmemGenericAllocationHandle handle) {
  const auto found = driver.pages.find(handle);
  require(found != driver.pages.end() && found->second.references > 0);
  return found->second;
}

CUmemGenericAllocationHandle add_pages(Driver& driver, const Pages& pages) {
  driver.pages.emplace(driver.next_pages, pages);
  return driver.next_pages++;
}

int copy_file(int file) {
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  require(copy >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  return copy;
}

void close_file(const Pages& pages) {
  if (pages.file != kNoFile) close(pages.file);
}

void drop_if_unused(Driver& driver, std::uint64_t handle) {
  const auto found = driver.pages.find(handle);
  Pages& pages = found->second;
  if (pages.references > 0 || pages.mappings > 0) return;
  if (!pages.imported) pages.device->credit(pages.bytes);
  close_file(pages);
  driver.pages.erase(found);
}

/// File name of pages, by which another process knows their device.
constexpr const char* kFileName = "weir-standin-device-";

int make_file(std::size_t bytes, int device) {
  const int file = memfd_create((kFileName + std::to_string(device)).c_str(), MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  // As with other memory, only the first part has the pattern: pages may be large.
  const std::vector<unsigned char> pattern(kPage, kNewByte);
  if (pwrite(file, pattern.data(), pattern.size(), 0) != static_cast<ssize_t>(pattern.size())) {
    close(file);
    return -1;
  }
  return file;
}

/// The device whose pages are in `file`; -1 for another file.
int device_of(int file) {
  std::array<char, 64> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (readlink(link.c_str(), name.data(), name.size() - 1) <= 0) return -1;
  const std::string start = std::string("/memfd:") + kFileName;
  const std::string found(name.data());
  if (found.compare(0, start.size(), start) != 0) return -1;
  return std::atoi(found.c_str() + start.size());
}

}  // namespace

void weir::standin::forget_pages(Driver& driver) {
  driver.mappings.clear();
  for (const auto& [start, bytes] : driver.reservations) {
    munmap(reinterpret_cast<void*>(start), bytes);
  }
  driver.reservations.clear();
  for (const auto& [handle, pages] : driver.pages) {
    if (!pages.imported) pages.device->credit(pages.bytes);
    close_file(pages);
  }
  driver.pages.clear();
}

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  return api("cuMemGetAllocationGranularity", Needs::kDriver, [&](Call& /*call*/) {
    require(granularity != nullptr && properties != nullptr);
    *granularity = kPage;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return api("cuMemAddressReserve", Needs::kDriver, [&](Call& call) {
    require(pointer != nullptr && bytes != 0 && bytes % kPage == 0 && flags == 0 &&
            (alignment & (alignment - 1)) == 0);
    alignment = std::max(alignment, kPage);
    void* memory = reserve(bytes + alignment, nullptr);
    require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    const auto whole = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t start = round_up(whole, alignment);
    if (start > whole) munmap(memory, start - whole);
    munmap(reinterpret_cast<void*>(start + bytes), whole + alignment - start);
    call.driver.reservations.emplace(start, bytes);
    *pointer = start;
  });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  return api("cuMemAddressFree", Needs::kDriver, [&](Call& call) {
    const auto found = call.driver.reservations.find(pointer);
    require(found != call.driver.reservations.end() && found->second == bytes &&
            !is_mapped(call.driver, pointer, bytes));
    call.driver.reservations.erase(found);
    munmap(reinterpret_cast<void*>(pointer), bytes);
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return api("cuMemCreate", Needs::kPages, [&](Call& call) {
    require(handle != nullptr && properties != nullptr && bytes != 0 && bytes % kPage == 0 &&
            flags == 0);
    require(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                call.driver.pages_supported,
            CUDA_ERROR_NOT_SUPPORTED);
    Device& device = get_device(call.driver, properties->location.id);
    device.charge(bytes);
    const int file = call.driver.addresses_only ? kNoFile : make_file(bytes, device.ordinal);
    if (file < 0 && file != kNoFile) {
      device.credit(bytes);
      pass(CUDA_ERROR_OUT_OF_MEMORY);
    }
    const bool exportable =
        (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
    *handle = add_pages(
        call.driver, {.device = &device, .bytes = bytes, .file = file, .exportable = exportable});
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return api("cuMemRelease", Needs::kPages, [&](Call& call) {
    --get_pages(call.driver, handle).references;
    drop_if_unused(call.driver, handle);
  });
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  return api("cuMemExportToShareableHandle", Needs::kDriver, [&](Call& call) {
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    const Pages& pages = get_pages(call.driver, handle);
    require(shareable != nullptr && flags == 0 && pages.exportable && pages.file != kNoFile);
    *static_cast<int*>(shareable) = copy_file(pages.file);
  });
}

// The memory stays charged to its creator.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  return api("cuMemImportFromShareableHandle", Needs::kDriver, [&](Call& call) {
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    Device& device = get_device(call.driver, device_of(file), CUDA_ERROR_INVALID_VALUE);
    struct stat about {};
    require(handle != nullptr && fstat(file, &about) == 0);
    *handle = add_pages(call.driver, {.device = &device,
                                      .bytes = static_cast<std::size_t>(about.st_size),
                                      .file = copy_file(file),  // the caller closes its own
                                      .exportable = true,
                                      .imported = true});
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return api("cuMemRetainAllocationHandle", Needs::kPages, [&](Call& call) {
    auto after = call.driver.mappings.upper_bound(reinterpret_cast<std::uintptr_t>(address));
    require(handle != nullptr && after != call.driver.mappings.begin());
    const auto& [start, mapping] = *std::prev(after);
    require(reinterpret_cast<std::uintptr_t>(address) - start < mapping.bytes);
    ++call.driver.pages.at(mapping.pages).references;
    *handle = mapping.pages;
  });
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return api("cuMemMap", Needs::kPages, [&](Call& call) {
    Pages& pages = get_pages(call.driver, handle);
    require(flags == 0 && offset == 0 && bytes == pages.bytes && pointer % kPage == 0 &&
            is_reserved(call.driver, pointer, bytes) && !is_mapped(call.driver, pointer, bytes));
    // Addresses only: they are already reserved and inaccessible.
    require(pages.file == kNoFile || mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE,
                                          MAP_SHARED | MAP_FIXED, pages.file, 0) != MAP_FAILED,
            CUDA_ERROR_OUT_OF_MEMORY);
    ++pages.mappings;
    call.driver.mappings.emplace(pointer, Mapping{bytes, handle});
  });
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  return api("cuMemUnmap", Needs::kPages, [&](Call& call) {
    for (const std::uintptr_t start : mappings_of(call.driver, pointer, bytes)) {
      const Mapping mapping = call.driver.mappings.at(start);
      call.driver.mappings.erase(start);
      // The address stays reserved, and an access to it ends the program.
      (void)reserve(mapping.bytes, reinterpret_cast<void*>(start));
      --call.driver.pages.at(mapping.pages).mappings;
      drop_if_unused(call.driver, mapping.pages);
    }
  });
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc* access,
                        size_t count) {
  return api("cuMemSetAccess", Needs::kPages, [&](Call& call) {
    const std::vector<std::uintptr_t> whole = mappings_of(call.driver, pointer, bytes);
    require(access != nullptr && count != 0);
    int protection = PROT_NONE;
    for (std::size_t i = 0; i < count; ++i) {
      if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        protection = PROT_READ | PROT_WRITE;
      if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) protection |= PROT_READ;
    }
    for (const std::uintptr_t start : whole) {
      const Mapping& mapping = call.driver.mappings.at(start);
      if (call.driver.pages.at(mapping.pages).file == kNoFile) continue;
      require(mprotect(reinterpret_cast<void*>(start), mapping.bytes, protection) == 0);
    }
  });
}

}  // extern "C"
