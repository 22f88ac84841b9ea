// Each fault of a timeline is seen: faults that no GPU would show by itself.

#include "gpu_check/timeline/check.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace weir::gpu_check {
namespace {

constexpr std::uint64_t kZero = 1'000'000'000;  // of the recording, on the machine's clock
constexpr std::uint64_t kMs = 1'000'000;

/// Ten kernels of 1 ms in batch 1, and five copies of 2 ms in batch 2.
std::vector<Stretch> two_stretches() {
  Stretch kernels{
      .name = "kernels", .operations = 10, .batch = 1, .event_ms = 10, .is_timed = true};
  kernels.begin_ns = kZero;
  kernels.end_ns = kZero + 12 * kMs;
  Stretch copies{.name = "copies", .kind = TimelineKind::kCopy, .operations = 5, .batch = 2};
  copies.event_ms = 10;
  copies.is_timed = true;
  copies.begin_ns = kZero + 20 * kMs;
  copies.end_ns = kZero + 32 * kMs;
  return {kernels, copies};
}

timeline::Process recorded() {
  timeline::Process process;
  process.info.monotonic_ns = kZero;
  process.complete = true;
  for (std::uint64_t i = 0; i < 15; ++i) {
    const bool is_copy = i >= 10;
    const std::uint64_t begin = is_copy ? 2 * i * kMs : (i + 1) * kMs;
    TimelineRecord record{.begin = begin, .end = begin + (is_copy ? 2 : 1) * kMs, .id = 1 + i};
    record.batch = is_copy ? 2 : 1;
    record.kind = is_copy ? TimelineKind::kCopy : TimelineKind::kKernel;
    record.detail = static_cast<std::uint8_t>(TimelineCopy::kToDevice);
    process.records.push_back(record);
  }
  return process;
}

struct Case {
  const char* name;
  std::function<void(timeline::Process&)> change;
  bool counts, times, places;  ///< which of them have a fault
};

TEST(TimelineCheck, EachFaultIsSeenWhereItBelongs) {
  using P = timeline::Process;
  const Case cases[] = {
      {"all is well", [](P& /*p*/) {}, false, false, false},
      {"one is missing", [](P& p) { p.records.erase(p.records.begin() + 3); }, true, true, false},
      {"one is there twice", [](P& p) { p.records.insert(p.records.begin() + 3, p.records[3]); },
       true, true, true},
      {"one has no batch", [](P& p) { p.records[2].batch = 0; }, true, true, false},
      {"a copy goes the other way",
       [](P& p) { p.records.back().detail = static_cast<std::uint8_t>(TimelineCopy::kFromDevice); },
       true, true, false},
      {"an event is lost", [](P& p) { p.lost = 1; }, true, false, false},
      {"it was cut", [](P& p) { p.complete = false; }, true, false, false},
      {"all are 3% short",
       [](P& p) {
         for (TimelineRecord& one : p.records) one.end -= 3 * (one.end - one.begin) / 100;
       },
       false, true, false},
      {"all are 1% short",
       [](P& p) {
         for (TimelineRecord& one : p.records) one.end -= (one.end - one.begin) / 100;
       },
       false, false, false},
      {"two are swapped", [](P& p) { std::swap(p.records[2].id, p.records[3].id); }, false, false,
       true},
      {"two overlap",
       [](P& p) {
         p.records[2].begin += kMs / 2;
         p.records[2].end += kMs / 2;
       },
       false, false, true},
      {"another clock", [](P& p) { p.info.monotonic_ns -= 3 * kMs; }, false, false, true},
      {"a graph's kernels share an id",
       [](P& p) {
         for (TimelineRecord& one : p.records) one.id = one.batch;
       },
       false, false, false},
  };
  for (const Case& one : cases) {
    timeline::Process process = recorded();
    one.change(process);
    const Faults faults = faults_of(process, two_stretches());
    EXPECT_EQ(!faults.counts.empty(), one.counts) << one.name << ": " << faults.counts;
    EXPECT_EQ(!faults.times.empty(), one.times) << one.name << ": " << faults.times;
    EXPECT_EQ(!faults.places.empty(), one.places) << one.name << ": " << faults.places;
  }
  EXPECT_NE(faults_of({}, two_stretches()).counts, "") << "nothing was recorded";
}

}  // namespace
}  // namespace weir::gpu_check
