// Malformed files, and those of other programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "../../replay/gzip.hpp"
#include "allocator/base/error.hpp"
#include "files.hpp"
#include "random_process.hpp"
#include "support/message_of.hpp"
#include "support/random_seed.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::gzip_of;
using weir::testing::message_of;

constexpr std::string_view kBegin =
    R"({"ph":"M","name":"weir_timeline","pid":1,"args":{"version":1,"pid":1}})";

std::string with(std::string_view event) {
  return "[" + std::string(kBegin) + "," + std::string(event) + "]";
}

std::string refusal_of(std::string_view bytes, const ReadLimits& limits = {}) {
  std::string message = message_of<UsageError>([&] { (void)from_chrome(bytes, limits); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, ::testing::StartsWith("/proc/self/fd/"));
  return message;
}

/// The result for a file of one bad event: only a note that it was skipped.
void expect_dropped(std::string_view event) {
  SCOPED_TRACE(event);
  const Process process = from_chrome(with(event)).processes.at(0);
  ASSERT_EQ(process.records.size(), 1U);
  EXPECT_EQ(process.records[0].kind, TimelineKind::kNote);
  EXPECT_EQ(process.name(process.records[0].name), "1 malformed events of the file were skipped");
}

TEST(ChromeReader, ABadEventIsLeftOutAndCounted) {
  const auto event = [](std::string_view rest) {
    return R"({"ph":"X","cat":"barrier","name":"n","pid":1,"tid":1)" + std::string(rest) + "}";
  };
  const Process good = from_chrome(with(event(R"(,"ts":1.5,"dur":2)"))).processes.at(0);
  ASSERT_EQ(good.records.size(), 1U);
  EXPECT_EQ(good.records[0].end, 3500U);
  expect_dropped(event(""));
  expect_dropped(event(R"(,"ts":"1","dur":1)"));
  expect_dropped(event(R"(,"ts":-1,"dur":1)"));
  expect_dropped(event(R"(,"ts":1,"dur":-1)"));
  expect_dropped(event(R"(,"ts":1e300,"dur":1)"));
  expect_dropped(event(R"(,"ts":99999999999999999999999,"dur":1)"));
  expect_dropped(event(R"(,"ts":18446744073709551,"dur":18446744073709551)"));
  expect_dropped(event(R"(,"ts":1,"dur":1,"args":{"batch":4294967296})"));
  expect_dropped(event(R"(,"ts":1,"dur":1,"args":{"batch":1.5})"));
  expect_dropped(event(R"(,"ts":1,"dur":1,"args":{"detail":256})"));
  expect_dropped(event(R"(,"ts":1,"dur":1,"args":{"bytes":[1,2]})"));
  expect_dropped(event(R"(,"ts":1,"dur":1,"args":{"bytes":null})"));
  expect_dropped(R"({"ph":"X","cat":"no kind","name":"n","pid":1,"tid":1,"ts":1,"dur":1})");
  expect_dropped(R"({"ph":"X","cat":"barrier","name":"n","pid":2,"tid":1,"ts":1,"dur":1})");
  expect_dropped(R"({"ph":7})");
  expect_dropped(R"({"ph":"M","name":"thread_name","pid":1,"tid":"x","args":{}})");
  expect_dropped(kBegin);
}

TEST(ChromeReader, NestedArgumentsAreNotTheEvents) {
  const Process process =
      from_chrome(with(R"({"ph":"X","cat":"barrier","name":"n","pid":1,"tid":1,"ts":1,"dur":1,)"
                       R"("more":{"ts":9},"args":{"in":{"batch":7},"batch":3}})"))
          .processes.at(0);
  ASSERT_EQ(process.records.size(), 1U);
  EXPECT_EQ(process.records[0].begin, 1000U);
  EXPECT_EQ(process.records[0].batch, 3U);
}

TEST(ChromeReader, WhatIsNoTimelineIsRefusedInOneLine) {
  EXPECT_THAT(refusal_of("[]"), HasSubstr("not a timeline: it has no events"));
  EXPECT_THAT(refusal_of("[1,2,{"), HasSubstr("not a timeline: it has no events"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("it has no events"));
  EXPECT_THAT(refusal_of(with("nan")), HasSubstr("not a timeline: at byte"));
  EXPECT_THAT(refusal_of(std::string("[\0", 2) + std::string(8, 'x')), HasSubstr("at byte"));
  EXPECT_THAT(refusal_of(with("{}") + "junk"), HasSubstr("at byte"));
  EXPECT_THAT(refusal_of(R"([{"ph":"X","cat":"cpu_op","ts":1,"dur":1,"pid":1,"tid":1}])"),
              HasSubstr("of its 1 events none is of memory or of a device"));
  EXPECT_THAT(refusal_of(R"([{"ph":"M","name":"weir_timeline","pid":1,"args":{"version":2}}])"),
              HasSubstr("is of version 2; this program reads version 1"));
}

TEST(ChromeReader, AFileThatClaimsTooMuchEndsInOneLine) {
  std::string deep = "[" + std::string(kBegin) + R"(,{"a":)" + std::string(1'000'000, '[');
  EXPECT_THAT(refusal_of(deep), HasSubstr("more than 64 objects are nested"));
  EXPECT_THAT(refusal_of(with("\"" + std::string(5'000'000, 'x') + "\"")),
              HasSubstr("a text longer than 1 MiB"));
  EXPECT_THAT(refusal_of(with("\"" + std::string(1'100'000, 'x') + "\"")),
              HasSubstr("a text longer than 1 MiB"));
  EXPECT_THAT(refusal_of("[" + std::string(5'000'000, '\n')), HasSubstr("longer than 1 MiB"));
  std::mt19937_64 random(1);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 200}));
  timeline.processes.push_back(random_process(random, {.records = 200}));
  const std::string bytes = to_chrome(timeline);
  EXPECT_THAT(refusal_of(bytes, {.max_records = 300}), HasSubstr("too many events"));
  EXPECT_THAT(refusal_of(bytes, {.max_processes = 1}), HasSubstr("too many processes"));
  EXPECT_THAT(refusal_of(bytes, {.max_names = 3}), HasSubstr("too many names"));
  EXPECT_THAT(refusal_of(bytes, {.max_name_bytes = 100}), HasSubstr("too many names"));
  EXPECT_THAT(refusal_of(gzip_of(std::string(3'000'000, '\n')), {.max_bytes = 1'000'000}),
              HasSubstr("is larger than"));
}

