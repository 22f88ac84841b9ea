#include "tools/timeline/cupti/parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "timeline/cupti/records.hpp"

namespace weir::timeline::cupti {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::of_kind;
using ::testing::SizeIs;

class CuptiParser : public ::testing::Test {
 protected:
  template <typename Record>
  void read(const Record& record, std::size_t size = sizeof(Record)) {
    parser_.read(bytes_of(record, size), sink_, records_);
  }
  void join() { parser_.join(0, records_); }
  [[nodiscard]] TimelineRecord only(TimelineKind kind) const {
    const std::vector<TimelineRecord> found = of_kind(records_, kind);
    EXPECT_THAT(found, SizeIs(1));
    return found.empty() ? TimelineRecord{} : found.front();
  }
  [[nodiscard]] std::string name(const TimelineRecord& record) const {
    return sink_.text(record.name);
  }

  testing::NamingSink sink_;
  std::vector<TimelineRecord> records_;
  Parser parser_{[](Kind kind, std::uint32_t function) -> const char* {
    if (function == 0) return nullptr;
    return kind == Kind::kDriver ? "cuLaunchKernel" : "cudaLaunchKernel_v7000";
  }};
};

TEST_F(CuptiParser, AKernelIsASliceOfItsStreamWithAReadableName) {
  read(testing::kernel(3, 1000, 1500), testing::kKernelBytes);
  const TimelineRecord record = only(TimelineKind::kKernel);
  EXPECT_EQ(record.begin, 1000U);
  EXPECT_EQ(record.end, 1500U);
  EXPECT_EQ(record.id, 3U);
  EXPECT_EQ(record.device, 1U);
  EXPECT_EQ(record.stream, 7U);
  EXPECT_EQ(name(record), "step(float*)");
  EXPECT_EQ(name(only(TimelineKind::kStream)), "stream 7");
}

TEST_F(CuptiParser, TimesAreMovedToTheRecordersClock) {
  parser_.set_offset(-900);
  read(testing::kernel(3, 1000, 1500));
  EXPECT_EQ(only(TimelineKind::kKernel).begin, 100U);
  EXPECT_EQ(only(TimelineKind::kKernel).end, 600U);
}

TEST_F(CuptiParser, RecordsLargerThanKnownAreReadByTheirKnownFields) {
  read(testing::kernel(3, 1000, 1500), testing::kKernelBytes + 32);
  EXPECT_EQ(only(TimelineKind::kKernel).end, 1500U);
}

TEST_F(CuptiParser, RecordsShorterThanKnownHaveZeroesInWhatTheyLack) {
  MemoryRecord memory{};
  memory.kind = Kind::kMemory;
  memory.operation = 1;
  memory.memory_kind = 3;
  memory.timestamp = 50;
  memory.bytes = 4096;
  memory.source = "libnccl.so.2";
  read(memory, offsetof(MemoryRecord, source));
  EXPECT_EQ(only(TimelineKind::kDriverAlloc).bytes, 4096U);
  EXPECT_EQ(name(only(TimelineKind::kDriverAlloc)), "");
}

TEST_F(CuptiParser, ARecordCutInItsFirstFieldIsSkipped) {
  parser_.read(std::vector<std::uint8_t>{10, 0}, sink_, records_);
  parser_.read({}, sink_, records_);
  EXPECT_EQ(parser_.skipped().unknown + parser_.skipped().untimed, 2U);
  EXPECT_THAT(records_, IsEmpty());
}

TEST_F(CuptiParser, CopiesSayTheirDirectionAndBytes) {
  const auto direction = [this](std::uint8_t kind) {
    records_.clear();
    read(testing::copy(kind, 77), testing::kCopyBytes);
    EXPECT_EQ(only(TimelineKind::kCopy).bytes, 77U);
    return static_cast<TimelineCopy>(only(TimelineKind::kCopy).detail);
  };
  EXPECT_EQ(direction(1), TimelineCopy::kToDevice);
  EXPECT_EQ(direction(2), TimelineCopy::kFromDevice);
  EXPECT_EQ(direction(3), TimelineCopy::kToDevice);
  EXPECT_EQ(direction(4), TimelineCopy::kFromDevice);
  EXPECT_EQ(direction(8), TimelineCopy::kOnDevice);
  EXPECT_EQ(direction(9), TimelineCopy::kOnHost);
  EXPECT_EQ(direction(10), TimelineCopy::kPeer);
  EXPECT_EQ(direction(99), TimelineCopy::kOther);
}

TEST_F(CuptiParser, ACopyBetweenDevicesHasItsCorrelationIdElsewhere) {
  PeerCopyRecord copy{};
  copy.kind = Kind::kMemcpyPeer;
  copy.copy_kind = 10;
  copy.start = 1;
  copy.end = 2;
  copy.source_device = 99;  // other copies have their correlation id there
  copy.correlation = 12;
  read(copy, 96);
  EXPECT_EQ(only(TimelineKind::kCopy).id, 12U);
}

TEST_F(CuptiParser, SetsAndPoolsAndOverheadAreRead) {
  SetRecord set{};
  set.kind = Kind::kMemset;
  set.bytes = 512;
  set.start = 1;
  set.end = 4;
  read(set, 88);
  EXPECT_EQ(only(TimelineKind::kSet).bytes, 512U);

  PoolRecord pool{};
  pool.kind = Kind::kMemoryPool;
  pool.operation = 3;
  pool.address = 0xABC;
  pool.size = 2048;
  pool.utilized = 1024;
  pool.timestamp = 9;
  read(pool, 80);
  EXPECT_EQ(only(TimelineKind::kDriverPool).bytes, 1024U);
  EXPECT_EQ(only(TimelineKind::kDriverPool).requested, 2048U);
  EXPECT_EQ(only(TimelineKind::kDriverPool).sequence, 0xABCU);
  EXPECT_EQ(only(TimelineKind::kDriverPool).detail, 3U);

  OverheadRecord overhead{};
  overhead.kind = Kind::kOverhead;
  overhead.overhead = 1U << 16U;
  overhead.object = 2;
  overhead.thread = 77;
  overhead.start = 5;
  overhead.end = 6;
  read(overhead, 56);
  EXPECT_EQ(only(TimelineKind::kOverhead).thread, 77U);
  EXPECT_EQ(name(only(TimelineKind::kOverhead)), "CUPTI hands over buffers");
}

TEST_F(CuptiParser, TheDriversMemoryNamesTheLibraryThatAsked) {
  MemoryRecord memory{};
  memory.kind = Kind::kMemory;
  memory.memory_kind = 2;
  memory.address = 0x7000;
  memory.bytes = 100;
  memory.timestamp = 50;
  memory.source = "libcublas.so.13";
  memory.operation = 1;
  read(memory);
  memory.operation = 2;
  read(memory);
  EXPECT_EQ(name(only(TimelineKind::kDriverAlloc)), "libcublas.so.13");
  EXPECT_EQ(only(TimelineKind::kDriverAlloc).sequence, 0x7000U);
  EXPECT_EQ(only(TimelineKind::kDriverAlloc).detail,
            static_cast<std::uint8_t>(TimelineMemory::kPinned));
  EXPECT_EQ(only(TimelineKind::kDriverFree).sequence, 0x7000U);
}

TEST_F(CuptiParser, WhatEndsBeforeItsStartOrHasNoTimesOrNoKnownKindIsSkippedAndCounted) {
  read(testing::kernel(3, 1500, 1000));
  EXPECT_EQ(parser_.skipped().backwards, 1U);
  read(testing::kernel(3, 0, 0));
  EXPECT_EQ(parser_.skipped().untimed, 1U);
  KernelRecord record = testing::kernel(3, 1, 2);
  record.kind = Kind{12345};
  read(record);
  EXPECT_EQ(parser_.skipped().unknown, 1U);
  EXPECT_THAT(records_, IsEmpty());
}

TEST_F(CuptiParser, StreamsOfTwoContextsWithTheSameNumberStayApart) {
  KernelRecord other = testing::kernel(4, 1, 2);
  other.context = 2;
  read(testing::kernel(3, 1, 2));
  read(other);
  read(testing::kernel(5, 3, 4));
  const auto kernels = of_kind(records_, TimelineKind::kKernel);
  ASSERT_THAT(kernels, SizeIs(3));
  EXPECT_NE(kernels[0].stream, kernels[1].stream);
  EXPECT_EQ(kernels[0].stream, kernels[2].stream);
  const auto streams = of_kind(records_, TimelineKind::kStream);
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(name(streams[1]), "stream 7 of context 2");
}

TEST_F(CuptiParser, ManyKernelsOfOneCorrelationIdAllBelongToTheBatchThatLaunchedTheGraph) {
  read(testing::external(8, make_external(41, 6)));
  read(testing::call(Kind::kRuntime, 8));
  for (std::uint64_t i = 0; i < 100; ++i) read(testing::kernel(8, 1000 + i * 10, 1005 + i * 10));
  join();
  const auto kernels = of_kind(records_, TimelineKind::kKernel);
  ASSERT_THAT(kernels, SizeIs(100));
  for (const TimelineRecord& kernel : kernels) {
    EXPECT_EQ(kernel.batch, 41U);
    EXPECT_EQ(kernel.site, 6U);
  }
}

TEST_F(CuptiParser, AKernelThatComesBeforeItsCallIsJoinedAllTheSame) {
  read(testing::kernel(8, 1000, 1500));
  read(testing::external(8, make_external(41, 6)));
  join();
  EXPECT_EQ(only(TimelineKind::kKernel).batch, 41U);
}

TEST_F(CuptiParser, AKernelThatComesRoundsAfterItsCallIsJoinedAllTheSame) {
  read(testing::external(8, make_external(41, 6)));
  read(testing::call(Kind::kRuntime, 8));
  join();
  records_.clear();
  read(testing::kernel(8, 1000, 1500));
  join();
  EXPECT_EQ(only(TimelineKind::kKernel).batch, 41U);
}

TEST_F(CuptiParser, WithoutACallRecordAKernelBelongsToNoBatch) {
  read(testing::kernel(8, 1000, 1500));
  join();
  EXPECT_EQ(only(TimelineKind::kKernel).batch, 0U);
}

TEST_F(CuptiParser, ExternalIdsOfAnotherProfilerAreNotOurs) {
  ExternalRecord theirs = testing::external(8, make_external(41, 6));
  theirs.external_kind = kExternalCustom0 + 1;
  read(theirs);
  read(testing::kernel(8, 1000, 1500));
  join();
  EXPECT_EQ(only(TimelineKind::kKernel).batch, 0U);
}

TEST_F(CuptiParser, WhatIsRememberedOfCallsIsBounded) {
  read(testing::external(1, make_external(41, 6)));
  for (std::uint32_t i = 2; i < 70000; ++i) read(testing::external(i, make_external(42, 6)));
  read(testing::kernel(1, 1, 2));
  read(testing::kernel(69999, 1, 2));
  join();
  const auto kernels = of_kind(records_, TimelineKind::kKernel);
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].batch, 0U) << "the oldest was forgotten";
  EXPECT_EQ(kernels[1].batch, 42U);
}

