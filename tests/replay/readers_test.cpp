// Traces that are read unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Trace;
using ::testing::ElementsAre;

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

}  // namespace
}  // namespace weir::testing
