// WEIR_SPILL=host: allocations that fit nowhere else get host memory, and those that must not are
// refused.

#include "tools/preload/context/spill.hpp"

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/trainer/temporary_directory.hpp"

namespace weir::preload::testing {
namespace {

SpillRequest usual() {
  return {
      .asked = mib(10), .budget = mib(100), .spilled = {}, .host_available = gib(1), .refused = {}};
}

TEST(DecideSpill, ServesWhatIsUpToHalfOfTheBudget) {
  SpillRequest request = usual();
  EXPECT_EQ(decide_spill(request), SpillDecision::kServe);
  request.asked = mib(50);
  EXPECT_EQ(decide_spill(request), SpillDecision::kServe);
  request.asked = mib(50) + Bytes{1};
  EXPECT_EQ(decide_spill(request), SpillDecision::kTooLarge);
}

TEST(DecideSpill, TakesNoMoreThanHalfOfWhatTheHostHas) {
  SpillRequest request = usual();
  request.host_available = mib(60);
  request.spilled = mib(20);
  EXPECT_EQ(decide_spill(request), SpillDecision::kServe);
  request.spilled = mib(20) + Bytes{1};
  EXPECT_EQ(decide_spill(request), SpillDecision::kHostFull);
  request.spilled = gib(1);
  EXPECT_EQ(decide_spill(request), SpillDecision::kHostFull);
  request = usual();
  request.host_available = {};  // the system does not say
  EXPECT_EQ(decide_spill(request), SpillDecision::kHostFull);
}

/// As frameworks look for the largest block: by halves, or by nine tenths.
TEST(DecideSpill, ServesNoStepOfASearchForTheLargestBlock) {
  for (const auto& [numerator, denominator] : {std::pair{1U, 2U}, std::pair{9U, 10U}}) {
    SpillRequest request = usual();
    for (request.asked = gib(4); request.asked.count > 4096;
         request.asked = {request.asked.count * numerator / denominator}) {
      EXPECT_NE(decide_spill(request), SpillDecision::kServe) << request.asked.count;
      request.refused = request.asked;
    }
  }
  SpillRequest request = usual();
  request.refused = mib(100);
  request.asked = mib(49);
  EXPECT_EQ(decide_spill(request), SpillDecision::kServe) << "less than half: another matter";
}

TEST(DecideSpill, ReadsWhatTheHostHas) {
  EXPECT_EQ(parse_available("MemTotal:  100 kB\nMemFree:  1 kB\nMemAvailable:     2048 kB\n"),
            mib(2));
  EXPECT_EQ(parse_available("MemTotal:  100 kB\n"), Bytes{});
  EXPECT_EQ(parse_available("MemAvailable: lots"), Bytes{});
  EXPECT_EQ(parse_available(""), Bytes{});
  EXPECT_NE(host_available(), Bytes{});
}

class GroupAvailable : public ::testing::Test {
 protected:
  void limit(const std::string& group, const std::string& most, std::uint64_t current,
             std::uint64_t files) {
    const std::string path = folder_.file(group);
    std::filesystem::create_directories(path);
    weir::testing::write_file(path + "/memory.max", most + "\n");
    weir::testing::write_file(path + "/memory.current", std::to_string(current) + "\n");
    weir::testing::write_file(path + "/memory.stat", "anon 7\nactive_file 9\ninactive_file " +
                                                         std::to_string(files) + "\nslab 1\n");
  }
  [[nodiscard]] std::optional<Bytes> available(std::string_view text) const {
    return group_available(folder_.file(".").c_str(), text);
  }

