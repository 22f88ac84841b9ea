// Devices, access to the memory of another one, and what remains after a reset.

#include <thread>

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInDevice : public StandIn {};

TEST_F(StandInDevice, NoneIsAnError) {
  weir_standin_set_devices(0);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorInvalidDevice);
  weir_standin_set_devices(1);
  ok(cudaSetDevice(0));
}

TEST_F(StandInDevice, IsEachThreadsOwnChoice) {
  weir_standin_set_devices(2);
  ok(cudaSetDevice(1));
  std::thread([] {
    int device = -1;
    ok(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    ok(cudaFree(make_memory()));
  }).join();
  EXPECT_EQ(weir_standin_peak(0), 512U);
  EXPECT_EQ(weir_standin_peak(1), 0U);
  ok(cudaSetDevice(0));
}

TEST_F(StandInDevice, IsUsableByOtherThreadsAfterAReset) {
  ok(cudaFree(make_memory()));
  std::thread([] { ok(cudaDeviceReset()); }).join();
  ok(cudaFree(make_memory()));
}

TEST_F(StandInDevice, SaysOfWhatIsNotImitatedThatItIsNotSupported) {
  cudaArray_t array = nullptr;
  cudaChannelFormatDesc description{};
  EXPECT_EQ(cudaMalloc3DArray(&array, &description, {1, 1, 1}, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  EXPECT_EQ(cuArrayGetDescriptor_v2(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const void* table = nullptr;
  EXPECT_EQ(cuGetExportTable(&table, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(weir_standin_calls("cuGetExportTable"), 1U);
}

class StandInPeer : public StandIn {
 protected:
  StandInPeer() { weir_standin_set_devices(2); }

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

}  // namespace
}  // namespace weir::standin::testing
