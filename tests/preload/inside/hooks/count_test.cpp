// Memory that the driver serves past the pool, counted against the budget. One long file, because
// every kind of such memory is checked by the same few counts.

#include <cstring>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Counted : public Inside {
 protected:
  static CUDA_ARRAY_DESCRIPTOR floats(std::size_t width, std::size_t height) {
    CUDA_ARRAY_DESCRIPTOR d{};
    d.Width = width;
    d.Height = height;
    d.Format = CU_AD_FORMAT_FLOAT;
    d.NumChannels = 4;
    return d;
  }
  static CUmodule load_module() {
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
    return module;
  }
  static constexpr int kImage = 0;
};

TEST_F(Counted, PagesUntilTheyAreReleased) {
  expect_refused("cuMemRelease", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  CUmemGenericAllocationHandle pages = 0;
  ASSERT_EQ(make_pages(16 * kMib, &pages), CUDA_SUCCESS);
  EXPECT_EQ(passed("mappable"), mib(16));
  EXPECT_EQ(free_bytes(), 48 * kMib);
  EXPECT_EQ(make_pages(64 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(used(), mib(16));
  ASSERT_EQ(cuMemRelease(pages), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
  EXPECT_NE(cuMemRelease(pages), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, ThePoolsCacheMakesRoomForThem) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  free(allocate(64 * kMib));
  settle();
  EXPECT_EQ(used(), mib(64));
  ASSERT_EQ(make_pages(16 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(16));
}

TEST_F(Counted, TheDevicesQueuedWorkMakesRoomForThem) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(64 * kMib);
  keep_busy(stream, block);
  free(block);
  // The trim asks for its fence once, and waiters then ask repeatedly.
  release_while_waiting(stream, [] { EXPECT_EQ(make_pages(16 * kMib), CUDA_SUCCESS); });
}

TEST_F(Counted, WhatNoQueuedWorkMakesRoomForIsRefusedAtOnce) {
  // With a wait longer than the test.
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  keep_busy(make_stream(), allocate(8 * kMib));
  EXPECT_EQ(make_pages(60 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR large = floats(16384, 16384);
  EXPECT_EQ(cuArrayCreate(&array, &large), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Counted, PagesOfTheHostAreNot) {
  expect_refused("cuMemCreate", CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  CUmemGenericAllocationHandle pages = 0;
  (void)cuMemCreate(&pages, 16 * kMib, &properties, 0);
  EXPECT_EQ(weir_standin_calls("cuMemCreate"), 1U);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, WhatAPoolOfTheProgramsReserves) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&first, 4 * kMib, pool, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&second, 2 * kMib, pool, stream), CUDA_SUCCESS);
  EXPECT_EQ(passed("pools"), mib(6));
  CUdeviceptr large = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&large, 62 * kMib, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
  // Freed in either way, and kept by the driver until it synchronizes.
  free(first, stream);
  free(second);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 64 * kMib);
  EXPECT_EQ(used(), Bytes{});
}

// As RMM's asynchronous resource: it keeps all that is freed.
TEST_F(Counted, WhatAPoolOfTheProgramsKeepsIsReleasedForOthers) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  cuuint64_t all = UINT64_MAX;
  ASSERT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), CUDA_SUCCESS);
  const CUstream stream = make_stream();
  CUdeviceptr kept = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&kept, 48 * kMib, pool, stream), CUDA_SUCCESS);
  free(kept, stream);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(48)) << "the driver has it";
  EXPECT_EQ(free_bytes(), 16 * kMib) << "as without Weir";
  for (const auto& allocate_more :
       {+[] { return try_allocate(32 * kMib); }, +[] { return try_allocate(16 * kMib, nullptr); },
        +[] { return make_pages(16 * kMib); }}) {
    EXPECT_EQ(allocate_more(), CUDA_SUCCESS);
  }
  EXPECT_LE(weir_standin_peak(0), 64 * kMib);
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(64));
}

