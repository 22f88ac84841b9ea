// Pages mapped into reserved addresses.

#include <unistd.h>

#include <cstdint>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

class StandInMap : public StandIn {
 protected:
  static CUresult create(CUmemGenericAllocationHandle* page, std::size_t bytes = kPage,
                         CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
    const CUmemAllocationProp of_device = properties(handles);
    return cuMemCreate(page, bytes, &of_device, 0);
  }
  static CUmemAllocationProp properties(CUmemAllocationHandleType handles) {
    CUmemAllocationProp of_device{};
    of_device.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of_device.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    of_device.requestedHandleTypes = handles;
    return of_device;
  }
  static CUmemGenericAllocationHandle make_page(
      std::size_t bytes = kPage, CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
    CUmemGenericAllocationHandle page = 0;
    ok(create(&page, bytes, handles));
    return page;
  }
  static CUdeviceptr reserve(std::size_t bytes, std::size_t alignment = 0) {
    CUdeviceptr address = 0;
    ok(cuMemAddressReserve(&address, bytes, alignment, 0, 0));
    return address;
  }
  static CUresult map(CUdeviceptr address, CUmemGenericAllocationHandle page,
                      std::size_t bytes = kPage) {
    return cuMemMap(address, bytes, 0, page, 0);
  }
  static void map_for_use(CUdeviceptr address, CUmemGenericAllocationHandle page,
                          std::size_t bytes = kPage) {
    ok(map(address, page, bytes));
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ok(cuMemSetAccess(address, bytes, &access, 1));
  }
  static unsigned char* bytes_at(CUdeviceptr address) {
    return reinterpret_cast<unsigned char*>(address);
  }
  static void expect_untouchable(CUdeviceptr address) {
    EXPECT_DEATH(*static_cast<volatile unsigned char*>(bytes_at(address)) = 1, "");
  }
};

TEST_F(StandInMap, APageIsMemoryOnceItIsMappedAndAllowed) {
  const CUdeviceptr address = reserve(2 * kPage);
  EXPECT_EQ(address % kPage, 0U);
  const auto page = make_page();
  EXPECT_EQ(weir_standin_used(0), kPage);
  ok(map(address, page));
  expect_untouchable(address);
  ok(cuMemUnmap(address, kPage));
  map_for_use(address, page);
  EXPECT_TRUE(all_bytes(bytes_at(address), 0xA5, kPage));
  ok(cudaMemset(bytes_at(address), 3, kPage));
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(bytes_at(address), 3, kPage));
  ok(cuMemUnmap(address, kPage));
  expect_untouchable(address);
  EXPECT_EQ(cudaMemset(bytes_at(address), 0, 1), cudaErrorInvalidValue);
}

TEST_F(StandInMap, OnlyWholeMappingsAreUnmapped) {
  const CUdeviceptr address = reserve(4 * kPage);
  const auto large = make_page(2 * kPage);
  const auto small = make_page();
  ok(map(address, large, 2 * kPage));
  ok(map(address + 2 * kPage, small));
  EXPECT_EQ(cuMemUnmap(address, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address + kPage, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(address, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemUnmap(address, 3 * kPage));
  EXPECT_EQ(weir_standin_live().mappings, 0U);
}

TEST_F(StandInMap, WhatIsNotReservedFreeOrFittingIsRefused) {
  const CUdeviceptr address = reserve(2 * kPage);
  const auto page = make_page();
  EXPECT_EQ(map(address + 2 * kPage, page), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(address, page, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(address, page + 1000), CUDA_ERROR_INVALID_VALUE);
  ok(map(address, page));
  EXPECT_EQ(map(address, page), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  CUmemGenericAllocationHandle odd = 0;
  EXPECT_EQ(create(&odd, kPage + 512), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInMap, NeighbouringPagesAreOneRangeToACopy) {
  const CUdeviceptr address = reserve(2 * kPage);
  map_for_use(address, make_page());
  map_for_use(address + kPage, make_page());
  ok(cudaMemset(bytes_at(address + kPage / 2), 1, kPage));
  EXPECT_EQ(cudaMemset(bytes_at(address + kPage / 2), 1, 2 * kPage), cudaErrorInvalidValue);
  ok(cudaDeviceSynchronize());
}

TEST_F(StandInMap, OnlyWhatWasMadeForItIsExportedAndOnlyPagesAreImported) {
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int file = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&file, make_page(), kFile, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      cuMemExportToShareableHandle(&file, make_page(kPage, kFile), CU_MEM_HANDLE_TYPE_WIN32, 0),
      CUDA_ERROR_NOT_SUPPORTED);
  CUmemGenericAllocationHandle imported = 0;
  for (const std::intptr_t other : {-1, STDERR_FILENO}) {
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(other), kFile),
              CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(StandInMap, PagesInCapturesAreAsTheProgramWasTold) {
  for (const bool safe : {false, true}) {
    weir_standin_set_pages_in_captures(safe ? 1 : 0);
    CUmemGenericAllocationHandle page = 0;
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(create(&page), safe ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph),
              safe ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
  }
}

}  // namespace
}  // namespace weir::standin::testing
