// How the runtime comes by the driver's functions.

#include "tests/standin/fixture.hpp"

#undef cuGetProcAddress

extern "C" CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                     cuuint64_t flags);
extern "C" CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream);

namespace weir::standin::testing {
namespace {

class StandInLookup : public StandIn {
 protected:
  template <typename F>
  static void* address(F* function) {
    return reinterpret_cast<void*>(function);
  }
  static void* find(const char* name, int version, cuuint64_t flags = 0) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(cuGetProcAddress_v2(name, &function, version, flags, &status), CUDA_SUCCESS) << name;
    EXPECT_EQ(status == CU_GET_PROC_ADDRESS_SUCCESS, function != nullptr) << name;
    return function;
  }
};

TEST_F(StandInLookup, GoesByNameAndVersion) {
  EXPECT_EQ(find("cuMemAlloc", 12000), address(&cuMemAlloc_v2));
  EXPECT_EQ(find("cuMemAlloc", 2000), nullptr);
  EXPECT_EQ(find("cuGetProcAddress", 11030), address(&cuGetProcAddress));
  EXPECT_EQ(find("cuGetProcAddress", 12000), address(&cuGetProcAddress_v2));
  EXPECT_EQ(find("cuNoSuchFunction", 12000), nullptr);
}

TEST_F(StandInLookup, GoesByDefaultStream) {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(find("cuMemAllocAsync", 12000), address(&cuMemAllocAsync));
  EXPECT_EQ(find("cuMemAllocAsync", 12000, kPerThread), address(&cuMemAllocAsync_ptsz));
  EXPECT_EQ(find("cuMemAlloc", 12000, kPerThread), address(&cuMemAlloc_v2));
}

TEST_F(StandInLookup, FindsWhatIsNotImitatedToo) {
  void* function = find("cuArrayGetDescriptor", 12000);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function, address(&cuArrayGetDescriptor_v2));
}

TEST_F(StandInLookup, RefusesWhatTheRealOneRefuses) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("", &function, 0, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, CUDA_VERSION + 10, 0, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuNoSuchFunction", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
}

/// What the runtime finds; the form that names a version is of 12.5.
cudaError_t find_by_runtime(const char* name, void** function,
                            cudaDriverEntryPointQueryResult* status) {
#if CUDART_VERSION >= 12050
  return cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault, status);
#else
  return cudaGetDriverEntryPoint(name, function, cudaEnableDefault, status);
#endif
}

TEST_F(StandInLookup, IsOfferedByTheRuntimeToo) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ASSERT_EQ(find_by_runtime("cuMemMap", &function, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_EQ(function, address(&cuMemMap));
  ASSERT_EQ(find_by_runtime("cuNoSuch", &function, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
}

}  // namespace
}  // namespace weir::standin::testing
