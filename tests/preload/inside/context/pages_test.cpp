// Pages of a context: under its budget, past the hooks, gone with it, and never moved from a user
// who would notice.

#include "tools/preload/context/pages.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/refused.hpp"

namespace weir::preload::testing {
namespace {

constexpr std::size_t kPage = 2 * kMib;

class ContextPagesTest : public Inside {
 protected:
  /// `count` pages at the beginning of a range of 32.
  static void begin(std::size_t count, Variables variables = {{"WEIR_BUDGET", "64MiB"}}) {
    ASSERT_NO_FATAL_FAILURE(start(variables));
    source = arena().upstream().pages();
    ASSERT_NE(source, nullptr);
    ASSERT_EQ(source->page_size(), Bytes{kPage});
    range = static_cast<std::byte*>(source->reserve({32 * kPage}));
    ASSERT_NE(range, nullptr);
    pages.resize(count);
    ASSERT_EQ(source->create(pages), count);
    mappings.clear();
    for (std::size_t i = 0; i < count; ++i) mappings.push_back({range + i * kPage, pages[i]});
  }
  static void map() { ASSERT_EQ(source->map(mappings), mappings.size()); }
  static CUdeviceptr address(std::size_t n = 0) {
    return reinterpret_cast<CUdeviceptr>(range + n * kPage);
  }
  static void end() {
    ASSERT_EQ(source->unmap(mappings), mappings.size());
    source->destroy(pages);
    source->unreserve(range, {32 * kPage});
    expect_nothing_left();
    EXPECT_EQ(used(), Bytes{});
  }
  static void expect_nothing_left() {
    EXPECT_EQ(weir_standin_live().mappings, 0U);
    EXPECT_EQ(weir_standin_live().physical, 0U);
    EXPECT_EQ(weir_standin_live().reservations, 0U);
    EXPECT_EQ(weir_standin_used(0), 0U);
  }

