// Memory of every kind, on a device that has less room than the budget says: another program took
// some after our start, and what is free is kept somewhere. Alone each request would succeed.

#include <array>
#include <functional>
#include <tuple>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::size_t kDevice = 140 * kMib;
constexpr std::size_t kKept = 60 * kMib;
constexpr std::size_t kWanted = 100 * kMib;
constexpr auto kRunsFor = std::chrono::milliseconds(30);

/// Where the device's memory is, of which the request needs a part.
enum class Place {
  kCached,           ///< freed by cuMemFree
  kCachedInOrder,    ///< freed in stream order, as PyTorch's plug does
  kCachedByProgram,  ///< freed into a pool of the program, which keeps it
  kInUse,            ///< freed by cuMemFree, and queued work still uses it
};

/// One kind of memory.
struct Row {
  const char* name;
  CUresult (*obtain)(class DeviceIsShort& test);
};

class DeviceIsShort : public Inside,
                      public ::testing::WithParamInterface<std::tuple<const char*, Place>> {
 public:
  using Inside::free;
  using Inside::make_pages;

  CUstream stream = nullptr;
  /// Ends what the row has obtained.
  std::function<void()> end;

  CUresult allocated(CUresult code, const CUdeviceptr& pointer) {
    if (code == CUDA_SUCCESS) end = [of_row = pointer] { free(of_row); };
    return code;
  }
  /// Memory of a pool that keeps what is freed.
  [[nodiscard]] static CUmemoryPool keeping_pool() {
    const CUmemoryPool pool = make_pool();
    cuuint64_t all = UINT64_MAX;
    EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), CUDA_SUCCESS);
    return pool;
  }

 protected:
  void keep_in(Place place) {
    CUdeviceptr block = 0;
    if (place == Place::kCachedByProgram) {
      EXPECT_EQ(cuMemAllocFromPoolAsync(&block, kKept, keeping_pool(), stream), CUDA_SUCCESS);
    } else {
      block = place == Place::kCachedInOrder ? allocate(kKept, stream) : allocate(kKept);
    }
    if (place == Place::kInUse) {
      const CUstream busy = make_stream();
      EXPECT_EQ(cuLaunchHostFunc(
                    busy, [](void*) { std::this_thread::sleep_for(kRunsFor); }, nullptr),
                CUDA_SUCCESS);
      EXPECT_EQ(cuMemsetD8Async(block, 1, 1, busy), CUDA_SUCCESS);
      return free(block);
    }
    place == Place::kCached ? free(block) : free(block, stream);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
};

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = width;
  d.Height = height;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 4;
  return d;
}

constexpr int kImage = 0;