TEST_F(Counted, WhatIsFreedIntoAPoolOfTheProgramsUntilTheDeviceIsDoneWithIt) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&block, 48 * kMib, pool, stream), CUDA_SUCCESS);
  keep_busy(stream, block);
  free(block, stream);
  release_while_waiting(stream, [] { EXPECT_EQ(try_allocate(32 * kMib), CUDA_SUCCESS); });
  EXPECT_LE(weir_standin_peak(0), 64 * kMib);
}

TEST_F(Counted, WhatIsFreedIntoAPoolThatIsDestroyedBeforeTheDeviceIsDoneWithIt) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&block, 48 * kMib, pool, stream), CUDA_SUCCESS);
  keep_busy(stream, block);
  free(block, stream);
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(48));
  release_all();
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 64 * kMib);
  EXPECT_EQ(used(), Bytes{});
}

// What the pool would reserve does not fit, though what is asked does.
TEST_F(Counted, APoolOfTheProgramsThatNeedsAWholePieceIsRefusedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUmemoryPool pool = make_pool();
  (void)allocate(62 * kMib);
  (void)allocate(kMib);
  CUdeviceptr block = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&block, kMib, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Counted, ManyThreadsAskOnePoolOfTheProgramsForWhatFitsOneByOne) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUmemoryPool pool = make_pool();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([pool] {
      ASSERT_NO_FATAL_FAILURE(use_device(0));
      const CUstream stream = make_stream();
      for (int round = 0; round < 50; ++round) {
        CUdeviceptr block = 0;
        ASSERT_EQ(cuMemAllocFromPoolAsync(&block, 10 * kMib, pool, stream), CUDA_SUCCESS);
        free(block, stream);
        ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(weir_standin_peak(0), 64 * kMib);
}

TEST_F(Counted, APoolOfAnotherDeviceIsThatDevices) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_DEVICES", "2"}}));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 1;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&block, 48 * kMib, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
  free(allocate(60 * kMib));
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  EXPECT_EQ(free_bytes(), 16 * kMib);
  EXPECT_EQ(try_allocate(32 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LE(weir_standin_peak(1), 64 * kMib);
}

TEST_F(Counted, TheCacheMakesRoomForAnAllocationNode) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  free(allocate(48 * kMib));
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.bytesize = 32 * kMib;
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
  EXPECT_LE(weir_standin_peak(0), 64 * kMib);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(Counted, WhatIsLeftOfADestroyedPoolUntilItIsFreed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  CUdeviceptr left = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&left, 4 * kMib, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(4));
  free(left, nullptr);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, WhatAPoolOfTheProgramsRefusesIsNot) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  weir_standin_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_NOT_SUPPORTED, kWeirStandinOnce);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 4 * kMib, pool, stream), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, TheCacheMakesRoomForAPoolOfTheProgramsToo) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  free(allocate(16 * kMib));
  settle();
  CUdeviceptr pointer = 0;
  weir_standin_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 4 * kMib, pool, stream), CUDA_SUCCESS);
  EXPECT_EQ(passed("pools"), mib(4));
  EXPECT_EQ(used(), mib(4)) << "what was cached was given back";
  weir_standin_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinFromThenOn);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&pointer, 4 * kMib, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(used(), mib(4));
}

TEST_F(Counted, TheCacheMakesRoomForThemWhereTheDeviceItselfHasNoMore) {
  expect_refused("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MEMORY", "64M"}}));
  free(allocate(16 * kMib));
  settle();
  weir_standin_set_memory(32 * kMib);  // somebody else has the rest
  EXPECT_EQ(make_pages(32 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(32));
}

