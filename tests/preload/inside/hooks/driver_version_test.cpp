// Calls for which the driver is too old. On the stand-in of 12.4 they are missing.

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class DriverVersion : public Inside {
 protected:
  static int version() {
    int version = 0;
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    return version;
  }
};

#if CUDA_VERSION >= 13000
TEST_F(DriverVersion, HasTheFunctionsOfItsTime) {
  ASSERT_NO_FATAL_FAILURE(start());
  const Driver& known = *driver();
  EXPECT_EQ(known.cuGreenCtxStreamCreate != nullptr, version() >= 12050);
  EXPECT_EQ(known.cuMemcpyBatchAsync_v2 != nullptr, version() >= 13000);
  EXPECT_EQ(known.cuMemcpyBatchAsync_v2_ptsz != nullptr, version() >= 13000);
  EXPECT_EQ(known.cuMemSetMemPool != nullptr, version() >= 13000);
  EXPECT_NE(known.cuGraphAddNode_v2, nullptr);
}

TEST_F(DriverVersion, CallsThatAreTooNewForItAreNotSupportedAndTheRestIsServed) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr pointer = allocate(kBytes);
  CUmemLocation here{};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemoryPool pool = default_pool();
  const CUresult set = cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
  EXPECT_EQ(set, version() >= 13000 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr to = pointer;
  CUdeviceptr from = pointer + kBytes / 2;
  std::size_t bytes = kBytes / 2;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::size_t index = 0;
  const CUstream stream = make_stream();
  const CUresult copied =
      cuMemcpyBatchAsync_v2(&to, &from, &bytes, 1, &attributes, &index, 1, stream);
  EXPECT_EQ(copied, version() >= 13000 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  free(pointer);
  settle();
  EXPECT_TRUE(is_handed_out(pointer, kBytes));
}
#endif

}  // namespace
}  // namespace weir::preload::testing