TEST(ChromeReader, AGzipIsReadAndACutOneIsWhatThereIsOfIt) {
  std::mt19937_64 random(weir::testing::random_seed());
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 2000}));
  timeline.processes.back().complete = true;
  const std::string packed = gzip_of(to_chrome(timeline));
  EXPECT_EQ(from_chrome(packed).processes.at(0).records.size(), 2000U);
  const Process half = from_chrome(packed.substr(0, packed.size() / 2)).processes.at(0);
  EXPECT_FALSE(half.complete);
  EXPECT_GT(half.records.size(), 100U);
  EXPECT_LT(half.records.size(), 2000U);
  std::string broken = packed;
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 50; ++i) broken[i] ^= '\x5a';
  try {  // where zlib cannot tell at once, its output is no JSON
    EXPECT_LT(from_chrome(broken).processes.at(0).records.size(), 2000U);
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("the gzip is broken"), HasSubstr("byte")));
  }
}

constexpr std::string_view kPyTorch = R"trace({
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU"}],
  "baseTimeNanoseconds": 1700000000000000000,
  "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 10.000, "dur": 9.0},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
     "ts": 12.000, "dur": 1.500, "args": {"correlation": 5}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.125, "dur": 3,
     "args": {"device": 0, "stream": 7, "correlation": 5, "grid": [1, 2, 3]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 8,
     "ts": 30, "dur": 2, "args": {"device": 0, "stream": 8, "correlation": 6, "bytes": 4096}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 9,
     "ts": 11, "args": {"Total Allocated": 512, "Total Reserved": 2048, "Bytes": 512,
     "Addr": 140000000000000, "Device Id": 0, "Device Type": 1}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 9,
     "ts": 40, "args": {"Total Allocated": 0, "Total Reserved": 2048, "Bytes": -512,
     "Addr": 140000000000000, "Device Id": 0, "Device Type": 1}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 9, "tid": 9,
     "ts": 41, "args": {"Bytes": 8, "Addr": 5, "Device Id": -1, "Device Type": 0}}
  ], "traceName": "x"})trace";