TEST_F(Counted, ArraysUntilTheyAreDestroyed) {
  expect_refused("cuArrayCreate", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUDA_ARRAY_DESCRIPTOR flat = floats(1024, 256);
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate(&array, &flat), CUDA_SUCCESS);
  EXPECT_EQ(passed("arrays"), mib(4));
  CUDA_ARRAY3D_DESCRIPTOR deep{};
  deep.Width = deep.Height = 256;
  deep.Depth = 4;
  deep.Format = CU_AD_FORMAT_HALF;
  deep.NumChannels = 2;
  CUarray other = nullptr;
  ASSERT_EQ(cuArray3DCreate(&other, &deep), CUDA_SUCCESS);
  EXPECT_EQ(passed("arrays"), mib(5));
  CUmipmappedArray levels = nullptr;
  deep.Depth = 0;
  ASSERT_EQ(cuMipmappedArrayCreate(&levels, &deep, 3), CUDA_SUCCESS);
  EXPECT_EQ(passed("arrays"), mib(5) + Bytes{kMib / 4 + kMib / 4 / 3}) << "and a third for levels";
  const CUDA_ARRAY_DESCRIPTOR large = floats(16384, 16384);
  CUarray none = nullptr;
  EXPECT_EQ(cuArrayCreate(&none, &large), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(other), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
  EXPECT_NE(cuArrayCreate(nullptr, &flat), CUDA_SUCCESS);
  EXPECT_NE(cuArrayCreate(&none, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, ManagedMemoryByItselfAndItLessensNothing) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "512MiB"},
                                 {"WEIR_STANDIN_MEMORY", "2G"},
                                 {"WEIR_STANDIN_ADDRESSES_ONLY", "1"}}));
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 700 * kMib, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(passed("managed"), mib(700));
  EXPECT_EQ(used(), Bytes{});
  EXPECT_EQ(arena().account().passed(), Bytes{});
  EXPECT_EQ(free_bytes(), 512 * kMib);
  const CUdeviceptr block = allocate(512 * kMib);
  free(managed);
  EXPECT_EQ(passed("managed"), Bytes{});
  EXPECT_EQ(used(), mib(512)) << "nothing of the device's was given back for it";
  free(block);
  // In the accounting of other programs, and at the end.
  for (const Passed& each : arena().account().passed_kinds()) EXPECT_FALSE(each.counted);
}

