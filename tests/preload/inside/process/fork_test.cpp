// A child of fork: its calls go to the driver, which fails them.

#include <atomic>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/forked.hpp"

namespace weir::preload::testing {
namespace {

class Fork : public Inside {};

/// Zero, or the number of the failed check.
int in_child(CUdeviceptr block) {
  if (Process::get() != nullptr || Process::get_if_any() != nullptr) return 1;
  CUdeviceptr pointer = 0;
  if (cuMemAlloc(&pointer, kMib) != CUDA_ERROR_NOT_INITIALIZED) return 2;
  if (cuMemFree(block) != CUDA_ERROR_NOT_INITIALIZED) return 3;
  if (cuMemFreeAsync(block, nullptr) != CUDA_ERROR_NOT_INITIALIZED) return 4;
  if (cuMemGetInfo(nullptr, nullptr) != CUDA_ERROR_NOT_INITIALIZED) return 5;
  if (begin_batch("step")) return 6;
  end_batch();
  MemoryInfo info;
  if (memory_info(0, info) || trim(-1).count != 0 || !settings_text().empty()) return 7;
  for (int i = 0; i < 100; ++i) (void)cuMemsetD8Async(block, 1, 1, nullptr);
  // It would wait for locks of the parent's pools.
  if (start_timeline(::testing::TempDir() + "child.json")) return 8;
  stop_timeline();
  return 0;
}

TEST_F(Fork, TheChildPassesEverythingToTheDriver) {
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(kMib);
  // Others may hold every lock of ours at that moment.
  std::atomic<bool> stop{false};
  std::thread other([&] {
    ASSERT_NO_FATAL_FAILURE(use_device(0));
    while (!stop) free(allocate(kMib));
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(weir::testing::run_forked([&] { return in_child(block); }), 0);
  }
  stop = true;
  other.join();
  free(block);
}

}  // namespace
}  // namespace weir::preload::testing
