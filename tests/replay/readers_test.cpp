// Traces that are read unchanged; what is refused, where and why, in one line each; truncated
// files, which are read up to their end, with a note, and damaged ones, which are refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "allocator/base/error.hpp"
#include "gzip.hpp"
#include "support/message_of.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Trace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ReplayReaders, LifetimesFreeBeforeTheyAllocateAtTheSameTime) {
  const Trace trace = trace_in(
      "buffer,start,end,size\n"
      "a,0,4,100\n"
      "b,4,9,200\n"
      "c,2,4,300\n");
  EXPECT_THAT(trace.operations, ElementsAre(allocate(0, 100), allocate(1, 300), release(0, 100),
                                            release(1, 300), allocate(2, 200), release(2, 200)));
  EXPECT_EQ(trace.buffers, 3U);
  EXPECT_EQ(trace.streams, 1U);
  EXPECT_EQ(trace.cut, "");
  EXPECT_EQ(replay::peak_requested(trace), Bytes{400});
}

TEST(ReplayReaders, LifetimesHaveTheirColumnsInAnyOrderAndByEitherName) {
  const std::vector<replay::Operation> expected{allocate(0, 7), release(0, 7)};
  for (const char* text : {
           "id,lower,upper,size\n1,5,6,7\n",
           "size,upper,lower,id\n7,6,5,1\n",
           "buffer,start,end,size,stream\n1,5,6,7,0\n",
           "Buffer, Start, End, Size, other\n 1 , 5 , 6 , 7 , what\n",
           "# recorded with care\n\nbuffer,start,end,size\r\n# first\r\n1,5,6,7\r\n\r\n",
       }) {
    EXPECT_EQ(trace_in(text).operations, expected) << text;
  }
}

TEST(ReplayReaders, LifetimesNumberTheirStreamsAsTheyCome) {
  const Trace trace = trace_in(
      "buffer,start,end,size,stream\n"
      "1,0,3,10,900\n"
      "2,1,2,20,7\n");
  EXPECT_THAT(trace.operations, ElementsAre(allocate(0, 10, 0), allocate(1, 20, 1),
                                            release(1, 20, 1), release(0, 10, 0)));
  EXPECT_EQ(trace.streams, 2U);
}

TEST(ReplayReaders, RmmLogKeepsItsOrderAndFreesByAddress) {
  const Trace trace = trace_in(
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "140,10:00:00.000001,allocate,0x7f00,1024,0x0\n"
      "140,10:00:00.000002,allocate,0x7e00,64,0x5591\n"
      "141,10:00:00.000003,free,0x7f00,1024,0x5591\n"
      "141,10:00:00.000004,allocate,0x7f00,512,0x0\n");
  EXPECT_THAT(trace.operations, ElementsAre(allocate(0, 1024, 0), allocate(1, 64, 1),
                                            release(0, 1024, 1), allocate(2, 512, 0)));
  EXPECT_THAT(trace.notes, ElementsAre());
}

TEST(ReplayReaders, RmmLogOfAnEarlierVersionHasNoThreadAndPlainStreams) {
  EXPECT_THAT(trace_in("Time,Action,Pointer,Size,Stream\n"
                       "10:00:00:000001,allocate,7f00,8,0\n"
                       "10:00:00:000002,free,7f00,8,0\n")
                  .operations,
              ElementsAre(allocate(0, 8), release(0, 8)));
}

TEST(ReplayReaders, RmmLogSaysWhatFailedAndWhatWasEmptyAndLeavesItOut) {
  const Trace trace = trace_in(
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "1,10:00:00.000001,allocate,0x7f00,1024,0x0\n"
      "1,10:00:00.000002,allocate failure,(nil),99,0x0\n"
      "1,10:00:00.000002,allocate failure,0x0,98,0x0\n"
      "1,10:00:00.000003,allocate,(nil),0,0x0\n"
      "1,10:00:00.000004,free,(nil),0,0x0\n");
  EXPECT_THAT(trace.operations, ElementsAre(allocate(0, 1024)));
  EXPECT_THAT(trace.notes, ElementsAre("2 allocations failed in the recording: skipped",
                                       "1 allocation of 0 bytes: skipped"));
}

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

