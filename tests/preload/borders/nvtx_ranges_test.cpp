#include "tools/preload/borders/nvtx_ranges.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/borders/fake_api.hpp"

namespace weir::preload {
namespace {

using fake::take_calls;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NvtxRanges : public ::testing::Test {
 protected:
  NvtxRanges() { start(); }
  ~NvtxRanges() override { start(); }

 private:
  static void start() {
    fake::answer({});
    (void)take_calls();
  }
};

TEST_F(NvtxRanges, PopsMatchPushes) {
  EXPECT_EQ(push_range(0, nullptr), 0);
  EXPECT_EQ(push_range(0, "step"), 1);
  EXPECT_EQ(push_range(0, nullptr), 2);
  EXPECT_EQ(pop_range(0), 2);
  EXPECT_THAT(take_calls(), ElementsAre("begin step"));
  EXPECT_EQ(pop_range(0), 1);
  EXPECT_THAT(take_calls(), ElementsAre("end"));
  EXPECT_EQ(pop_range(0), 0);
  EXPECT_EQ(pop_range(0), -1);
  EXPECT_THAT(take_calls(), IsEmpty());
}

TEST_F(NvtxRanges, DomainsNestEachByItself) {
  EXPECT_EQ(push_range(1, "step"), 0);
  EXPECT_EQ(push_range(2, nullptr), 0);
  EXPECT_EQ(pop_range(1), 0);
  EXPECT_THAT(take_calls(), ElementsAre("begin step", "end"));
  EXPECT_EQ(pop_range(2), 0);
}

TEST_F(NvtxRanges, DomainsPastTheFifteenthNestAsOne) {
  EXPECT_EQ(push_range(15, nullptr), 0);
  EXPECT_EQ(push_range(std::uint64_t{1} << 40U, "step"), 1);
  EXPECT_EQ(pop_range(99), 1);
  EXPECT_THAT(take_calls(), ElementsAre("begin step", "end"));
  EXPECT_EQ(pop_range(15), 0);
}

TEST_F(NvtxRanges, APassedOverBatchIsNotEnded) {
  fake::answer({.begins = false});
  push_range(0, "step");
  EXPECT_EQ(pop_range(0), 0);
  EXPECT_EQ(start_range("step"), 0U);
  end_range(0);
  EXPECT_THAT(take_calls(), ElementsAre("begin step", "begin step"));
}

TEST_F(NvtxRanges, ThreadsNestEachByItself) {
  push_range(0, "step");
  int level = 0;
  std::thread([&level] { level = pop_range(0); }).join();
  EXPECT_EQ(level, -1);
  EXPECT_THAT(take_calls(), ElementsAre("begin step"));
  pop_range(0);
}

TEST_F(NvtxRanges, StartedRangesEndInAnyOrderAndOnce) {
  const std::uint64_t first = start_range("step");
  const std::uint64_t second = start_range("step");
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  EXPECT_EQ(start_range(nullptr), 0U);
  EXPECT_THAT(take_calls(), ElementsAre("begin step", "begin step"));
  end_range(first);
  end_range(first);
  end_range(second);
  end_range(0);
  EXPECT_THAT(take_calls(), ElementsAre("end", "end"));
}

TEST_F(NvtxRanges, EndedElsewhereEndsBeforeItsThreadBeginsTheNext) {
  const std::uint64_t range = start_range("step");
  std::thread([range] { end_range(range); }).join();
  EXPECT_THAT(take_calls(), ElementsAre("begin step"));
  push_range(0, nullptr);
  pop_range(0);
  EXPECT_THAT(take_calls(), IsEmpty());
  const std::uint64_t next = start_range("step");
  EXPECT_THAT(take_calls(), ElementsAre("end", "begin step"));
  std::thread([next] { end_range(next); }).join();
  push_range(0, "step");
  pop_range(0);
  EXPECT_THAT(take_calls(), ElementsAre("end", "begin step", "end"));
}

TEST_F(NvtxRanges, AFifthStartedBatchEndsTheOldest) {
  std::vector<std::uint64_t> started;
  for (int range = 0; range < 5; ++range) started.push_back(start_range("step"));
  EXPECT_THAT(take_calls(), ElementsAre("begin step", "begin step", "begin step", "begin step",
                                        "end", "begin step"));
  end_range(started[0]);
  EXPECT_THAT(take_calls(), IsEmpty());
  for (int range = 1; range < 5; ++range) end_range(started[static_cast<std::size_t>(range)]);
  EXPECT_THAT(take_calls(), ElementsAre("end", "end", "end", "end"));
}

TEST(NvtxNames, AreComparedWhole) {
  EXPECT_TRUE(is_name("step", "step"));
  for (const char* other : {"steps", "ste", "", "Step"})
    EXPECT_FALSE(is_name(other, "step")) << other;
  EXPECT_FALSE(is_name(static_cast<const char*>(nullptr), "step"));
}

TEST(NvtxNames, WideOnesAreComparedAsUtf8) {
  EXPECT_TRUE(is_name(L"step", "step"));
  EXPECT_TRUE(is_name(L"\u00e4\u20ac\U0001f600", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const wchar_t* other : {L"steps", L"ste", L"", L"\u00e4"}) {
    EXPECT_FALSE(is_name(other, "step")) << std::wstring(other).size();
  }
  EXPECT_FALSE(is_name(static_cast<const wchar_t*>(nullptr), "step"));
}

}  // namespace
}  // namespace weir::preload
