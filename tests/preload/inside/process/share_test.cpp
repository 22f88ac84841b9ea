// A program under the swap-in that shares its device's budget with another process.

#include "allocator/share/share.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/share_fixture.hpp"

namespace weir::preload::testing {
namespace {

using weir::testing::kBudget;
using weir::testing::kFloor;

/// The share of the test, and another process's part in it.
class ShareInside : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start_sharing()); }
  static ShareOptions options(int device = 0) {
    static const weir::testing::OwnShare kOwn;
    ShareOptions options = kOwn.options(kBudget, kFloor);
    options.id.name += ".gpu" + std::to_string(device);
    return options;
  }
  static void start_sharing(const char* floor = "16MiB") {
    std::string name = options().id.name;
    name.resize(name.size() - std::string_view(".gpu0").size());
    start({{"WEIR_SHARE", name.c_str()},
           {"WEIR_BUDGET", "64MiB"},
           {"WEIR_SHARE_FLOOR", floor},
           {"WEIR_STANDIN_DEVICES", "2"}});
  }
  ~ShareInside() override {
    for (const int device : {0, 1}) unlink(options(device).id.path().c_str());
  }
};
class ShareUnlikely : public ShareInside {
  void SetUp() override {}
};

TEST_F(ShareInside, TakesMoreThanItsFloorWhileNobodyWantsItAndReturnsItWhenSomebodyDoes) {
  const CUdeviceptr small = allocate(kMib);
  EXPECT_EQ(arena().account().budget(), kFloor);
  Share other(options());
  const CUdeviceptr large = allocate(40 * kMib);
  EXPECT_GE(arena().account().budget(), mib(41));
  EXPECT_EQ(other.raise(mib(40)), kBudget - arena().account().budget()) << "the rest of it";
  free(large);  // cached: the program does not need it
  wait_until([&] {
    free(allocate(kMib));
    return other.raise(mib(40)) == mib(40);
  });
  EXPECT_LE(weir_standin_used(0) + other.lease().count, kBudget.count);
  free(small);
}

/// A part of the share that wants more than is left beside what the program holds in its cache.
class WantedInside : public ShareInside {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start_sharing());
    small_ = allocate(kMib);
    other_.emplace(options());
    free(allocate(40 * kMib));
    ASSERT_LT(other_->raise(mib(40)), mib(40));
  }
  /// The program does `work` again and again, until the other gets all.
  void await_return_by(const std::function<void()>& work) {
    wait_until([&] {
      work();
      return other_->raise(mib(40)) == mib(40);
    });
  }

  CUdeviceptr small_ = 0;
  std::optional<Share> other_;
};

TEST_F(WantedInside, ReturnsItsSurplusWhileItOnlyAllocates) {
  auto next = std::chrono::steady_clock::now();
  await_return_by([&] {
    if (std::chrono::steady_clock::now() < next) return;
    (void)allocate(512);
    next += std::chrono::milliseconds(1);
  });
}

TEST_F(WantedInside, ReturnsItsSurplusWhileItOnlyLaunches) {
  await_return_by([&] { EXPECT_EQ(cuMemsetD8Async(small_, 1, 1, nullptr), CUDA_SUCCESS); });
}