TEST_F(CuptiParser, TheDriversPartOfACallOfTheRuntimeIsNotASecondCall) {
  read(testing::call(Kind::kDriver, 8));  // it ends first
  read(testing::call(Kind::kRuntime, 8));
  read(testing::call(Kind::kDriver, 9));  // the program's own
  join();
  std::vector<std::string> names;
  for (const TimelineRecord& record : of_kind(records_, TimelineKind::kCall)) {
    names.push_back(name(record));
    EXPECT_EQ(record.thread, 4321U);
    EXPECT_EQ(record.detail, 0U);
  }
  EXPECT_THAT(names, ElementsAre("cudaLaunchKernel_v7000", "cuLaunchKernel"));
}

TEST_F(CuptiParser, AFunctionThatNobodyKnowsIsACall) {
  CallRecord record = testing::call(Kind::kRuntime, 8);
  record.function = 0;
  read(record);
  EXPECT_EQ(name(only(TimelineKind::kCall)), "call");
}

TEST_F(CuptiParser, AWaitIsOnTheThreadOfItsCall) {
  read(testing::call(Kind::kRuntime, 8));
  read(testing::kernel(7, 1, 2));
  SyncRecord sync{};
  sync.kind = Kind::kSynchronization;
  sync.type = 3;
  sync.start = 11;
  sync.end = 19;
  sync.correlation = 8;
  sync.context = 1;
  sync.stream = 7;
  read(sync, 56);
  sync.type = 4;
  sync.stream = kNoStream;
  read(sync, 40);
  join();
  const auto waits = of_kind(records_, TimelineKind::kSync);
  ASSERT_THAT(waits, SizeIs(2));
  EXPECT_EQ(waits[0].thread, 4321U);
  EXPECT_EQ(waits[0].stream, 7U);
  EXPECT_EQ(name(waits[0]), "wait for a stream");
  EXPECT_EQ(waits[1].stream, 0U) << "all streams";
  EXPECT_EQ(name(waits[1]), "wait for the device");
}

TEST_F(CuptiParser, AWaitBeforeTheFirstKernelOfAStreamIsOfThatStreamAndOfNoOtherContexts) {
  read(testing::kernel(3, 1000, 1500));
  SyncRecord sync{};
  sync.kind = Kind::kSynchronization;
  sync.type = 3;
  sync.start = 10;
  sync.end = 20;
  sync.context = 2;
  sync.stream = 7;
  read(sync);
  KernelRecord other = testing::kernel(4, 2000, 2500);
  other.context = 2;
  read(other);
  const auto kernels = of_kind(records_, TimelineKind::kKernel);
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_NE(kernels[0].stream, kernels[1].stream);
  EXPECT_EQ(only(TimelineKind::kSync).stream, kernels[1].stream);
}

}  // namespace
}  // namespace weir::timeline::cupti