TEST(ChromeReader, TakesDeviceAndMemoryOfThePyTorchProfilersTrace) {
  const Process process = from_chrome(kPyTorch).processes.at(0);
  EXPECT_TRUE(process.complete);
  EXPECT_EQ(process.info.unix_ns, 1700000000000011000U) << "from the first that was taken";
  std::map<TimelineKind, TimelineRecord> by_kind;
  for (const TimelineRecord& record : process.records) by_kind[record.kind] = record;
  const TimelineRecord& kernel = by_kind.at(TimelineKind::kKernel);
  EXPECT_EQ(process.name(kernel.name), "gemm");
  EXPECT_EQ(kernel.begin, 9125U);
  EXPECT_EQ(kernel.end, 12125U);
  EXPECT_EQ(kernel.stream, 7U);
  EXPECT_EQ(kernel.device, 1U);
  EXPECT_EQ(kernel.id, by_kind.at(TimelineKind::kCall).id);
  const TimelineRecord& copy = by_kind.at(TimelineKind::kCopy);
  EXPECT_EQ(copy.detail, static_cast<std::uint8_t>(TimelineCopy::kToDevice));
  EXPECT_EQ(copy.bytes, 4096U);
  const TimelineRecord& allocate = by_kind.at(TimelineKind::kAllocate);
  EXPECT_EQ(allocate.allocated, 512U);
  EXPECT_EQ(allocate.cached, 1536U);
  const TimelineRecord& free = by_kind.at(TimelineKind::kFree);
  EXPECT_EQ(free.bytes, 512U);
  EXPECT_GT(free.sequence, allocate.sequence);
  EXPECT_EQ(process.name(by_kind.at(TimelineKind::kNote).name),
            "events left out: 2 of other kinds");
}

std::string device_event(std::string_view category, std::string_view times) {
  return R"({"ph": "X", "name": "n", "pid": 1, "tid": "stream 7", "cat": ")" +
         std::string(category) + R"(", )" + std::string(times) +
         R"(, "args": {"device": 0, "stream": 7}})";
}