TEST_F(ShareInside, WhatTheShareRefusesIsOutOfMemoryAsInABudgetOfItsOwn) {
  free(allocate(kMib));
  Share other(options());
  ASSERT_EQ(other.raise(kBudget), kBudget - kFloor);
  const CUdeviceptr floor = allocate(15 * kMib);
  EXPECT_EQ(try_allocate(4 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena().account().budget(), kFloor);
  (void)other.lower({});
  EXPECT_EQ(try_allocate(4 * kMib), CUDA_SUCCESS);
  free(floor);
}

TEST_F(ShareInside, ARequestThatNoShareCouldServeLeavesLeaseAndWishAsTheyWere) {
  free(allocate(kMib));
  Share other(options());
  EXPECT_EQ(try_allocate(65 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(make_pages(66 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena().account().budget(), kFloor);
  EXPECT_FALSE(other.is_wanted());
}

TEST_F(ShareInside, MemoryPastThePoolsIsOfTheShareToo) {
  free(allocate(kMib));
  Share other(options());
  EXPECT_EQ(make_pages(40 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(make_pages(10 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LE(arena().account().used() + other.lease(), kBudget);
}

TEST_F(ShareInside, ADeviceWhoseContextsHaveEndedReturnsItsSurplus) {
  const CUcontext context = make_context(1);
  (void)allocate(40 * kMib);
  Account& account = arena().account();
  ASSERT_GE(account.budget(), mib(40));
  ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  Share other(options(1));
  EXPECT_EQ(other.raise(kBudget), kBudget - account.budget());
  // The publishing thread calls it, and what the program does on its other devices does.
  wait_until([&] {
    Process::get()->devices().keep_budgets();
    return other.raise(kBudget) == kBudget - kFloor;
  });
  EXPECT_EQ(account.budget(), kFloor);
}

TEST_F(ShareInside, ItsBudgetCannotBeSetWhileItRuns) {
  free(allocate(kMib));
  EXPECT_EQ(arena().device().set_budget(mib(32), "a test").code, timeline::BudgetCode::kFixed);
  EXPECT_EQ(arena().account().budget(), kFloor);
}

// Each has what the other's floor needs, and each has one thread only.
TEST_F(ShareInside, TwoThatAttachCrosswiseReturnWhatTheOtherNeedsMeanwhile) {
  Share other(options(1));
  ASSERT_EQ(other.raise(kBudget), kBudget);
  free(allocate(60 * kMib));  // cached
  std::thread process([&] {
    ShareOptions first = options(0);
    first.patience = std::chrono::seconds(100);
    const Share its(first);
    (void)other.lower({});
  });
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  free(allocate(kMib));
  process.join();
  EXPECT_EQ(arena().account().budget(), kFloor);
}

TEST_F(ShareInside, ItsOtherDevicesAndThreadsGoOnWhileItAttaches) {
  free(allocate(kMib));
  Share other(options(1));
  ASSERT_EQ(other.raise(kBudget), kBudget);
  std::thread attaching([] {
    use_device(1);
    free(allocate(kMib));
  });
  while (!other.is_wanted()) std::this_thread::yield();
  free(allocate(2 * kMib));
  EXPECT_NE(Process::get()->devices().get(0), nullptr);
  std::thread also([] {
    use_device(1);
    free(allocate(kMib));
  });
  (void)other.lower({});
  attaching.join();
  also.join();
  EXPECT_EQ(look_into(options(1).id).used.size(), 2U) << "it has attached once";
}

TEST_F(ShareInside, WhoOnlyLooksAtADeviceTakesNoFloorThere) {
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 1), CUDA_SUCCESS);
  EXPECT_EQ(total, kFloor.count) << "what it would have at first";
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceSetMemPool(1, pool), CUDA_SUCCESS);
  EXPECT_FALSE(set_budget(1, mib(32)));
  EXPECT_NE(access(options(1).id.path().c_str(), F_OK), 0);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  free(allocate(kMib));
  EXPECT_EQ(access(options(1).id.path().c_str(), F_OK), 0);
  EXPECT_EQ(cuDeviceTotalMem(&total, 1), CUDA_SUCCESS);
  EXPECT_EQ(total, kFloor.count);
}

TEST_F(ShareUnlikely, AFloorThatDoesNotFitEndsTheProgramWithOneLine) {
  // The swap-in does nothing in a child made by fork.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Share other(options());
  EXPECT_EXIT(
      {
        start_sharing("49MiB");
        (void)allocate(kMib);
      },
      ::testing::ExitedWithCode(2), "a floor of 49 MiB does not fit beside 16 MiB");
}

}  // namespace
}  // namespace weir::preload::testing
