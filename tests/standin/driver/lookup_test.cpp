// How the runtime gets the driver's functions.

#include <set>
#include <string>
#include <tuple>

#include "tests/standin/fixture.hpp"

#undef cuGetProcAddress

extern "C" CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                     cuuint64_t flags);
extern "C" CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream);
extern "C" CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                       CUstream stream);

namespace weir::standin::testing {
namespace {

constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

/// One form of a function with a type in the toolkit: its name, its version, and whether it is for
/// per-thread default streams.
using Form = std::tuple<std::string, int, bool>;

std::set<Form> forms_of_toolkit() {
#define PLAIN(base, version) Form{#base, version, false},
#define PER_THREAD(base, version, suffix) Form{#base, version, true},
  return {
#include "typedefs.inc"
  };
#undef PLAIN
#undef PER_THREAD
}

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

TEST_F(StandInLookup, GoesByNameAndVersionAndDefaultStream) {
  const struct {
    const char* name;
    int version;
    cuuint64_t flags;
    void* function;
  } rows[] = {
      {"cuMemAlloc", 12000, 0, address(&cuMemAlloc_v2)},
      {"cuMemAlloc", 12000, kPerThread, address(&cuMemAlloc_v2)},
      {"cuMemAlloc", 2000, 0, nullptr},
      {"cuNoSuchFunction", 12000, 0, nullptr},
      {"cuGetProcAddress", 11030, 0, address(&cuGetProcAddress)},
      {"cuGetProcAddress", 12000, 0, address(&cuGetProcAddress_v2)},
      {"cuMemAllocAsync", 12000, 0, address(&cuMemAllocAsync)},
      {"cuMemAllocAsync", 12000, kPerThread, address(&cuMemAllocAsync_ptsz)},
      // Forms per thread begin at a version of their own.
      {"cuMemcpyAsync", 4000, kPerThread, address(&cuMemcpyAsync)},
      {"cuMemcpyAsync", 6050, kPerThread, address(&cuMemcpyAsync)},
      {"cuMemcpyAsync", 7000, kPerThread, address(&cuMemcpyAsync_ptsz)},
      {"cuMemcpyAsync", 7000, kLegacy, address(&cuMemcpyAsync)},
      // Not simulated.
      {"cuArrayGetDescriptor", 12000, 0, address(&cuArrayGetDescriptor_v2)},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(find(row.name, row.version, row.flags), row.function)
        << row.name << " " << row.version << " " << row.flags;
  }
}

TEST_F(StandInLookup, AgreesWithTheToolkitsTypesOnVersions) {
  const std::set<Form> forms = forms_of_toolkit();
  std::set<std::string> names;
  std::set<int> versions;
  for (const auto& [name, version, per_thread] : forms) {
    names.insert(name);
    if (version <= CUDA_VERSION) versions.insert({version - 1, version});
  }
  std::size_t found = 0;
  const auto expect_form = [&](const std::string& name, int version, bool per_thread) {
    ++found;
    EXPECT_TRUE(forms.contains({name, version, per_thread}))
        << name << " begins at " << version << (per_thread ? ", per thread" : "");
  };
  for (const std::string& name : names) {
    // A function without a simulation has no version here: every look-up finds it.
    if (find(name.c_str(), 1) != nullptr) continue;
    void* before = nullptr;
    bool own_before = false;
    for (const int version : versions) {
      void* const legacy = find(name.c_str(), version, kLegacy);
      const bool own = find(name.c_str(), version, kPerThread) != legacy;
      if (legacy != before) expect_form(name, version, false);
      if (own != own_before) expect_form(name, version, true);
      before = legacy;
      own_before = own;
    }
  }
  EXPECT_GT(found, 150U);
}

#if CUDA_VERSION >= 13000
TEST_F(StandInLookup, OfAnOlderDriverKnowsNothingThatCameLater) {
  weir_standin_set_driver_version(12040);
  int version = 0;
  ok(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 12040);
  // Imitated, and not.
  for (const char* name : {"cuMemcpyBatchAsync", "cuMemSetMemPool", "cuGreenCtxStreamCreate"}) {
    CUdriverProcAddressQueryResult status{};
    void* function = nullptr;
    ok(cuGetProcAddress_v2(name, &function, 12040, 0, &status));
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << name;
    EXPECT_EQ(function, nullptr) << name;
  }
  // If both names have versions, the older one.
  EXPECT_NE(find("cuCtxCreate", 12040), address(&cuCtxCreate_v4));
  EXPECT_NE(find("cuCtxCreate", 12040), nullptr);
  EXPECT_EQ(find("cuGraphAddNode", 12040), address(&cuGraphAddNode_v2));
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
}
#endif

TEST_F(StandInLookup, RefusesWhatTheRealOneRefuses) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("", &function, 0, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, CUDA_VERSION + 10, 0, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuNoSuchFunction", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
}

/// The runtime's result; the form that names a version is of 12.5.
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
  ok(find_by_runtime("cuMemMap", &function, &status));
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_EQ(function, address(&cuMemMap));
  ok(find_by_runtime("cuNoSuch", &function, &status));
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
}

}  // namespace
}  // namespace weir::standin::testing