 private:
  weir::testing::TemporaryDirectory folder_;
};

TEST_F(GroupAvailable, IsTheLeastOfTheGroupAndAllAboveIt) {
  limit("", "1000", 400, 100);
  limit("job", "max", 300, 0);
  limit("job/step", "900", 100, 50);
  EXPECT_EQ(available("0::/job/step\n"), Bytes{700}) << "files that are not in use count as free";
  limit("job", "500", 300, 0);
  EXPECT_EQ(available("1:memory:/other\n0::/job/step\n"), Bytes{200});
  EXPECT_EQ(available("0::/job\n"), Bytes{200});
  EXPECT_EQ(available("0::/\n"), Bytes{700});
  limit("job", "200", 300, 0);
  EXPECT_EQ(available("0::/job\n"), Bytes{});
}

TEST_F(GroupAvailable, IsNotKnownWithoutALimit) {
  EXPECT_EQ(available("0::/job\n"), std::nullopt);
  limit("", "max", 400, 0);
  EXPECT_EQ(available("0::/not/here\n"), std::nullopt);
  limit("", "1000", 400, 0);
  EXPECT_EQ(available("0::/not/here\n"), Bytes{600});
  for (const char* text : {"", "10::/\n", "4:memory:/\n", "0:"}) {
    EXPECT_EQ(available(text), std::nullopt) << text;
  }
  EXPECT_EQ(available("0::" + std::string(9000, 'x')), std::nullopt);
}

class SpilledMemory : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start_spilling()); }
  static void start_spilling() {
    start({{"WEIR_SPILL", "host"},
           {"WEIR_BUDGET", "8MiB"},
           {"WEIR_MAX_WAIT", "50ms"},
           {"WEIR_STANDIN_DEVICES", "2"},
           {"WEIR_STANDIN_CONCURRENT_MANAGED", "1"}});
  }
  static Passed spilled() {
    for (const Passed& each : arena().account().passed_kinds()) {
      if (each.kind == "spilled") return each;
    }
    return {};
  }
  static std::size_t on_host() { return weir_standin_live().host_preferred_bytes; }
  /// Fills the budget with live memory.
  static CUdeviceptr fill() { return allocate(8 * kMib); }
};
class SpillingOtherwise : public SpilledMemory {
  void SetUp() override {}
};

TEST_F(SpilledMemory, IsWhatFitsNowhereElseAndCountsByItself) {
  const weir::testing::LogCapture log;
  const CUdeviceptr live = fill();
  EXPECT_EQ(on_host(), 0U);
  const CUdeviceptr first = allocate(2 * kMib);
  const CUdeviceptr second = allocate(kMib, make_stream());
  EXPECT_EQ(on_host(), 3 * kMib);
  EXPECT_EQ(cuMemsetD8(first, 5, 2 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(spilled().level.current, mib(3));
  EXPECT_EQ(spilled().calls, 2U);
  EXPECT_FALSE(spilled().counted);
  EXPECT_EQ(arena().account().used(), mib(8));
  EXPECT_EQ(free_bytes(), 0U);
  const auto warnings = log.containing("WEIR_SPILL=host");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().find("2 MiB are"), std::string::npos) << warnings.front();
  EXPECT_NE(warnings.front().find("slower"), std::string::npos);
  EXPECT_TRUE(log.containing("printed once; the program got").empty()) << "it was not";
  free(first);
  free(second, nullptr);
  settle();
  free(live);
  EXPECT_EQ(on_host(), 0U);
  EXPECT_EQ(spilled().level.current, Bytes{});
  EXPECT_EQ(spilled().level.peak, mib(3));
}

TEST_F(SpillingOtherwise, IsNoneWithoutTheSetting) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "8MiB"},
                                 {"WEIR_MAX_WAIT", "50ms"},
                                 {"WEIR_STANDIN_CONCURRENT_MANAGED", "1"}}));
  (void)fill();
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(weir_standin_calls("cuMemAllocManaged"), 0U);
}

