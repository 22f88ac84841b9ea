// The begin and size of an allocation that the program sees: what it requested, whatever the pool
// made of it, and the driver's answer for memory that Weir does not serve.

#include <array>
#include <ostream>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

/// A result: the code, and on success the values.
struct Answer {
  CUresult code = CUDA_SUCCESS;
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Answer& answer) {
    return out << answer.code << ": " << answer.bytes << " bytes at " << answer.begin;
  }
};

class Ranges : public Inside {
 protected:
  static Answer range(CUdeviceptr pointer) {
    Answer answer;
    answer.code = cuMemGetAddressRange(&answer.begin, &answer.bytes, pointer);
    return answer;
  }
  static Answer attribute_by_attribute(CUdeviceptr pointer) {
    Answer answer;
    answer.code =
        cuPointerGetAttribute(&answer.begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
    EXPECT_EQ(cuPointerGetAttribute(&answer.bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer),
              answer.code);
    return answer;
  }
  /// One attribute among others.
  static Answer attributes_at_once(CUdeviceptr pointer, int expected_device = 0) {
    int device = -1;
    unsigned type = 0;
    Answer answer{.begin = 1, .bytes = 1};
    std::array wanted{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    std::array<void*, 4> data{&device, &answer.bytes, &type, &answer.begin};
    answer.code = cuPointerGetAttributes(4, wanted.data(), data.data(), pointer);
    EXPECT_EQ(device, expected_device);
    return answer;
  }
  /// Checks that all three calls report the program's `bytes` at `begin`.
  static void expect_told(CUdeviceptr pointer, CUdeviceptr begin, std::size_t bytes) {
    const Answer told{.begin = begin, .bytes = bytes};
    EXPECT_EQ(range(pointer), told);
    EXPECT_EQ(attribute_by_attribute(pointer), told);
    EXPECT_EQ(attributes_at_once(pointer), told);
  }
  /// Checks that the driver is asked about unknown memory, and refuses.
  static void expect_driver_refuses() {
    expect_refused("cuMemGetAddressRange", CUDA_ERROR_NOT_FOUND);
    expect_refused("cuPointerGetAttribute", CUDA_ERROR_INVALID_VALUE);
    expect_nobodys(12345);
  }
  /// The driver's answer for memory that nobody has.
  static void expect_nobodys(CUdeviceptr pointer) {
    EXPECT_EQ(range(pointer), Answer{CUDA_ERROR_NOT_FOUND});
    EXPECT_EQ(attribute_by_attribute(pointer), Answer{CUDA_ERROR_INVALID_VALUE});
    CUdeviceptr begin = 1;
    std::size_t bytes = 1;
    std::array wanted{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, 2> data{&begin, &bytes};
    EXPECT_EQ(cuPointerGetAttributes(2, wanted.data(), data.data(), pointer), CUDA_SUCCESS);
    EXPECT_EQ(begin, 0U);
    EXPECT_EQ(bytes, 0U);
  }
};

class RangesOfEachPool : public Ranges, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Pools, RangesOfEachPool,
                         ::testing::Values("auto", "naive", "round", "unpooled", "best_fit",
                                           "paged"),
                         [](const auto& pool) { return std::string(pool.param); });

TEST_P(RangesOfEachPool, AreWhatTheProgramAskedFor) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", GetParam()}}));
  const CUstream stream = make_stream();
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{5000}, 3 * kMib + 5, 9 * kMib}) {
    const CUdeviceptr plain = allocate(bytes);
    const CUdeviceptr in_order = allocate(bytes, stream);
    for (const CUdeviceptr block : {plain, in_order}) {
      expect_told(block, block, bytes);
      expect_told(block + bytes / 2, block, bytes);
      expect_told(block + bytes - 1, block, bytes);
    }
  }
  CUdeviceptr rows = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch(&rows, &pitch, 700, 10, 4), CUDA_SUCCESS);
  expect_told(rows + 3 * pitch, rows, 10 * pitch);
}

TEST_P(RangesOfEachPool, OfWhatNobodyHasAreNone) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", GetParam()}}));
  const CUstream stream = make_stream();
  expect_driver_refuses();
  const CUdeviceptr block = allocate(1000);
  const CUdeviceptr behind = allocate(5000, stream);
  expect_nobodys(block + 1000);
  expect_nobodys(behind + 5000);
  keep_busy(stream, block);
  free(block);
  free(behind, stream);
  for (const CUdeviceptr freed : {block, behind}) {
    expect_nobodys(freed);
    expect_nobodys(freed + 512);
  }
  settle();
  expect_nobodys(block);
  expect_nobodys(behind + 512);
}

TEST_P(RangesOfEachPool, AreFoundBehindManySmallBlocksAndInALargeOne) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", GetParam()}}));
  std::vector<CUdeviceptr> small;
  small.reserve(300);
  for (int i = 0; i < 300; ++i) small.push_back(allocate(1500, nullptr));
  const CUdeviceptr large = allocate(40 * kMib, nullptr);
  for (const CUdeviceptr each : small) EXPECT_EQ(range(each + 1400), (Answer{{}, each, 1500}));
  expect_told(large + 40 * kMib - 1, large, 40 * kMib);
}

TEST_F(Ranges, OfMemoryThatIsNotWeirsAreTheDrivers) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_SPILL", "host"},
                                 {"WEIR_BUDGET", "8MiB"},
                                 {"WEIR_MAX_WAIT", "50ms"},
                                 {"WEIR_STANDIN_CONCURRENT_MANAGED", "1"}}));
  expect_driver_refuses();
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 70000, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  expect_told(managed + 5, managed, 70000);
  (void)allocate(7 * kMib);
  const CUdeviceptr spilled = allocate(2 * kMib + 100);
  expect_told(spilled + 7, spilled, 2 * kMib + 100);
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 5000, 0), CUDA_SUCCESS);
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  EXPECT_EQ(range(pinned), Answer{CUDA_ERROR_NOT_FOUND});
  EXPECT_EQ(attribute_by_attribute(pinned), (Answer{{}, pinned, 5000}));
}

TEST_F(Ranges, OfSharedMemoryAreTheDrivers) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(1000);
  CUipcMemHandle handle{};
  ASSERT_EQ(cuIpcGetMemHandle(&handle, block + 500), CUDA_SUCCESS);
  expect_told(block + 1000, block, 4096);
}

TEST_F(Ranges, OfMemoryOfAnotherContextAreTold) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_STANDIN_DEVICES", "2"}}));
  const CUdeviceptr block = allocate(1000);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  expect_told(block + 1, block, 1000);
}

TEST_F(Ranges, LeaveOutWhatTheProgramDoesNotAskFor) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(1000);
  expect_refused("cuPointerGetAttribute", CUDA_ERROR_INVALID_VALUE);
  expect_refused("cuPointerGetAttributes", CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange(&begin, nullptr, block + 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetAddressRange(nullptr, &bytes, block + 1), CUDA_SUCCESS);
  EXPECT_EQ(begin, block);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_EQ(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttributes(1, nullptr, nullptr, block), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ranges, WithoutAContextAreTheDriversToRefuse) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(1000);
  expect_refused("cuMemGetAddressRange", CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(range(block), Answer{CUDA_ERROR_INVALID_CONTEXT});
}

}  // namespace
}  // namespace weir::preload::testing
