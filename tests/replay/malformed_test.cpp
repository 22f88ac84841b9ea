// What is refused, where and why: one line each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal_of(const std::string& text) {
  std::string message = message_of<UsageError>([&] { (void)trace_in(text); });
  EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  return message;
}

TEST(ReplayMalformed, LifetimesAreRefusedWithTheLineAndTheReason) {
  const auto refused = [](const std::string& line) {
    return refusal_of("buffer,start,end,size,stream\n0,1,2,3,0\n" + line + "\n0x,1,2,3,0\n");
  };
  const auto at_line_3 = [](const char* reason) {
    return ::testing::AllOf(StartsWith("t: line 3: "), HasSubstr(reason));
  };
  EXPECT_THAT(refused("1,2,1,8,0"), at_line_3("the end, 1, is not after the start, 2"));
  EXPECT_THAT(refused("1,2,2,8,0"), at_line_3("the end, 2, is not after the start, 2"));
  EXPECT_THAT(refused("1,2,3,0,0"), at_line_3("a size of 0 bytes"));
  EXPECT_THAT(refused("1,2,3,1099511627777,0"), at_line_3("at most 1 TiB"));
  EXPECT_THAT(refused("1,2,3,18446744073709551616,0"), at_line_3("the size is '184467"));
  EXPECT_THAT(refused("1,-2,3,4,0"), at_line_3("the start is '-2': a whole number"));
  EXPECT_THAT(refused("1,2,3.5,4,0"), at_line_3("the end is '3.5'"));
  EXPECT_THAT(refused("1,2,9223372036854775808,4,0"), at_line_3("below 2^63"));
  EXPECT_THAT(refused("1,2,3,4KiB,0"), at_line_3("the size is '4KiB'"));
  EXPECT_THAT(refused("1,2,3,,0"), at_line_3("the size is nothing"));
  EXPECT_THAT(refused("1,2,3,4,s"), at_line_3("the stream is 's'"));
  EXPECT_THAT(refused("1,2,3,4"), at_line_3("4 fields, and the header has 5"));
  EXPECT_THAT(refused("1,2,3,4,0,6"), at_line_3("6 fields, and the header has 5"));
  EXPECT_THAT(refused("0,2,3,4,0"), at_line_3("buffer '0' is already on an earlier line"));
}

TEST(ReplayMalformed, LinesAreCountedWithCommentsAndEmptyOnes) {
  EXPECT_THAT(refusal_of("# one\n\nbuffer,start,end,size\n# four\n\r\n1,2,1,8\n"),
              StartsWith("t: line 6: "));
}

TEST(ReplayMalformed, SizesWhoseSumCouldOverflowAreRefused) {
  std::string text = "buffer,start,end,size\n";
  for (int i = 0; i <= 1 << 20; ++i) text += std::to_string(i) + ",0,1,1099511627776\n";
  EXPECT_THAT(refusal_of(text), StartsWith("t: line 1048578: all buffers together"));
}

TEST(ReplayMalformed, RmmLogsAreRefusedWithTheLineAndTheReason) {
  const auto refused = [](const std::string& line) {
    return refusal_of("Thread,Time,Action,Pointer,Size,Stream\n1,T,allocate,0x10,8,0x0\n" + line +
                      "\n");
  };
  const auto at_line_3 = [](const char* reason) {
    return ::testing::AllOf(StartsWith("t: line 3: "), HasSubstr(reason));
  };
  EXPECT_THAT(refused("1,T,allocate,0x10,8,0x0"),
              at_line_3("an allocation at 0x10, which is live already"));
  EXPECT_THAT(refused("1,T,free,0x20,8,0x0"), at_line_3("a free of 0x20, where nothing is live"));
  EXPECT_THAT(refused("1,T,free,0x10,9,0x0"),
              at_line_3("a free of 9 bytes at 0x10, where 8 were allocated"));
  EXPECT_THAT(refused("1,T,free,0x10,7,0x0"),
              at_line_3("a free of 7 bytes at 0x10, where 8 were allocated"));
  EXPECT_THAT(refused("1,T,resize,0x10,8,0x0"), at_line_3("the action is 'resize': allocate"));
  EXPECT_THAT(refused("1,T,allocate,x,8,0x0"), at_line_3("the pointer is 'x'"));
  EXPECT_THAT(refused("1,T,allocate,0x20,8,default"), at_line_3("the stream is 'default'"));
  EXPECT_THAT(refused("1,T,allocate,0x20,2e9,0x0"), at_line_3("the size is '2e9'"));
  EXPECT_THAT(refused("1,T,allocate,0x20,8"), at_line_3("5 fields, and the header has 6"));
  const std::string long_action(500, 'a');
  EXPECT_LT(refused("1,T," + long_action + ",0x20,8,0x0").size(), 200U);
}

TEST(ReplayMalformed, WhatIsNoTraceIsRefusedWithWhatIsExpected) {
  for (const char* text : {"", "\n\n", "root:x:0:0\n", "buffer,start,end\n1,2,3\n",
                           "Thread,Time,Action,Size,Stream\n", "\x80\x02}q\x01X\x08\n"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("expected an allocation log of Weir, RMM's log"))
        << text;
  }
  EXPECT_THAT(refusal_of("\x80\x02}q\x01X\n"), HasSubstr("its first line is '??}q?X'"));
  EXPECT_THAT(refusal_of("buffer,start,end,size\n"), HasSubstr("the trace has no allocations"));
}

TEST(ReplayMalformed, WhatCannotBeReadIsRefusedByName) {
  const auto refused = [](const std::string& path) {
    return message_of<UsageError>([&] { (void)replay::read_traces(path); });
  };
  EXPECT_THAT(refused("/nowhere/at.csv"),
              ::testing::AllOf(StartsWith("/nowhere/at.csv: "), HasSubstr("No such file")));
  const std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_THAT(refused(folder), ::testing::AllOf(StartsWith(folder + ": "), HasSubstr("directory")));
}

}  // namespace
}  // namespace weir::testing
