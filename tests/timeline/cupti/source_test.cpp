// The source over both stand-ins of CUPTI. One long file, because every case runs through the same
// set-up, once for each generation.

#include "tools/timeline/cupti/source.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "timeline/cupti/records.hpp"
#include "timeline/cupti/standin_cupti.hpp"
#include "tools/timeline/cupti/buffers.hpp"
#include "tools/timeline/cupti/parser.hpp"

namespace weir::timeline {
namespace {

using cupti::Kind;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::environment_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::of_kind;
using ::testing::SizeIs;
using testing::StandinCupti;
using Generation = StandinCupti::Generation;

StandinCupti& open_standin(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays open, as for the source
  if (library == nullptr) throw std::runtime_error(dlerror());
  void* const address = dlsym(library, "weir_standin_cupti");
  StandinCupti* (*get)() = nullptr;
  std::memcpy(&get, &address, sizeof get);
  return *get();
}

std::uint64_t monotonic() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

const char* path_of(Generation generation) {
  return generation == Generation::kNewer ? WEIR_STANDIN_NEWER : WEIR_STANDIN_OLDER;
}

/// A source over a stand-in, which at the end was used well and given back.
class OverStandin {
 public:
  explicit OverStandin(const char* path)
      : cupti(open_standin(path)),
        source(make_cupti_source(environment_of({{"WEIR_CUPTI", path}}))) {
    cupti.reset();
  }
  OverStandin(const OverStandin&) = delete;
  OverStandin& operator=(const OverStandin&) = delete;
  ~OverStandin() {
    source.reset();
    EXPECT_FALSE(cupti.seen().held) << "CUPTI was not given back";
    EXPECT_THAT(cupti.seen().misuse, IsEmpty());
    EXPECT_THAT(cupti.seen().called, Not(Contains("cuptiFinalize")));
  }

  void collect(ActivitySource::Collect what = ActivitySource::Collect::kReady) {
    source->collect(what, sink, records);
  }
  void collect_all() { collect(ActivitySource::Collect::kAll); }
  [[nodiscard]] bool emit_kernel(std::uint32_t correlation) {
    return cupti.emit(bytes_of(testing::kernel(correlation, 1000, 1500), testing::kKernelBytes));
  }
  [[nodiscard]] std::vector<TimelineRecord> kernels() const {
    return of_kind(records, TimelineKind::kKernel);
  }
  [[nodiscard]] std::vector<std::string> texts(TimelineKind kind) const {
    std::vector<std::string> found;
    for (const TimelineRecord& record : of_kind(records, kind)) {
      found.push_back(sink.text(record.name));
    }
    return found;
  }