const std::string kHeader = "buffer,start,end,size\n";

Trace read_packed(const std::string& packed) {
  return replay::read_traces(replay::unpack("t", packed)).front();
}

TEST(ReplayCut, ALastLineThatDoesNotEndIsNotRead) {
  const Trace trace = trace_in(kHeader + "1,0,5,10\n2,1,4,2");  // perhaps of 20
  EXPECT_THAT(trace.operations, ElementsAre(allocate(0, 10), release(0, 10)));
  EXPECT_EQ(trace.cut, "line 3 is incomplete: it does not end with a newline");
}

TEST(ReplayCut, WhereNothingIsLeftTheRefusalSaysWhy) {
  EXPECT_THAT(message_of<UsageError>([] { (void)trace_in(kHeader + "1,0,5,10"); }),
              HasSubstr("no allocations (line 2 is incomplete"));
}

TEST(ReplayCut, AWholeGzipIsReadLikeItsContents) {
  const std::string text = kHeader + "1,0,5,10\n2,1,4,20\n";
  const Trace packed = read_packed(gzip_of(text));
  EXPECT_EQ(packed.operations, trace_in(text).operations);
  EXPECT_EQ(packed.cut, "");
}

TEST(ReplayCut, AGzipOfSeveralStreamsIsReadToItsEndAndMayBeFilledUpWithZeros) {
  const std::string packed = gzip_of(kHeader) + gzip_of("1,0,5,10\n") + gzip_of("2,5,6,20\n");
  EXPECT_EQ(read_packed(packed).operations.size(), 4U);
  EXPECT_EQ(read_packed(packed + std::string(100, '\0')).cut, "");
}

TEST(ReplayCut, AGzipThatEndsAnywhereIsReadUpToThere) {
  std::string text = kHeader;
  for (int i = 0; i < 2000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(i + 1 + i * 7 % 50) +
            "," + std::to_string(i * 37 % 1000 + 1) + "\n";
  }
  const std::string packed = gzip_of(text);
  const Trace whole = trace_in(text);
  std::size_t last = 0;
  for (std::size_t size = packed.size() / 2; size < packed.size(); size += 97) {
    const Trace trace = read_packed(packed.substr(0, size));
    EXPECT_THAT(trace.cut, HasSubstr("the gzip data ends early"));
    EXPECT_GE(trace.buffers, last);
    EXPECT_LE(trace.buffers, whole.buffers);
    last = trace.buffers;
  }
  EXPECT_GT(last, whole.buffers / 2);
}

TEST(ReplayCut, AGzipWithoutItsChecksumIsCutThoughEveryLineIsThere) {
  const std::string packed = gzip_of(kHeader + "1,0,5,10\n");
  const Trace trace = read_packed(packed.substr(0, packed.size() - 8));
  EXPECT_EQ(trace.operations.size(), 2U);
  EXPECT_EQ(trace.cut, "the gzip data ends early");
}

TEST(ReplayCut, AGzipThatIsBrokenIsRefused) {
  const auto refused = [](const std::string& packed) {
    return message_of<UsageError>([&] { (void)replay::unpack("t", packed); });
  };
  std::string packed = gzip_of(kHeader + "1,0,5,10\n");
  EXPECT_THAT(refused(packed + "more"), HasSubstr("t: at byte "));
  packed[packed.size() - 5] ^= 1;  // of the checksum
  EXPECT_THAT(refused(packed), HasSubstr("incorrect data check"));
  EXPECT_THAT(refused("\x1f\x8b\x07 no such method"), HasSubstr("unknown compression method"));
}

TEST(ReplayCut, AGzipThatUnpacksToTooMuchIsRefused) {
  const std::string packed = gzip_of(std::string(100'000, '\n'));
  EXPECT_EQ(replay::unpack("t", packed, {100'000}).bytes.size(), 100'000U);
  EXPECT_THAT(message_of<UsageError>([&] { (void)replay::unpack("t", packed, {99'999}); }),
              HasSubstr("unpacks to more than 97.7 KiB"));
}

}  // namespace
}  // namespace weir::testing
