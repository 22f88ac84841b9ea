// Handles for other processes: another process gets by one what it would get without Weir. It is
// this program again, with the same test and the handle in its environment.

#include <algorithm>
#include <cstring>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

constexpr const char* kHandle = "WEIR_TEST_MEMORY_HANDLE";
constexpr const char* kSize = "WEIR_TEST_MEMORY_SIZE";

std::string to_text(const CUipcMemHandle& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    text += std::to_string(static_cast<unsigned char>(byte)) + " ";
  }
  return text;
}

CUipcMemHandle from_text(const char* text) {
  CUipcMemHandle handle{};
  char* rest = const_cast<char*>(text);
  for (char& byte : handle.reserved) byte = static_cast<char>(std::strtoul(rest, &rest, 10));
  return handle;
}

class Ipc : public Inside {
 protected:
  static void start_shareable(Variables variables = {}) {
    if (std::getenv(kHandle) == nullptr) expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
    start(variables);
    weir_standin_set_shareable(1);
  }
  static void expect_refused_in_stream_order() {
    const weir::testing::LogCapture log;
    CUipcMemHandle handle{};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, allocate(kBytes, make_stream())),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(weir_standin_calls("cuIpcGetMemHandle"), 0U);
    const auto lines = log.containing("cuIpcGetMemHandle refused: stream-ordered memory");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines.front().find("WEIR_POOL"), std::string::npos) << "no pool has handles for it";
  }
  /// Runs the same test in another process, which finds the handle. Returns its exit code.
  static int run_elsewhere(const CUipcMemHandle& handle, std::size_t size) {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    return weir::testing::run_this_program(
        {std::string("--gtest_filter=") + info->test_suite_name() + "." + info->name()},
        {{kHandle, to_text(handle)}, {kSize, std::to_string(size)}});
  }
  /// Whether this is the other process. If so, it has checked that all of the allocation contains
  /// 7, and has set it to 8.
  static bool is_the_other_one() {
    if (std::getenv(kHandle) == nullptr) return false;
    const std::size_t size = std::strtoull(std::getenv(kSize), nullptr, 10);
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuIpcOpenMemHandle(&memory, from_text(std::getenv(kHandle)),
                                 CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, memory), CUDA_SUCCESS);
    EXPECT_EQ(base, memory);
    EXPECT_EQ(bytes, size);
    expect_all(memory, bytes, 7);
    EXPECT_EQ(cuMemsetD8(memory, 8, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_SUCCESS);
    return true;
  }
  static void expect_all(CUdeviceptr memory, std::size_t bytes, unsigned char byte) {
    const auto* const first = reinterpret_cast<const unsigned char*>(memory);
    EXPECT_EQ(std::count(first, first + bytes, byte), static_cast<std::ptrdiff_t>(bytes));
  }
  /// Checks that another process gets the driver's allocation at `pointer` by the handle of
  /// `pointer + offset`.
  static void expect_shared(CUdeviceptr pointer, std::size_t offset, std::size_t asked) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    ASSERT_EQ(cuMemGetAddressRange(&base, &bytes, pointer), CUDA_SUCCESS);
    EXPECT_EQ(base, pointer);
    EXPECT_EQ(bytes, asked);
    CUipcMemHandle handle{};
    ASSERT_EQ(cuIpcGetMemHandle(&handle, pointer + offset), CUDA_SUCCESS);
    // The whole driver allocation is shared.
    ASSERT_EQ(cuMemGetAddressRange(&base, &bytes, pointer), CUDA_SUCCESS);
    EXPECT_EQ(base, pointer);
    EXPECT_GE(bytes, asked);
    ASSERT_EQ(cuMemsetD8(base, 7, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CUipcMemHandle again{};
    ASSERT_EQ(cuIpcGetMemHandle(&again, pointer), CUDA_SUCCESS);
    EXPECT_EQ(std::memcmp(&handle, &again, sizeof handle), 0);
    EXPECT_EQ(run_elsewhere(handle, bytes), 0);
    expect_all(pointer, bytes, 8);
    // The handle makes it the driver's, which frees it.
    weir_standin_clear_counters();
    free(pointer);
    EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
    EXPECT_EQ(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
  }
};

TEST_F(Ipc, AnotherProcessHasAllThatTheDriverGave) {
  ASSERT_NO_FATAL_FAILURE(start_shareable());
  if (is_the_other_one()) return;
  ASSERT_NO_FATAL_FAILURE(expect_shared(allocate(3 * kMib + 512), kMib, 3 * kMib + 512));
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(Ipc, AnotherProcessHasTheRowsOfAPitchedBlock) {
  ASSERT_NO_FATAL_FAILURE(start_shareable());
  if (is_the_other_one()) return;
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch(&pointer, &pitch, 700, 100, 4), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_shared(pointer, 3 * pitch, 100 * pitch));
}

TEST_F(Ipc, AnotherProcessHasABlockThatWasUsedBefore) {
  ASSERT_NO_FATAL_FAILURE(start_shareable({{"WEIR_POOL", "round"}}));
  if (is_the_other_one()) return;
  free(allocate(4 * kMib));
  settle();
  weir_standin_clear_counters();
  const CUdeviceptr cached = allocate(3 * kMib);
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
  ASSERT_NO_FATAL_FAILURE(expect_shared(cached, 0, 3 * kMib));
}

TEST_F(Ipc, MemoryInStreamOrderIsRefusedForWhatItIs) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_refused_in_stream_order();
}

TEST_F(Ipc, MemoryInStreamOrderIsRefusedThoughTheDriverGaveItWhole) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "naive"}}));
  expect_refused_in_stream_order();
}

TEST_F(Ipc, APartOfASegmentIsRefusedWithALineAndStaysThePools) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "best_fit"}}));
  const weir::testing::LogCapture log;
  const CUdeviceptr block = allocate(kBytes);
  (void)allocate(kBytes);
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_calls("cuIpcGetMemHandle"), 0U);
  const auto lines = log.containing("cuIpcGetMemHandle refused");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines.front().find("WEIR_POOL=naive"), std::string::npos);
  free(block);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
}

}  // namespace
}  // namespace weir::preload::testing