  inline static ContextPages* source = nullptr;
  inline static std::byte* range = nullptr;
  inline static std::vector<Page> pages;
  inline static std::vector<Mapping> mappings;
};

TEST_F(ContextPagesTest, AreOfTheBudgetAndCountedOnce) {
  ASSERT_NO_FATAL_FAILURE(begin(4));
  map();
  EXPECT_EQ(used(), Bytes{4 * kPage});
  EXPECT_EQ(passed("mappable"), Bytes{}) << "counted as the program's own";
  EXPECT_EQ(free_bytes(), 64 * kMib - 4 * kPage);
  std::vector<Page> more(100);
  EXPECT_EQ(source->create(more), 28U);
  EXPECT_EQ(used(), mib(64));
  source->destroy(std::span(more).first(28));
  end();
}

TEST_F(ContextPagesTest, AreMemoryToTheProgram) {
  ASSERT_NO_FATAL_FAILURE(begin(2));
  map();
  EXPECT_EQ(cuMemsetD8(address(), 3, 2 * kPage), CUDA_SUCCESS);
  std::vector<unsigned char> seen(2 * kPage);
  EXPECT_EQ(cuMemcpyDtoH(seen.data(), address(), seen.size()), CUDA_SUCCESS);
  EXPECT_TRUE(std::ranges::all_of(seen, [](unsigned char byte) { return byte == 3; }));
  int device = -1;
  EXPECT_EQ(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(1)),
            CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  end();
}

TEST_F(ContextPagesTest, GoWithTheirContext) {
  ASSERT_NO_FATAL_FAILURE(begin(4));
  map();
  const Account& account = arena().account();
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  expect_nothing_left();
  EXPECT_EQ(account.used(), Bytes{});
  // Its pool may still use what it knew.
  EXPECT_EQ(source->map(mappings), 0U);
  EXPECT_EQ(source->create(pages), 0U);
  EXPECT_EQ(source->reserve({kPage}), nullptr);
  EXPECT_EQ(source->unmap(mappings), mappings.size());
  source->destroy(pages);
  source->unreserve(range, {32 * kPage});
  EXPECT_EQ(account.used(), Bytes{});
  expect_nothing_left();
}

TEST_F(ContextPagesTest, GoWithAContextThatIsDestroyedAndNoOther) {
  ASSERT_NO_FATAL_FAILURE(begin(2));
  map();
  const CUcontext mine = make_context();
  ContextPages* const its = arena().upstream().pages();
  ASSERT_NE(its, source);
  void* const its_range = its->reserve({kPage});
  Page page;
  ASSERT_EQ(its->create({&page, 1}), 1U);
  const Mapping mapping{its_range, page};
  ASSERT_EQ(its->map({&mapping, 1}), 1U);
  ASSERT_EQ(cuCtxDestroy(mine), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_live().mappings, 2U);
  EXPECT_EQ(weir_standin_live().physical, 2U);
  EXPECT_EQ(weir_standin_live().reservations, 1U);
  EXPECT_EQ(cuMemsetD8(address(), 3, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  end();
}

TEST_F(ContextPagesTest, StayWhereTheyAreDuringACapture) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  map();
  const CUstream stream = make_stream();
  begin_capture(stream);
  EXPECT_EQ(source->unmap(mappings), 0U);
  // Needed pages can still be created.
  std::vector<Page> more(2);
  ASSERT_EQ(source->create(more), 2U);
  const Mapping extra{range + 8 * kPage, more[0]};
  EXPECT_EQ(source->map({&extra, 1}), 1U);
  source->destroy({&more[1], 1});
  EXPECT_EQ(weir_standin_live().physical, 5U) << "held until the capture is over";
  end_capture(stream);
  EXPECT_EQ(weir_standin_live().physical, 4U);
  EXPECT_EQ(used(), Bytes{4 * kPage});
  EXPECT_EQ(source->unmap({&extra, 1}), 1U);
  source->destroy({&more[0], 1});
  end();
}

TEST_F(ContextPagesTest, AreSharedByFilesOnceThatIsAllowed) {
  expect_refused("cuMemExportToShareableHandle", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(begin(2));
  map();
  EXPECT_EQ(source->files_of(address(), address(2)), std::nullopt) << "they were created before";
  ContextPages::share_new_ones();
  std::vector<Page> more(2);
  ASSERT_EQ(source->create(more), 2U);
  const std::vector<Mapping> places{{range + 4 * kPage, more[0]}, {range + 5 * kPage, more[1]}};
  ASSERT_EQ(source->map(places), 2U);
  EXPECT_EQ(source->files_of(address(4), address(7)), std::nullopt) << "the last is not mapped";
  const auto files = source->files_of(address(4), address(6));
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(source->files_of(address(4), address(6)), files) << "they are kept";

  // As another process does with such a file.
  CUmemGenericAllocationHandle there = 0;
  ASSERT_EQ(
      cuMemImportFromShareableHandle(&there, reinterpret_cast<void*>(std::uintptr_t(files->at(1))),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      CUDA_SUCCESS);
  CUdeviceptr seen = 0;
  ASSERT_EQ(cuMemAddressReserve(&seen, kPage, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(seen, kPage, 0, there, 0), CUDA_SUCCESS);
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_EQ(cuMemSetAccess(seen, kPage, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(address(5), 7, kPage), CUDA_SUCCESS);
  unsigned char byte = 0;
  ASSERT_EQ(cuMemcpyDtoH(&byte, seen + kPage - 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(byte, 7);
  EXPECT_EQ(cuMemUnmap(seen, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(seen, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(there), CUDA_SUCCESS);

  EXPECT_EQ(source->unmap(places), 2U);
  source->destroy(more);
  for (const int file : *files) EXPECT_EQ(fcntl(file, F_GETFD), -1) << "closed with its page";
  end();
}

TEST_F(ContextPagesTest, AreCreatedAlsoWhereNoneMayBeShared) {
  expect_refused("cuMemExportToShareableHandle", CUDA_ERROR_INVALID_VALUE);
  ContextPages::share_new_ones();
  ASSERT_NO_FATAL_FAILURE(begin(0));
  weir_standin_fail("cuMemCreate", 1, CUDA_ERROR_NOT_PERMITTED, kWeirStandinOnce);
  pages.resize(2);
  ASSERT_EQ(source->create(pages), 2U);
  mappings = {{range, pages[0]}, {range + kPage, pages[1]}};
  map();
  EXPECT_EQ(source->files_of(address(), address(2)), std::nullopt);
  weir_standin_fail("cuMemCreate", 1, CUDA_ERROR_UNKNOWN, kWeirStandinOnce);
  std::vector<Page> more(1);
  EXPECT_THROW((void)source->create(more), DriverError) << "any other fault is one";
  end();
}

// As a framework's allocator shares a tensor.
TEST_F(ContextPagesTest, OfABlockAreSharedWithItsNeighbours) {
  allow_sharing();
  ASSERT_NO_FATAL_FAILURE(start());
  const CUstream stream = make_stream();
  const CUdeviceptr before = allocate(kPage / 2, stream);
  const CUdeviceptr tensor = allocate(2 * kPage, stream);
  auto* const pointer = reinterpret_cast<void*>(tensor);
  const auto shared = share(pointer);
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->page, Bytes{kPage});
  EXPECT_EQ(shared->base % kPage, 0U);
  EXPECT_LE(shared->base, tensor);
  EXPECT_GE(shared->base + shared->size.count, tensor + 2 * kPage);
  EXPECT_EQ(shared->files.size(), shared->size.count / kPage);
  EXPECT_FALSE(share(reinterpret_cast<void*>(tensor + 512)).has_value()) << "no block begins there";
  EXPECT_FALSE(share(nullptr).has_value());
  free(tensor, stream);
  free(before, stream);
  EXPECT_FALSE(share(pointer).has_value()) << "it is free";
  settle();
  (void)trim(0);
  for (const int file : shared->files) EXPECT_EQ(fcntl(file, F_GETFD), -1);
}

TEST_F(ContextPagesTest, AreNotNeededToShareAPartOfASegment) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "best_fit"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr first = allocate(kBytes, stream);
  const CUdeviceptr second = allocate(kBytes, stream);
  const auto one = share(reinterpret_cast<void*>(first));
  const auto other = share(reinterpret_cast<void*>(second));
  ASSERT_TRUE(one.has_value());
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(one->page, Bytes{});
  EXPECT_EQ(one->base, other->base) << "their segment";
  EXPECT_LE(one->base, std::min(first, second));
  EXPECT_GE(one->base + one->size.count, std::max(first, second) + kBytes);
  EXPECT_EQ(std::memcmp(&one->handle, &other->handle, sizeof one->handle), 0);
  EXPECT_EQ(arena().pool().find(reinterpret_cast<void*>(first))->size, Bytes{kBytes})
      << "it stays the pool's";
}

TEST_F(ContextPagesTest, AreOpenedToPeers) {
  ASSERT_NO_FATAL_FAILURE(begin(3, {{"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_BUDGET", "64MiB"}}));
  const CUcontext owner = current();
  const std::vector<Mapping> all = mappings;
  mappings.resize(2);
  map();
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  weir_standin_clear_counters();
  ASSERT_EQ(cuCtxEnablePeerAccess(owner, 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemSetAccess"), 2U) << "what is mapped";
  EXPECT_EQ(source->map({&all[2], 1}), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemSetAccess"), 4U) << "and for each device what will be";
  mappings = all;
  use(owner);
  end();
}

TEST_F(ContextPagesTest, AreGivenBackWhereOneStepFails) {
  ASSERT_NO_FATAL_FAILURE(begin(2));
  weir_standin_fail("cuMemCreate", 3, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  std::vector<Page> more(5);
  EXPECT_EQ(source->create(more), 2U);
  source->destroy(std::span(more).first(2));
  weir_standin_fail("cuMemCreate", 2, CUDA_ERROR_UNKNOWN, kWeirStandinOnce);
  EXPECT_THROW((void)source->create(more), DriverError);
  EXPECT_EQ(weir_standin_live().physical, 2U);
  EXPECT_EQ(used(), Bytes{2 * kPage});
  weir_standin_fail("cuMemMap", 2, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  EXPECT_EQ(source->map(mappings), 1U);
  EXPECT_EQ(source->unmap({mappings.data(), 1}), 1U);
  weir_standin_fail("cuMemSetAccess", 1, CUDA_ERROR_UNKNOWN, kWeirStandinOnce);
  EXPECT_EQ(source->map(mappings), 0U);
  EXPECT_EQ(weir_standin_live().mappings, 0U);
  map();
  weir_standin_fail("cuMemUnmap", 2, CUDA_ERROR_UNKNOWN, kWeirStandinOnce);
  EXPECT_EQ(source->unmap(mappings), 1U);
  ASSERT_EQ(source->map({mappings.data(), 1}), 1U);
  end();
}

TEST_F(ContextPagesTest, AreNoneWhereTheDeviceHasNone) {
  ASSERT_NO_FATAL_FAILURE(start());
  weir_standin_set_pages_supported(0);
  EXPECT_EQ(arena().upstream().pages(), nullptr);
}

class PagedSwapIn : public ContextPagesTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start({{"WEIR_POOL", "paged"},
                                   {"WEIR_BUDGET", "64MiB"},
                                   {"WEIR_MAX_WAIT", "20ms"},
                                   {"WEIR_STANDIN_DEVICES", "2"}}));
  }
};

TEST_F(PagedSwapIn, RefusesToGoOnWhereTheDeviceMapsNoPages) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  weir_standin_set_pages_supported(0);
  EXPECT_EXIT((void)allocate(kMib), ::testing::ExitedWithCode(2),
              "pool \\(WEIR_POOL\\): 'paged' needs memory that is mapped page by page");
}

TEST_F(PagedSwapIn, ServesAProgram) {
  const CUstream stream = make_stream();
  const CUdeviceptr sync = allocate(5 * kMib);
  const CUdeviceptr async = allocate(3 * kMib, stream);
  EXPECT_EQ(cuMemsetD8(sync, 1, 5 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(async, 2, 3 * kMib, stream), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemAlloc"), 0U);
  EXPECT_EQ(used(), statistics().reserved.current);
  EXPECT_EQ(weir_standin_used(0), statistics().reserved.current.count);
  free(async, stream);
  free(sync);
  settle();
  CUipcMemHandle handle;
  const CUdeviceptr again = allocate(4 * kMib);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, again), CUDA_ERROR_INVALID_VALUE);
  free(again);
  settle();
  (void)trim(0);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(used(), Bytes{});
}

TEST_F(PagedSwapIn, LosesEverythingWithItsContextAndGoesOnInAnother) {
  const CUdeviceptr lost = allocate(32 * kMib);
  free(allocate(16 * kMib));
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  expect_nothing_left();
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  const CUdeviceptr fresh = allocate(64 * kMib);
  EXPECT_EQ(cuMemsetD8(fresh, 1, 64 * kMib), CUDA_SUCCESS);
  if (fresh != lost) {  // otherwise the address is the new block's
    // The driver is not asked about an address in served memory.
    if (!Process::get()->ownership().serves(lost))
      expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(lost), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(used(), mib(64));
  free(fresh);
}

TEST_F(PagedSwapIn, MovesNoPageWhileAStreamIsCaptured) {
  // Holes between blocks that stay, and room for as much again, so that they stay cached.
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(allocate(4 * kMib));
  for (std::size_t i = 0; i < blocks.size(); i += 2) free(blocks[i]);
  settle();
  const CUstream stream = make_stream();
  begin_capture(stream);
  const CUdeviceptr rest = allocate(24 * kMib);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, 8 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  end_capture(stream);
  pointer = allocate(8 * kMib);
  EXPECT_EQ(cuMemsetD8(pointer, 1, 8 * kMib), CUDA_SUCCESS);
  EXPECT_LE(used(), mib(64));
  free(pointer);
  free(rest);
  for (std::size_t i = 1; i < blocks.size(); i += 2) free(blocks[i]);
}

TEST_F(PagedSwapIn, OpensToPeersWhatItHasAndWillHave) {
  const CUcontext owner = current();
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  // Before there is a pool to open.
  ASSERT_EQ(cuCtxEnablePeerAccess(owner, 0), CUDA_SUCCESS);
  use(owner);
  weir_standin_clear_counters();
  const CUdeviceptr block = allocate(4 * kMib);
  EXPECT_EQ(weir_standin_calls("cuMemSetAccess"), 2U) << "one for each device";
  free(block);
}

class BestFitSwapIn : public Inside {};

TEST_F(BestFitSwapIn, SharesASegmentThatOneBlockHas) {
  ASSERT_NO_FATAL_FAILURE(start(
      {{"WEIR_POOL", "best_fit"}, {"WEIR_POOL_SEGMENT_SIZE", "16MiB"}, {"WEIR_BUDGET", "128MiB"}}));
  const CUdeviceptr block = allocate(32 * kMib);
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, block + kMib), CUDA_SUCCESS);
  EXPECT_EQ(statistics().reserved.current, Bytes{});
  EXPECT_EQ(arena().account().used(), mib(32));
  free(block);
  EXPECT_EQ(arena().account().used(), Bytes{});
}

}  // namespace
}  // namespace weir::preload::testing
