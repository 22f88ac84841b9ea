// Arrays: their size in bytes, and invalid descriptors.

#include <limits>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInArray : public StandIn {
 protected:
  static CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth,
                                        unsigned int flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR wanted{};
    wanted.Width = width;
    wanted.Height = height;
    wanted.Depth = depth;
    wanted.Format = CU_AD_FORMAT_FLOAT;
    wanted.NumChannels = 1;
    wanted.Flags = flags;
    return wanted;
  }
  /// The device memory of an array, which it releases.
  static std::size_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    CUarray array = nullptr;
    ok(cuArray3DCreate_v2(&array, &wanted));
    const std::size_t used = weir_standin_used(0);
    ok(cuArrayDestroy(array));
    EXPECT_EQ(weir_standin_used(0), 0U);
    return used;
  }
  static std::size_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned int levels) {
    CUmipmappedArray array = nullptr;
    ok(cuMipmappedArrayCreate(&array, &wanted, levels));
    const std::size_t used = weir_standin_used(0);
    ok(cuMipmappedArrayDestroy(array));
    EXPECT_EQ(weir_standin_used(0), 0U);
    return used;
  }
  static CUresult create(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    CUarray array = nullptr;
    return cuArray3DCreate_v2(&array, &wanted);
  }
};

TEST_F(StandInArray, TakesFormatTimesChannelsTimesExtents) {
  EXPECT_EQ(bytes_of(floats(2048, 0, 0)), 2048U * 4);
  EXPECT_EQ(bytes_of(floats(64, 64, 0)), 64U * 64 * 4);
  EXPECT_EQ(bytes_of(floats(64, 32, 16)), 64U * 32 * 16 * 4);
  EXPECT_EQ(bytes_of(floats(1, 0, 0)), 512U);
  CUDA_ARRAY3D_DESCRIPTOR halves = floats(128, 128, 0);
  halves.Format = CU_AD_FORMAT_HALF;
  halves.NumChannels = 4;
  EXPECT_EQ(bytes_of(halves), 128U * 128 * 8);
}

TEST_F(StandInArray, OfLayersTakesEachOfThem) {
  EXPECT_EQ(bytes_of(floats(256, 0, 10, CUDA_ARRAY3D_LAYERED)), 256U * 10 * 4);
  EXPECT_EQ(bytes_of(floats(64, 64, 6, CUDA_ARRAY3D_CUBEMAP)), 64U * 64 * 6 * 4);
  EXPECT_EQ(bytes_of(floats(64, 64, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)),
            64U * 64 * 12 * 4);
}

TEST_F(StandInArray, OfLevelsTakesEachOfThemHalved) {
  EXPECT_EQ(bytes_of(floats(256, 256, 0), 1), 256U * 256 * 4);
  EXPECT_EQ(bytes_of(floats(256, 256, 0), 2), (256U * 256 + 128U * 128) * 4);
  EXPECT_EQ(bytes_of(floats(128, 64, 2, CUDA_ARRAY3D_LAYERED), 2), (128U * 64 + 64U * 32) * 2 * 4);
  // No more than there can be: 8, 4, 2 and 1 wide.
  EXPECT_EQ(bytes_of(floats(256, 8, 0), 0), 256U * 8 * 4);
  EXPECT_EQ(bytes_of(floats(8, 8, 0), 100), 512U);
  EXPECT_EQ(bytes_of(floats(256, 0, 0), 100), 2048U);
}

TEST_F(StandInArray, RunsOutAtTheDevicesSize) {
  weir_standin_set_memory(kMiB);
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR most = floats(512, 512, 0);
  ok(cuArray3DCreate_v2(&array, &most));
  EXPECT_EQ(create(floats(1, 0, 0)), CUDA_ERROR_OUT_OF_MEMORY);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
  ok(cuArrayDestroy(array));
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StandInArray, OfAnInvalidDescriptorIsRefused) {
  EXPECT_EQ(create(floats(0, 0, 0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(131073, 0, 0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(16, 65537, 0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(16, 16, 16385)), CUDA_ERROR_INVALID_VALUE);
  // Depth without height is a list of layers, and must say so.
  EXPECT_EQ(create(floats(16, 0, 4)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(16, 16, 0, CUDA_ARRAY3D_LAYERED)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(16, 8, 6, CUDA_ARRAY3D_CUBEMAP)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(floats(16, 16, 7, CUDA_ARRAY3D_CUBEMAP)), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY3D_DESCRIPTOR wanted = floats(16, 16, 0);
  wanted.NumChannels = 3;
  EXPECT_EQ(create(wanted), CUDA_ERROR_INVALID_VALUE);
  wanted = floats(16, 16, 0);
  wanted.Format = static_cast<CUarray_format>(7);
  EXPECT_EQ(create(wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.Format = static_cast<CUarray_format>(0x91);  // compressed, which is not imitated
  EXPECT_EQ(create(wanted), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuArrayCreate_v2(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().arrays, 0U);
}

TEST_F(StandInArray, GoesWithItsContext) {
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR wanted = floats(64, 64, 0);
  ok(cuArray3DCreate_v2(&array, &wanted));
  ok(cuMipmappedArrayCreate(&levels, &wanted, 3));
  EXPECT_EQ(weir_standin_live().arrays, 2U);
  ok(cudaDeviceReset());
  EXPECT_EQ(weir_standin_live().arrays, 0U);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInArray, IsMadeByTheRuntimeToo) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc pairs{16, 16, 0, 0, cudaChannelFormatKindUnsigned};
  ok(cudaMallocArray(&array, &pairs, 100, 10, cudaArrayDefault));
  EXPECT_EQ(weir_standin_used(0), 4096U);  // of 4000
  ok(cudaFreeArray(array));
  ok(cudaMallocArray(&array, &pairs, 100, 10, cudaArraySurfaceLoadStore));
  ok(cudaFreeArray(array));
  EXPECT_EQ(weir_standin_used(0), 0U);
  ok(cudaFreeArray(nullptr));
  const cudaChannelFormatDesc three{8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  EXPECT_EQ(cudaMallocArray(&array, &three, 1, 1, 0), cudaErrorInvalidChannelDescriptor);
  const cudaChannelFormatDesc small{8, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_EQ(cudaMallocArray(&array, &small, 1, 1, 0), cudaErrorInvalidChannelDescriptor);
}

}  // namespace
}  // namespace weir::standin::testing
