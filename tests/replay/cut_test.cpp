// Truncated files are read up to their end, with a note; damaged ones are refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "gzip.hpp"
#include "support/message_of.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Trace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
