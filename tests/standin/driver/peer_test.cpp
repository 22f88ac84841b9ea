// Access to the memory of another device.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInPeer : public StandIn {
 protected:
  StandInPeer() { weir_standin_set_devices(2); }

  static CUcontext context_of(int device) {
    CUcontext context = nullptr;
    ok(cudaSetDevice(device));
    ok(cuCtxGetCurrent(&context));
    return context;
  }
  static cudaMemPool_t pool_of(int device) {
    cudaMemPool_t pool = nullptr;
    ok(cudaDeviceGetDefaultMemPool(&pool, device));
    return pool;
  }
  static cudaMemAccessFlags access_of(cudaMemPool_t pool, int device) {
    cudaMemAccessFlags flags{};
    cudaMemLocation location{};
    location.type = cudaMemLocationTypeDevice;
    location.id = device;
    ok(cudaMemPoolGetAccess(&flags, pool, &location));
    return flags;
  }
  static cudaError_t set_access(cudaMemPool_t pool, int device, cudaMemAccessFlags flags) {
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = device;
    access.flags = flags;
    return cudaMemPoolSetAccess(pool, &access, 1);
  }
};

TEST_F(StandInPeer, IsAnyOtherDevice) {
  int can = -1;
  ok(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  ok(cudaDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
}

TEST_F(StandInPeer, IsAccessedOnceEnabledAndInOneDirection) {
  ok(cudaSetDevice(0));
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  ok(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
  ok(cudaSetDevice(1));
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  ok(cudaSetDevice(0));
  ok(cudaDeviceDisablePeerAccess(1));
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
}

TEST_F(StandInPeer, IsAContextAtTheDriver) {
  CUcontext other = context_of(1);
  CUcontext own = context_of(0);
  EXPECT_EQ(cuCtxEnablePeerAccess(own, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
}

TEST_F(StandInPeer, HasToBeEnabledAgainAfterAResetOfEither) {
  for (const int device : {0, 1}) {
    ok(cudaSetDevice(0));
    ok(cudaDeviceEnablePeerAccess(1, 0));
    ok(cudaSetDevice(device));
    ok(cudaDeviceReset());
    ok(cudaSetDevice(0));
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  }
}

TEST_F(StandInPeer, MayUseAPoolThatSaysSo) {
  cudaMemPool_t pool = pool_of(0);
  EXPECT_EQ(access_of(pool, 0), cudaMemAccessFlagsProtReadWrite);
  EXPECT_EQ(access_of(pool, 1), cudaMemAccessFlagsProtNone);
  ok(set_access(pool, 1, cudaMemAccessFlagsProtReadWrite));
  EXPECT_EQ(access_of(pool, 1), cudaMemAccessFlagsProtReadWrite);
  EXPECT_EQ(access_of(pool_of(1), 0), cudaMemAccessFlagsProtNone);
  ok(set_access(pool, 1, cudaMemAccessFlagsProtNone));
  EXPECT_EQ(access_of(pool, 1), cudaMemAccessFlagsProtNone);
  // Its own device keeps access.
  EXPECT_EQ(set_access(pool, 0, cudaMemAccessFlagsProtNone), cudaErrorInvalidValue);
  EXPECT_EQ(set_access(pool, 2, cudaMemAccessFlagsProtReadWrite), cudaErrorInvalidDevice);
}

TEST_F(StandInPeer, GetsACopyThatIsOrderedOnAStream) {
  CUcontext contexts[] = {context_of(0), context_of(1)};
  const auto to = reinterpret_cast<CUdeviceptr>(make_memory());
  (void)context_of(0);
  unsigned char* memory = make_memory();
  const auto from = reinterpret_cast<CUdeviceptr>(memory);
  ok(cudaMemsetAsync(memory, 4, 512, stream_));
  ok(cuMemcpyPeerAsync(to, contexts[1], from, contexts[0], 512, stream_));
  sync();
  EXPECT_TRUE(all_bytes(reinterpret_cast<unsigned char*>(to), 4));
  EXPECT_EQ(cuMemcpyPeerAsync(to, contexts[0], from, contexts[0], 512, stream_),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyPeerAsync(to, nullptr, from, contexts[0], 512, stream_),
            CUDA_ERROR_INVALID_CONTEXT);
}

#if CUDA_VERSION >= 13000
TEST_F(StandInPeer, HasItsPoolsByLocation) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = 1;
  CUmemoryPool pool = nullptr;
  ok(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(pool, reinterpret_cast<CUmemoryPool>(pool_of(1)));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  CUmemoryPool own = nullptr;
  ok(cuMemPoolCreate(&own, &properties));
  ok(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, own));
  ok(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(pool, own);
  location.id = 0;
  EXPECT_EQ(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, own),
            CUDA_ERROR_INVALID_VALUE);
  location.type = CU_MEM_LOCATION_TYPE_HOST;
  EXPECT_EQ(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
            CUDA_ERROR_NOT_SUPPORTED);
  location.type = CU_MEM_LOCATION_TYPE_INVALID;
  EXPECT_EQ(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
            CUDA_ERROR_INVALID_VALUE);
}
#endif

}  // namespace
}  // namespace weir::standin::testing