  StandinCupti& cupti;
  testing::NamingSink sink;
  std::vector<TimelineRecord> records;
  std::unique_ptr<ActivitySource> source;
};

class CuptiSource : public ::testing::TestWithParam<Generation>, protected OverStandin {
 protected:
  CuptiSource() : OverStandin(path_of(GetParam())) {}
};
INSTANTIATE_TEST_SUITE_P(Generations, CuptiSource,
                         ::testing::Values(Generation::kOlder, Generation::kNewer),
                         [](const auto& generation) {
                           return generation.param == Generation::kNewer ? "Newer" : "Older";
                         });

TEST_P(CuptiSource, NothingIsOpenedBeforeItIsAskedFor) {
  collect();
  source->stop();
  EXPECT_THAT(cupti.seen().called, IsEmpty());
  EXPECT_THAT(records, IsEmpty());
}

TEST_P(CuptiSource, KernelsOfTheDeviceAreCollected) {
  ASSERT_EQ(source->start(), "");
  EXPECT_EQ(cupti.seen().generation, GetParam());
  EXPECT_TRUE(emit_kernel(3));
  collect();
  ASSERT_THAT(kernels(), SizeIs(1));
  EXPECT_EQ(kernels()[0].begin, 1000U);
  EXPECT_EQ(source->lost(), 0U);
}

TEST_P(CuptiSource, EveryKindThatIsOfUseIsEnabledAndKernelsNeverSerialised) {
  ASSERT_EQ(source->start(), "");
  EXPECT_THAT(cupti.seen().enabled,
              ::testing::UnorderedElementsAre(
                  Kind::kConcurrentKernel, Kind::kMemcpy, Kind::kMemcpyPeer, Kind::kMemset,
                  Kind::kSynchronization, Kind::kMemory, Kind::kMemoryPool, Kind::kOverhead,
                  Kind::kExternalCorrelation));
  EXPECT_GT(cupti.seen().enabled_calls, 50U) << "functions of CUDA, chosen one by one";
  source->stop();
  EXPECT_THAT(cupti.seen().enabled, IsEmpty());
  EXPECT_EQ(cupti.seen().enabled_calls, 0U);
}

TEST_P(CuptiSource, TimesComeFromTheMonotonicClock) {
  ASSERT_EQ(source->start(), "");
  const std::uint64_t before = monotonic();
  const std::uint64_t said = cupti.seen().timestamp;
  EXPECT_GE(said, before);
  EXPECT_LE(said, monotonic());
}

TEST_P(CuptiSource, WithoutATimestampCallbackTimesAreMovedFromTheRealtimeClock) {
  cupti.answer(GetParam() == Generation::kNewer ? "cuptiActivitySetAttribute_v2"
                                                : "cuptiActivityRegisterTimestampCallback",
               1);
  ASSERT_EQ(source->start(), "");
  const auto realtime =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  const std::uint64_t before = monotonic();
  ASSERT_TRUE(cupti.emit(bytes_of(testing::kernel(3, realtime, realtime + 5))));
  collect();
  ASSERT_THAT(kernels(), SizeIs(1));
  constexpr std::uint64_t kSecond = 1000000000;
  EXPECT_NEAR(static_cast<double>(kernels()[0].begin), static_cast<double>(before), kSecond);
  EXPECT_EQ(kernels()[0].end - kernels()[0].begin, 5U);
}

TEST_P(CuptiSource, CollectingForcesAFlushOnlyForAll) {
  ASSERT_EQ(source->start(), "");
  collect();
  collect_all();
  EXPECT_THAT(cupti.seen().flushes, ElementsAre(0U, cupti::kFlushForced));
}

TEST_P(CuptiSource, RecordsOfManyBuffersComeWholeAndInOrder) {
  ASSERT_EQ(source->start(), "");
  constexpr std::uint32_t kMany = 10000;  // some four buffers
  for (std::uint32_t i = 1; i <= kMany; ++i) ASSERT_TRUE(emit_kernel(i));
  collect();
  const std::vector<TimelineRecord> all = kernels();
  ASSERT_EQ(all.size(), kMany);
  for (std::uint32_t i = 1; i <= kMany; ++i) ASSERT_EQ(all[i - 1].id, i);
}

TEST_P(CuptiSource, RecordsOfSeveralSizesInOneBufferAreEachReadByTheirOwn) {
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(cupti.emit(bytes_of(testing::kernel(1, 10, 20), testing::kKernelBytes + 32)));
  ASSERT_TRUE(cupti.emit(bytes_of(testing::copy(1, 77), testing::kCopyBytes + 16)));
  ASSERT_TRUE(cupti.emit(bytes_of(testing::kernel(2, 30, 40), testing::kKernelBytes)));
  collect();
  ASSERT_THAT(kernels(), SizeIs(2));
  EXPECT_EQ(kernels()[1].begin, 30U);
  EXPECT_THAT(of_kind(records, TimelineKind::kCopy), SizeIs(1));
}

TEST_P(CuptiSource, DroppedRecordsAreCountedAndSaidWhere) {
  ASSERT_EQ(source->start(), "");
  std::uint32_t kept = 0;
  while (emit_kernel(kept + 1)) ++kept;  // until every buffer is full
  EXPECT_FALSE(emit_kernel(1));
  collect();
  EXPECT_EQ(kernels().size(), kept);
  EXPECT_EQ(source->lost(), 2U);
  const auto said = Contains("2 records of CUPTI are lost: there was no room for them");
  EXPECT_THAT(texts(TimelineKind::kNote), said);
  EXPECT_TRUE(emit_kernel(1)) << "there is room again";
  collect();
  EXPECT_EQ(source->lost(), 2U);
  EXPECT_THAT(texts(TimelineKind::kNote), said.Times(1)) << "said once";
}

TEST_P(CuptiSource, ImpossibleTimesAreCountedAsLostAndUnknownKindsAreNoted) {
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(cupti.emit(bytes_of(testing::kernel(1, 20, 10))));
  ASSERT_TRUE(cupti.emit(bytes_of(testing::kernel(1, 0, 0))));
  cupti::KernelRecord unknown = testing::kernel(1, 10, 20);
  unknown.kind = Kind{777};
  ASSERT_TRUE(cupti.emit(bytes_of(unknown)));
  collect();
  EXPECT_EQ(source->lost(), 2U);
  EXPECT_THAT(texts(TimelineKind::kNote),
              AllOf(Contains("1 records of CUPTI are lost: they end before they begin"),
                    Contains("1 records of CUPTI are lost: CUPTI had no room for their times"),
                    Contains("1 records of CUPTI are skipped: their kind is not known")));
}

TEST_P(CuptiSource, WhatCuptiTakesOfTheDeviceIsNoted) {
  ASSERT_EQ(source->start(), "");
  collect();
  EXPECT_THAT(texts(TimelineKind::kNote), Contains(HasSubstr("9.16 MiB of device memory")));
}

TEST_P(CuptiSource, WhatTheThreadStartsBelongsToTheBatchThatItNamed) {
  push_external(1, 1);  // before a recording: nothing happens
  ASSERT_EQ(source->start(), "");
  push_external(41, 6);
  push_external(42, 7);
  ASSERT_THAT(cupti.seen().external,
              ElementsAre(cupti::make_external(41, 6), cupti::make_external(42, 7)));
  const std::uint64_t id = cupti.seen().external.back();
  pop_external();
  pop_external();
  EXPECT_THAT(cupti.seen().external, IsEmpty());
  ASSERT_TRUE(cupti.emit(bytes_of(testing::external(8, id))));
  ASSERT_TRUE(emit_kernel(8));
  collect();
  ASSERT_THAT(kernels(), SizeIs(1));
  EXPECT_EQ(kernels()[0].batch, 42U);
  EXPECT_EQ(kernels()[0].site, 7U);
  source->stop();
  push_external(1, 1);  // after it: the same
  EXPECT_THAT(cupti.seen().external, IsEmpty());
}

TEST_P(CuptiSource, WhatAThreadNamedBeforeARecordingEndedIsNotLeftToTheNext) {
  ASSERT_EQ(source->start(), "");
  push_external(41, 6);
  push_external(42, 7);
  source->stop();
  pop_external();
  collect_all();
  pop_external();
  ASSERT_EQ(source->start(), "");
  EXPECT_THAT(cupti.seen().external, IsEmpty());
  push_external(43, 8);
  EXPECT_THAT(cupti.seen().external, ElementsAre(cupti::make_external(43, 8)));
  pop_external();
  pop_external();  // one too many takes nobody else's
  EXPECT_THAT(cupti.seen().external, IsEmpty());
}

TEST_P(CuptiSource, RecordsDeliveredAfterStopAreCollectedAtTheEnd) {
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(emit_kernel(3));
  source->stop();
  cupti.deliver();
  collect_all();
  EXPECT_THAT(kernels(), SizeIs(1));
  EXPECT_FALSE(cupti.seen().held) << "another profiler can have it now";
}

TEST_P(CuptiSource, ItIsGivenBackAlsoWhereEverythingIsCollectedBeforeStop) {
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(emit_kernel(3));
  collect_all();
  source->stop();
  EXPECT_THAT(kernels(), SizeIs(1));
  EXPECT_FALSE(cupti.seen().held);
}

TEST_P(CuptiSource, BuffersThatComeAfterTheEndHarmNobody) {
  ASSERT_EQ(source->start(), "");
  source->stop();
  collect_all();
  EXPECT_TRUE(emit_kernel(3));
  cupti.deliver();
  collect_all();
  EXPECT_THAT(kernels(), IsEmpty());
  ASSERT_EQ(source->start(), "");
  EXPECT_TRUE(emit_kernel(4));
  collect();
  EXPECT_THAT(kernels(), SizeIs(1));
  EXPECT_GE(source->lost(), 1U);
}

TEST_P(CuptiSource, AnEmptyBufferThatComesAfterTheEndIsNoLoss) {
  ASSERT_EQ(source->start(), "");
  source->stop();
  collect_all();
  EXPECT_TRUE(cupti.emit({}));
  cupti.deliver();
  ASSERT_EQ(source->start(), "");
  collect();
  EXPECT_EQ(source->lost(), 0U);
  EXPECT_THAT(texts(TimelineKind::kNote), Not(Contains(HasSubstr("lost"))));
}

TEST_P(CuptiSource, ACorrelationIdThatCountsAnewHasNoBatchOfTheRecordingBefore) {
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(cupti.emit(bytes_of(testing::external(8, cupti::make_external(42, 7)))));
  ASSERT_TRUE(emit_kernel(8));
  source->stop();
  collect_all();
  ASSERT_EQ(source->start(), "");
  ASSERT_TRUE(emit_kernel(8));
  collect();
  ASSERT_THAT(kernels(), SizeIs(2));
  EXPECT_EQ(kernels()[0].batch, 42U);
  EXPECT_EQ(kernels()[1].batch, 0U);
}

TEST_P(CuptiSource, ItStartsAndStopsAnyNumberOfTimes) {
  for (std::uint32_t window = 0; window < 5; ++window) {
    ASSERT_EQ(source->start(), "");
    ASSERT_EQ(source->start(), "") << "the second says nothing";
    ASSERT_TRUE(emit_kernel(window + 1));
    collect();
    source->stop();
    source->stop();
    if (window % 2 == 0) collect_all();
  }
  EXPECT_THAT(kernels(), SizeIs(5));
}

TEST_P(CuptiSource, OnlyOneRecordingOfAProcessHoldsCupti) {
  ASSERT_EQ(source->start(), "");
  const auto second = make_cupti_source(environment_of({{"WEIR_CUPTI", path_of(GetParam())}}));
  EXPECT_THAT(second->start(), HasSubstr("another recording of this process holds CUPTI"));
  source->stop();
  collect_all();
  EXPECT_EQ(second->start(), "");
}

TEST_P(CuptiSource, AnotherSubscriberIsNamed) {
  cupti.hold("Nsight Systems");
  const std::string line = source->start();
  EXPECT_THAT(line, HasSubstr("CUPTI is in use by "));
  EXPECT_THAT(line, HasSubstr(GetParam() == Generation::kNewer
                                  ? "Nsight Systems"
                                  : "another profiler (nsys, ncu, torch.profiler)"));
  collect();
  EXPECT_THAT(records, IsEmpty());
  cupti.hold("");
  EXPECT_EQ(source->start(), "") << "it went away";
}

TEST_P(CuptiSource, KindsThatCannotBeEnabledAreNamedInANote) {
  ASSERT_EQ(source->start(), "");
  source->stop();
  collect_all();
  records.clear();
  const bool newer = GetParam() == Generation::kNewer;
  // Kernels stay: the stand-in fails one kind, not the function.
  cupti.answer((newer ? "cuptiActivityEnable_v2:" : "cuptiActivityEnable:") +
                   std::to_string(static_cast<std::uint32_t>(Kind::kMemoryPool)),
               21);
  ASSERT_EQ(source->start(), "");
  collect();
  EXPECT_THAT(texts(TimelineKind::kNote),
              Contains("CUPTI gives no records of MEMORY_POOL: CUPTI_ERROR (21)"));
}

TEST_P(CuptiSource, WhereFunctionsCannotBeChosenAllOfTheRuntimeAreRecorded) {
  const std::string suffix = GetParam() == Generation::kNewer ? "_v2" : "";
  cupti.answer("cuptiActivityEnableRuntimeApi" + suffix, 1);
  cupti.answer("cuptiActivityEnableDriverApi" + suffix, 1);
  ASSERT_EQ(source->start(), "");
  EXPECT_THAT(cupti.seen().enabled, Contains(Kind::kRuntime));
  EXPECT_THAT(cupti.seen().enabled, Not(Contains(Kind::kDriver)));
}

TEST_P(CuptiSource, BuffersThatAnotherThreadDeliversDuringStopAreKeptOrDropped) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(source->start(), "");
    std::atomic<bool> end{false};
    std::thread device([this, &end] {
      for (std::uint32_t i = 1; !end; ++i) {
        static_cast<void>(emit_kernel(i));
        if (i % 50 == 0) cupti.deliver();
      }
    });
    while (kernels().size() < 100) collect();
    source->stop();
    collect_all();
    end = true;
    device.join();
    cupti.deliver();
    records.clear();
  }
}