TEST_F(Counted, ManagedMemoryGetsRoomFromTheCacheWhereItIsTheDevicesAlone) {
  expect_refused("cuMemAllocManaged", CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MEMORY", "64M"}}));
  free(allocate(64 * kMib));
  settle();
  CUdeviceptr managed = 0;
  EXPECT_EQ(cuMemAllocManaged(&managed, 32 * kMib, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  free(managed);
}

TEST_F(Counted, MemoryOfTheHostByItself) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"}}));
  void* one = nullptr;
  void* two = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&one, 16 * kMib, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocHost(&two, kMib), CUDA_SUCCESS);
  EXPECT_EQ(passed("host"), mib(17));
  EXPECT_EQ(used(), Bytes{});
  EXPECT_EQ(cuMemFreeHost(one), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(two), CUDA_SUCCESS);
  EXPECT_EQ(passed("host"), Bytes{});
  EXPECT_EQ(used(), Bytes{}) << "nothing of the device's was given back for it";
}

TEST_F(Counted, CodeByWhatTheDeviceHasLessForIt) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MODULE_MEMORY", "3M"}}));
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
  EXPECT_EQ(passed("modules"), mib(3));
  ASSERT_EQ(cuLibraryLoadData(&library, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(passed("modules"), mib(6));
  EXPECT_EQ(used(), mib(6));
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

/// Both are inside the driver at once: it refuses them otherwise.
TEST_F(Counted, CodeThatIsLoadedInParallel) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MODULE_MEMORY", "3M"}}));
  weir_standin_set_loads_meet(2);
  CUmodule one = nullptr;
  CUlibrary other = nullptr;
  std::thread thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    EXPECT_EQ(cuLibraryLoadData(&other, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
  });
  EXPECT_EQ(cuModuleLoadData(&one, &kImage), CUDA_SUCCESS);
  thread.join();
  EXPECT_EQ(passed("modules"), mib(6));
  EXPECT_EQ(used(), mib(6));
  EXPECT_EQ(cuModuleUnload(one), CUDA_SUCCESS);
  EXPECT_EQ(used(), mib(3));
  EXPECT_EQ(cuLibraryUnload(other), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, CodeOfALongLoadsNeighboursBeforeItEnds) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MODULE_MEMORY", "1M"}}));
  weir_standin_set_loads_meet(2);
  std::thread thread([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    (void)load_module();
  });
  wait_until([] { return weir_standin_used(0) == kMib; });
  weir_standin_set_loads_meet(0);  // the one that waits goes on to do so
  std::vector<CUmodule> modules;
  for (std::size_t i = 0; i < Loads::kMostEnded; ++i) modules.push_back(load_module());
  EXPECT_EQ(used(), mib(Loads::kMostEnded + 1)) << "with what the long one has taken so far";
  EXPECT_EQ(cuModuleUnload(load_module()), CUDA_SUCCESS);  // before it is counted
  weir_standin_set_loads_meet(2);
  modules.push_back(load_module());
  thread.join();
  EXPECT_EQ(used(), mib(Loads::kMostEnded + 2));
  EXPECT_EQ(used().count, weir_standin_used(0));
}

TEST_F(Counted, CodeWithoutThatOfALoadThatFails) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MODULE_MEMORY", "3M"}}));
  weir_standin_fail("cuModuleLoadData", 1, CUDA_ERROR_INVALID_IMAGE, kWeirStandinOnce);
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, &kImage), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(used(), Bytes{});
  module = load_module();
  EXPECT_EQ(used(), mib(3));
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

TEST(LoadsPolicy, WhatTheAccountingTookMeanwhileIsNoLoads) {
  const DeviceLevel before{.free = mib(100), .used = mib(10)};
  EXPECT_EQ(taken_by_loads(before, {mib(90), mib(10)}, {}), mib(10));
  EXPECT_EQ(taken_by_loads(before, {mib(90), mib(14)}, {}), mib(6));
  EXPECT_EQ(taken_by_loads(before, {mib(90), mib(14)}, mib(4)), mib(6));
  EXPECT_EQ(taken_by_loads(before, {mib(90), mib(20)}, mib(10)), Bytes{});
  EXPECT_EQ(taken_by_loads(before, {mib(120), mib(10)}, {}), Bytes{});
}

TEST(LoadsPolicy, PartsAreAll) {
  for (std::size_t count = 1; count < 20; ++count) {
    Bytes sum;
    for (std::size_t i = 0; i < count; ++i) sum += part_of_load({1001}, i, count);
    EXPECT_EQ(sum, Bytes{1001});
  }
  EXPECT_EQ(part_of_load(mib(6), 0, 2), mib(3));
}

TEST_F(Counted, NodesThatAllocateHoweverTheyAreAdded) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.bytesize = kMib;
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 62 * kMib);  // graphs take memory in steps of 2 MiB
  EXPECT_EQ(passed("graphs"), mib(2));
#if CUDA_VERSION >= 12020
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  any.alloc.bytesize = wanted.bytesize;
  any.alloc.poolProps = wanted.poolProps;
  ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, 0, &any), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 60 * kMib);
#endif
#if CUDA_VERSION >= 12030
  ASSERT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &any), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 58 * kMib);
#endif
}

TEST_F(Counted, SharedMemoryIsTheProgramsAloneFromThenOn) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  const CUdeviceptr block = allocate(4 * kMib);
  CUipcMemHandle of_base;
  CUipcMemHandle of_inside;
  ASSERT_EQ(cuIpcGetMemHandle(&of_base, block), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&of_inside, block + kMib), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(&of_base, &of_inside, sizeof of_base), 0);
  EXPECT_EQ(passed("shared"), mib(4));
  EXPECT_EQ(used(), mib(4));
  EXPECT_EQ(statistics().reserved.current, Bytes{});
  free(block);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(Counted, PagesThatTheDriverRefusesToReleaseStayCounted) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  CUmemGenericAllocationHandle pages = 0;
  ASSERT_EQ(make_pages(16 * kMib, &pages), CUDA_SUCCESS);
  weir_standin_fail("cuMemRelease", 1, CUDA_ERROR_LAUNCH_FAILED, kWeirStandinOnce);
  EXPECT_EQ(cuMemRelease(pages), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(used(), mib(16));
  EXPECT_EQ(cuMemRelease(pages), CUDA_SUCCESS);
  EXPECT_EQ(used(), Bytes{});
}

}  // namespace
}  // namespace weir::preload::testing