// The PyTorch profiler writes a time of 0 for one that it does not know. Counted from 0, the trace
// would last for decades.
TEST(ChromeReader, AnotherProgramsEventWithoutATimeIsLeftOutAndCounted) {
  const std::string good = device_event("kernel", R"("ts": 1700000000000000, "dur": 10)");
  for (const char* const times :
       {R"("ts": 0, "dur": 0)", R"("ts": 0)", R"("dur": 5)", R"("ts": 1700000000000000, "dur": -1)",
        R"("ts": 18446744073709551, "dur": 18446744073709551)"}) {
    SCOPED_TRACE(times);
    const Process process =
        from_chrome("[" + device_event("kernel", times) + "," + good + "]").processes.at(0);
    ASSERT_EQ(process.records.size(), 2U);
    const auto is_note = [](const TimelineRecord& one) { return one.kind == TimelineKind::kNote; };
    const auto note = std::ranges::find_if(process.records, is_note);
    ASSERT_NE(note, process.records.end());
    EXPECT_EQ(process.name(note->name), "events left out: 1 without a valid time");
    EXPECT_EQ(std::ranges::find_if_not(process.records, is_note)->end, 10'000U);
  }
  const Process whole = from_chrome("[" + good + "]").processes.at(0);
  EXPECT_EQ(whole.records.size(), 1U) << "no note where nothing was left out";
  const Process at_zero =
      from_chrome("[" + device_event("kernel", R"("ts": 0, "dur": 3)") + "]").processes.at(0);
  EXPECT_EQ(at_zero.records.at(0).end, 3000U) << "a time of 0 with a duration is a time";
}

TEST(ChromeReader, TakesTheCategoriesOfOlderPyTorchProfilers) {
  const std::string times = R"("ts": 10, "dur": 2)";
  std::string trace;
  for (const char* const category : {"Runtime", "Kernel", "Memcpy", "Memset"}) {
    trace += (trace.empty() ? "[" : ",") + device_event(category, times);
  }
  std::map<TimelineKind, int> kinds;
  const Process process = from_chrome(trace + "]").processes.at(0);
  for (const TimelineRecord& record : process.records) ++kinds[record.kind];
  EXPECT_EQ(kinds, (std::map<TimelineKind, int>{{TimelineKind::kKernel, 1},
                                                {TimelineKind::kCopy, 1},
                                                {TimelineKind::kSet, 1},
                                                {TimelineKind::kCall, 1}}));
}

std::string memory_event(const char* time, const char* bytes, const char* address,
                         const char* allocated, const char* reserved) {
  return std::string(R"({"ph": "i", "name": "[memory]", "pid": 9, "tid": 9, "ts": )") + time +
         R"(, "args": {"Bytes": )" + bytes + R"(, "Addr": )" + address +
         R"(, "Total Allocated": )" + allocated + R"(, "Total Reserved": )" + reserved +
         R"(, "Device Id": 0, "Device Type": 1}})";
}

// The profiler reports reserved memory, but not when it changes, and nothing that was handed out
// before it began.
TEST(ChromeReader, TheCountsOfAPyTorchTraceAgreeWithItsEvents) {
  const std::string trace = "[" + memory_event("10", "512", "4096", "1536", "2048") + "," +
                            memory_event("20", "4096", "8192", "5632", "6144") + "," +
                            memory_event("30", "-4096", "8192", "1536", "6144") + "," +
                            memory_event("40", "-512", "4096", "1024", "2048") + "]";
  const Timeline timeline = from_chrome(trace);
  const Index index(timeline.processes.at(0));
  const AccountingCheck check = check_accounting(index);
  EXPECT_EQ(check.differ, 0U);
  EXPECT_EQ(check.gaps, 1U) << "1024 bytes were handed out before";
  ASSERT_EQ(index.of(TimelineKind::kReserve).size(), 1U);
  EXPECT_EQ(index.record(index.of(TimelineKind::kReserve)[0]).bytes, 4096U);
  ASSERT_EQ(index.of(TimelineKind::kRelease).size(), 1U);
  EXPECT_EQ(index.record(index.of(TimelineKind::kRelease)[0]).bytes, 4096U);
}

TEST(ChromeReader, MemoryOfOneMicrosecondKeepsTheOrderOfTheFile) {
  const std::string trace = "[" + memory_event("10", "512", "4096", "512", "2048") + "," +
                            memory_event("20", "-512", "4096", "0", "2048") + "," +
                            memory_event("20", "1024", "4096", "1024", "2048") + "," +
                            memory_event("20", "-1024", "4096", "0", "2048") + "," +
                            memory_event("20", "512", "8192", "512", "2048") + "]";
  const Timeline timeline = from_chrome(trace);
  const AccountingCheck check = check_accounting(Index(timeline.processes.at(0)));
  EXPECT_EQ(check.differ, 0U);
  EXPECT_EQ(check.gaps, 0U);
}

TEST(ChromeReader, CountsOfAPyTorchTraceThatCannotBeAreToldAndNothingOverflows) {
  const std::string most = "18446744073709551615";
  const std::string trace = "[" + memory_event("10", "512", "1", "1024", "2048") + "," +
                            memory_event("20", most.c_str(), "2", most.c_str(), "0") + "," +
                            memory_event("30", "-512", "1", most.c_str(), most.c_str()) + "]";
  const Timeline timeline = from_chrome(trace);
  EXPECT_GT(check_accounting(Index(timeline.processes.at(0))).differ, 0U);
}

TEST(ChromeReader, ATraceOfAnotherProgramThatIsCutIsNotComplete) {
  const std::size_t end = kPyTorch.find("{\"ph\": \"i\"");
  const Process process = from_chrome(kPyTorch.substr(0, end)).processes.at(0);
  EXPECT_FALSE(process.complete);
  EXPECT_EQ(process.records.size(), 4U)
      << "a call, a kernel, a copy, and a note of what was left out";
}

}  // namespace
}  // namespace weir::timeline::testing