TEST_F(SpilledMemory, StaysUntilTheDeviceHasPassedItsFree) {
  const CUdeviceptr live = fill();
  const CUstream stream = make_stream();
  const CUdeviceptr everywhere = allocate(2 * kMib);
  const CUdeviceptr in_order = allocate(kMib, stream);
  keep_busy(stream, everywhere);
  EXPECT_EQ(cuMemsetD8Async(in_order, 1, kMib, stream), CUDA_SUCCESS);
  free(everywhere);  // returns at once
  free(in_order, stream);
  EXPECT_EQ(on_host(), 3 * kMib);
  free(allocate(512));  // anybody's free looks
  EXPECT_EQ(on_host(), 3 * kMib + 512) << "the budget is still full";
  release_all();
  settle();
  free(live);
  settle();
  free(allocate(512));
  EXPECT_EQ(on_host(), 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(SpilledMemory, IsFreedOnceAndNeverByTheDriverFirst) {
  (void)fill();
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(kMib);
  keep_busy(stream, block);
  EXPECT_EQ(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(block + 512, stream), CUDA_ERROR_INVALID_VALUE);
  free(block);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
}

TEST_F(SpilledMemory, ASecondFreeWhileTheDriverTakesItBackFreesNothing) {
  weir::testing::expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);  // the driver has it back
  const weir::testing::LogCapture log;
  (void)fill();
  const CUdeviceptr block = allocate(kMib);
  CUresult again = CUDA_SUCCESS;
  Meanwhile other("cuMemFree", 1, [&] {
    use_device(0);
    again = cuMemFree(block);
  });
  free(block);
  EXPECT_TRUE(other.has_begun());
  other.end();
  EXPECT_EQ(again, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(on_host(), 0U);
  EXPECT_EQ(spilled().level.current, Bytes{});
  EXPECT_TRUE(log.containing("cannot be released").empty());
}

TEST_F(SpilledMemory, WhatTheDriverDoesNotTakeBackStaysCountedAndFreed) {
  (void)fill();
  const CUdeviceptr block = allocate(kMib);
  weir_standin_fail("cuMemFree", 1, CUDA_ERROR_UNKNOWN, kWeirStandinOnce);
  free(block);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
  EXPECT_EQ(spilled().level.current, mib(1));
}

TEST_F(SpilledMemory, IsFreedInAnotherContextBehindItsWork) {
  const CUcontext first = current();
  (void)fill();
  const CUdeviceptr block = allocate(kMib);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUstream there = make_stream();
  keep_busy(there, block);
  free(block, there);
  use(first);
  arena().pool().poll();
  (void)cuMemFree(allocate(512));  // whoever frees looks
  EXPECT_GE(on_host(), kMib);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(SpilledMemory, ServesNoSearchForTheLargestBlockAndNoHalfOfTheBudget) {
  const CUdeviceptr live = fill();
  for (std::size_t bytes = std::size_t{1} << 40; bytes >= 512; bytes /= 2) {
    EXPECT_EQ(try_allocate(bytes), CUDA_ERROR_OUT_OF_MEMORY) << bytes;
  }
  EXPECT_EQ(on_host(), 0U);
  free(live);
  settle();
  (void)allocate(8 * kMib);  // the search is over
  (void)allocate(kMib);
  EXPECT_EQ(on_host(), kMib);
}

TEST_F(SpilledMemory, IsNoneDuringACapture) {
  (void)fill();
  const CUstream stream = make_stream();
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  end_capture(stream);
  EXPECT_EQ(on_host(), 0U);
}

TEST_F(SpilledMemory, HasNoHandleForAnotherProcess) {
  const weir::testing::LogCapture log;
  (void)fill();
  const CUdeviceptr block = allocate(kMib);
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(log.containing("cuIpcGetMemHandle refused: it is host memory").size(), 1U);
  free(block);
}

TEST_F(SpilledMemory, GoesWithItsContext) {
  (void)fill();
  const CUdeviceptr freed = allocate(kMib);
  (void)allocate(kMib);
  keep_busy(make_stream(), freed);
  free(freed);
  Account& account = arena().account();
  release_all();
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  for (const Passed& each : account.passed_kinds()) EXPECT_EQ(each.level.current, Bytes{});
  ASSERT_NO_FATAL_FAILURE(use_device(0));
  (void)fill();
  (void)allocate(kMib);
  EXPECT_EQ(on_host(), kMib);
}

TEST_F(SpillingOtherwise, WhereTheDeviceCannotOneLineSaysSoAndRequestsFail) {
  const weir::testing::LogCapture log;
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_SPILL", "host"}, {"WEIR_BUDGET", "8MiB"}, {"WEIR_MAX_WAIT", "50ms"}}));
  (void)fill();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_EQ(log.containing("WEIR_SPILL=host has no effect on GPU 0").size(), 1U);
  EXPECT_EQ(weir_standin_calls("cuMemAllocManaged"), 0U);
}

TEST_F(SpilledMemory, ADriverThatHasNoneFailsTheRequest) {
  (void)fill();
  weir_standin_fail("cuMemAllocManaged", 1, CUDA_ERROR_OUT_OF_MEMORY, kWeirStandinOnce);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pointer, 0U);
  EXPECT_EQ(spilled().calls, 0U);
  // Advice has no further effect.
  weir_standin_fail("cuMemAdvise", 1, CUDA_ERROR_INVALID_DEVICE, kWeirStandinFromThenOn);
  free(allocate(kMib));
}

}  // namespace
}  // namespace weir::preload::testing