const std::array kRows{
    Row{"cuMemAlloc",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          return test.allocated(cuMemAlloc(&pointer, kWanted), pointer);
        }},
    Row{"cuMemAllocPitch",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          std::size_t pitch = 0;
          return test.allocated(cuMemAllocPitch(&pointer, &pitch, kMib, kWanted / kMib, 4),
                                pointer);
        }},
    Row{"cuMemAllocAsync",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          return test.allocated(cuMemAllocAsync(&pointer, kWanted, test.stream), pointer);
        }},
    Row{"own pool",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          return test.allocated(cuMemAllocFromPoolAsync(&pointer, kWanted,
                                                        DeviceIsShort::keeping_pool(), test.stream),
                                pointer);
        }},
    Row{"cuMemCreate",
        [](DeviceIsShort& test) {
          CUmemGenericAllocationHandle pages = 0;
          const CUresult code = DeviceIsShort::make_pages(kWanted, &pages);
          test.end = [pages] { (void)cuMemRelease(pages); };
          return code;
        }},
    Row{"array",
        [](DeviceIsShort& test) {
          CUarray array = nullptr;
          const auto d = floats(16384, kWanted / (16384 * 16));
          const CUresult code = cuArray3DCreate(&array, &d);
          test.end = [array] { (void)cuArrayDestroy(array); };
          return code;
        }},
    Row{"mipmapped array",
        [](DeviceIsShort& test) {
          CUmipmappedArray array = nullptr;
          const auto d = floats(16384, 3 * kWanted / (4 * 16384 * 16));
          const CUresult code = cuMipmappedArrayCreate(&array, &d, 4);
          test.end = [array] { (void)cuMipmappedArrayDestroy(array); };
          return code;
        }},
    Row{"managed",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          return test.allocated(cuMemAllocManaged(&pointer, kWanted, CU_MEM_ATTACH_GLOBAL),
                                pointer);
        }},
    Row{"capture",
        [](DeviceIsShort& test) {
          CUdeviceptr pointer = 0;
          CUgraph graph = nullptr;
          EXPECT_EQ(cuStreamBeginCapture(test.stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                    CUDA_SUCCESS);
          const CUresult code = cuMemAllocAsync(&pointer, kWanted, test.stream);
          EXPECT_EQ(cuStreamEndCapture(test.stream, &graph), CUDA_SUCCESS);
          test.end = [graph] { (void)cuGraphDestroy(graph); };
          return code;
        }},
    Row{"graph launch",
        [](DeviceIsShort& test) {
          CUgraph graph = nullptr;
          CUgraphExec exec = nullptr;
          EXPECT_EQ(cuStreamBeginCapture(test.stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                    CUDA_SUCCESS);
          EXPECT_EQ(cuStreamEndCapture(test.stream, &graph), CUDA_SUCCESS);
          EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
          // Drivers take a graph's memory at its launch, this one before.
          weir_standin_fail("cuGraphLaunch", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
          return cuGraphLaunch(exec, test.stream);
        }},
    Row{"module",
        [](DeviceIsShort& test) {
          CUmodule module = nullptr;
          weir_standin_set_module_memory(kWanted);
          const CUresult code = cuModuleLoadData(&module, &kImage);
          weir_standin_set_module_memory(0);
          test.end = [module] { (void)cuModuleUnload(module); };
          return code;
        }},
    Row{"context",
        [](DeviceIsShort& test) {
          CUcontext before = nullptr;
          EXPECT_EQ(cuCtxGetCurrent(&before), CUDA_SUCCESS);
          CUcontext context = nullptr;
          weir_standin_set_context_memory(kWanted);
          const CUresult code = cuCtxCreate_v2(&context, 0, 0);
          weir_standin_set_context_memory(0);
          EXPECT_EQ(cuCtxSetCurrent(before), CUDA_SUCCESS);
          test.end = [context] { (void)cuCtxDestroy(context); };
          return code;
        }},
    Row{"import",
        [](DeviceIsShort& /*test*/) {
          CUmemGenericAllocationHandle pages = 0;
          weir_standin_fail("cuMemImportFromShareableHandle", 1, CUDA_ERROR_OUT_OF_MEMORY,
                            kWeirStandinOnce);
          weir_standin_fail("cuMemImportFromShareableHandle", 1, CUDA_ERROR_NOT_SUPPORTED,
                            kWeirStandinOnce);
          const CUresult code = cuMemImportFromShareableHandle(
              &pages, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
          return code == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : code;  // it was asked again
        }},
    Row{"IPC memory",
        [](DeviceIsShort& /*test*/) {
          CUdeviceptr pointer = 0;
          weir_standin_fail("cuIpcOpenMemHandle", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
          weir_standin_fail("cuIpcOpenMemHandle", 1, CUDA_ERROR_NOT_SUPPORTED, kWeirStandinOnce);
          const CUresult code =
              cuIpcOpenMemHandle(&pointer, {}, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
          return code == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : code;
        }},
};

TEST_P(DeviceIsShort, EveryKindOfMemoryIsObtained) {
  const auto [pool, place] = GetParam();
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "95%"},
                                 {"WEIR_MAX_WAIT", "20s"},
                                 {"WEIR_POOL", pool},
                                 {"WEIR_STANDIN_MEMORY", "200M"}}));
  stream = make_stream();
  weir_standin_set_memory(kDevice);
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    keep_in(place);
    EXPECT_EQ(row.obtain(*this), CUDA_SUCCESS);
    EXPECT_LE(weir_standin_peak(0), kDevice);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    if (end) std::exchange(end, nullptr)();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    (void)trim(0);
  }
  // The driver refuses most of them at first.
  weir_standin_take_refused([](void*, const WeirStandinRefused*) {}, nullptr);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<const char*, Place>>& info) {
  constexpr std::array kPlaces{"cached", "cached_in_order", "cached_by_program", "in_use"};
  return std::string(std::get<0>(info.param)) + "_" +
         kPlaces.at(static_cast<std::size_t>(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    Pools, DeviceIsShort,
    ::testing::Combine(::testing::Values("auto", "naive", "round", "best_fit", "paged", "unpooled"),
                       ::testing::Values(Place::kCached, Place::kCachedInOrder,
                                         Place::kCachedByProgram, Place::kInUse)),
    name_of);

}  // namespace
}  // namespace weir::preload::testing