TEST_P(CuptiSource, ThreadsNameTheirBatchesWhileARecordingEnds) {
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&end] {
      while (!end) {
        push_external(1, 2);
        pop_external();
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(source->start(), "");
    collect();
    source->stop();
    collect_all();
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
}

/// A function of CUPTI fails: one line says so if no recording works without it.
void expect_one_line_or_none(Generation generation, const std::string& function, bool needed) {
  SCOPED_TRACE(function);
  OverStandin over(path_of(generation));
  over.cupti.answer(function, cupti::kUnknownError);
  const std::string line = over.source->start();
  EXPECT_EQ(!line.empty(), needed) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_EQ(line.find("(999)") != std::string::npos, needed) << line;
  push_external(1, 2);
  static_cast<void>(over.emit_kernel(1));
  over.collect();
  pop_external();
  over.source->stop();
  over.collect_all();
}

TEST(CuptiSourceOfEach, FunctionThatFailsCostsALineOrNothing) {
  for (const auto generation : {Generation::kOlder, Generation::kNewer}) {
    const std::string suffix = generation == Generation::kNewer ? "_v2" : "";
    for (const char* needed : {"cuptiActivityRegisterCallbacks", "cuptiActivityEnable"}) {
      expect_one_line_or_none(generation, needed + suffix, true);
    }
    for (const char* function :
         {"cuptiActivityGetAttribute", "cuptiActivitySetAttribute", "cuptiActivityDisable",
          "cuptiActivityEnableDriverApi", "cuptiActivityEnableRuntimeApi",
          "cuptiActivityGetNextRecord", "cuptiActivityGetNumDroppedRecords",
          "cuptiActivityPushExternalCorrelationId", "cuptiActivityPopExternalCorrelationId"}) {
      expect_one_line_or_none(generation, function + suffix, false);
    }
    for (const char* function :
         {"cuptiGetResultString", "cuptiGetCallbackName", "cuptiActivityFlushAll"}) {
      expect_one_line_or_none(generation, function, false);
    }
  }
  expect_one_line_or_none(Generation::kOlder, "cuptiSubscribe", true);
  for (const char* function : {"cuptiSetThreadIdType", "cuptiActivityEnableAllocationSource",
                               "cuptiActivityRegisterTimestampCallback"}) {
    expect_one_line_or_none(Generation::kOlder, function, false);
  }
}

TEST(CuptiSourceNewer, WhereSeveralSubscribersAreRefusedTheOlderGenerationIsUsedAlone) {
  OverStandin over(WEIR_STANDIN_NEWER);
  over.cupti.answer("cuptiSubscribe_v2(multiple)", 1);
  ASSERT_EQ(over.source->start(), "");
  EXPECT_EQ(over.cupti.seen().generation, Generation::kOlder);
  ASSERT_TRUE(over.emit_kernel(1));
  over.collect_all();
  EXPECT_THAT(over.kernels(), SizeIs(1));
}

TEST(CuptiSourceNewer, TheGenerationOfTheFirstRecordingIsThatOfTheOthers) {
  for (const Generation first : {Generation::kOlder, Generation::kNewer}) {
    const cupti::Result refused = 1;
    const bool older = first == Generation::kOlder;
    OverStandin over(WEIR_STANDIN_NEWER);
    const auto expect_start = [&](cupti::Result multiple, bool works) {
      over.cupti.answer("cuptiSubscribe_v2(multiple)", multiple);
      EXPECT_EQ(over.source->start().empty(), works);
      EXPECT_EQ(over.cupti.seen().generation, first);
      over.source->stop();
      over.collect_all();
    };
    expect_start(older ? refused : 0, true);
    expect_start(older ? 0 : refused, older);  // the other one must not be used
  }
}

TEST(CuptiSourceNewer, WithNoDriverBothGenerationsAreTriedAndOneLineSaysSo) {
  OverStandin over(WEIR_STANDIN_NEWER);
  over.cupti.answer("cuptiSubscribe_v2(multiple)", cupti::kUnknownError);
  over.cupti.answer("cuptiSubscribe_v2", cupti::kUnknownError);
  EXPECT_EQ(over.source->start(),
            "kernels and copies are not recorded: CUPTI says CUPTI_ERROR_UNKNOWN (999); is there a "
            "driver, and a GPU?");
}

// Without a driver every call of CUDA 13.2's ends the program: it overflows the stack at once.
TEST(CuptiSourceBetween, WithoutADriverItIsAskedNothingAndOneLineSaysSo) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "left out: there is a driver";
  OverStandin over(WEIR_STANDIN_BETWEEN);
  for (int times = 0; times < 2; ++times) {
    const std::string line = over.source->start();
    EXPECT_THAT(line, AllOf(HasSubstr(WEIR_STANDIN_BETWEEN), HasSubstr("driver")));
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
  EXPECT_THAT(over.cupti.seen().called, IsEmpty());
}

TEST(CuptiSourceNone, AMissingLibraryIsOneLine) {
  const auto source = make_cupti_source(environment_of({{"WEIR_CUPTI", "/no/such/libcupti.so"}}));
  EXPECT_THAT(source->start(), HasSubstr("/no/such/libcupti.so"));
  EXPECT_THAT(source->start(), HasSubstr("/no/such/libcupti.so")) << "and again";
}

}  // namespace
}  // namespace weir::timeline
