// What viewers are shown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "files.hpp"
#include "random_process.hpp"
#include "support/random_seed.hpp"
#include "timeline/support/counted_processes.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using weir::testing::random_seed;
using weir::testing::seed_message;

Timeline of_records(std::vector<TimelineRecord> records, std::vector<std::string> names = {{}}) {
  Timeline timeline;
  Process& process = timeline.processes.emplace_back();
  process.complete = true;
  process.names = std::move(names);
  process.records = std::move(records);
  return timeline;
}

std::vector<Json> events(const Timeline& timeline, std::string_view phase) {
  std::vector<Json> found;
  for (Json& event : Json::parse(to_chrome(timeline))) {
    if (event.at("ph") == phase) found.push_back(std::move(event));
  }
  return found;
}

/// Microseconds with three decimals are exact up to some years.
std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

TEST(ChromeWriter, WhateverIsRecordedIsJson) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  Timeline timeline;
  for (int i = 0; i < 3; ++i) timeline.processes.push_back(random_process(random));
  const std::string bytes = to_chrome(timeline);
  EXPECT_TRUE(Json::accept(bytes));
  EXPECT_THAT(bytes, ::testing::Not(HasSubstr("</script")));
  for (const char c : bytes) {
    ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << "a control character";
  }
}

TEST(ChromeWriter, ATimelineOfNothingIsAnEmptyArray) { EXPECT_EQ(to_chrome({}), "[]\n"); }

TEST(ChromeWriter, SlicesOfATrackNeverOverlap) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 3000, .length = 100'000'000}));
  using Span = std::pair<std::int64_t, std::int64_t>;
  std::map<int, std::vector<Span>> tracks;
  for (const Json& event : events(timeline, "X")) {
    const std::int64_t begin = nanoseconds(event.at("ts"));
    tracks[event.at("tid")].emplace_back(begin, begin + nanoseconds(event.at("dur")));
  }
  EXPECT_GT(tracks.size(), 5U);
  for (auto& [track, spans] : tracks) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.first < b.first; });
    std::vector<std::int64_t> ends;  // of the slices that may contain the next one
    for (const auto& [begin, end] : spans) {
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      ASSERT_TRUE(ends.empty() || end <= ends.back()) << "track " << track << " at " << begin;
      ends.push_back(end);
    }
  }
}

TEST(ChromeWriter, ConcurrentKernelsGetLanesThatSayWhoseTheyAre) {
  const auto timeline = of_records(
      {{.begin = 0, .end = 100, .stream = 7, .device = 1, .kind = TimelineKind::kKernel},
       {.begin = 50, .end = 150, .stream = 7, .device = 1, .kind = TimelineKind::kKernel}});
  std::vector<std::string> names;
  for (const Json& event : events(timeline, "M")) {
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  }
  EXPECT_THAT(names, ElementsAre("GPU 0 stream 7", "GPU 0 stream 7 (2)"));
}

TEST(ChromeWriter, TracksAreSmallNumbersThatNoTwoProcessesShare) {
  Timeline timeline =
      of_records({{.begin = 1, .end = 2, .thread = 1, .kind = TimelineKind::kSubmit},
                  {.begin = 1, .end = 2, .stream = ~0ULL, .kind = TimelineKind::kExecute}});
  timeline.processes.front().info.pid = 77;
  timeline.processes.push_back(timeline.processes.front());
  timeline.processes.push_back(timeline.processes.front());
  std::set<std::pair<int, int>> places;
  std::set<int> tracks;
  std::set<int> processes;
  for (const Json& event : events(timeline, "X")) {
    places.emplace(event.at("pid"), event.at("tid"));
    tracks.insert(event.at("tid").get<int>());
    processes.insert(event.at("pid").get<int>());
  }
  EXPECT_EQ(places.size(), 6U);
  EXPECT_EQ(tracks.size(), 6U);
  EXPECT_EQ(*tracks.rbegin(), 6);
  EXPECT_EQ(processes.size(), 3U) << "one process number, of three machines";
  EXPECT_TRUE(processes.contains(77));
}

TEST(ChromeWriter, AnArrowLeadsFromSubmissionToExecution) {
  const auto timeline = of_records(
      {{.begin = 1000, .end = 2000, .id = 41, .thread = 1, .kind = TimelineKind::kSubmit},
       {.begin = 5000, .end = 6000, .id = 41, .stream = 1, .kind = TimelineKind::kExecute},
       {.begin = 7000, .end = 8000, .id = 42, .thread = 1, .kind = TimelineKind::kSubmit},
       {.begin = 7500, .end = 7600, .id = 42, .thread = 2, .kind = TimelineKind::kSubmit}});
  const auto begins = events(timeline, "s");
  const auto ends = events(timeline, "f");
  ASSERT_EQ(begins.size(), 2U) << "the second of one number has none";
  ASSERT_EQ(ends.size(), 1U);
  for (const char* key : {"cat", "name", "id"}) EXPECT_EQ(begins[0].at(key), ends[0].at(key));
  EXPECT_EQ(ends[0].at("bp"), "e") << "to the slice that it is in, not the next";
  const auto slices = events(timeline, "X");
  EXPECT_EQ(begins[0].at("tid"), slices[0].at("tid"));
  EXPECT_EQ(begins[0].at("ts"), slices[0].at("ts"));
  EXPECT_EQ(ends[0].at("tid"), slices[1].at("tid"));
}

TEST(ChromeWriter, ABatchIsOpenThenInFlight) {
  const auto timeline = of_records(
      {{.begin = 1000, .end = 1000, .batch = 5, .name = 1, .kind = TimelineKind::kAdmit},
       {.begin = 2000, .end = 2000, .batch = 5, .name = 1, .kind = TimelineKind::kClose},
       {.begin = 3000, .end = 3000, .batch = 5, .name = 1, .kind = TimelineKind::kSettle}},
      {{}, "train"});
  std::vector<std::string> spans;
  for (const Json& event : Json::parse(to_chrome(timeline))) {
    const std::string phase = event.at("ph");
    if (phase != "b" && phase != "e") continue;
    EXPECT_EQ(event.at("name"), "train");
    spans.push_back(phase + " " + event.at("cat").get<std::string>());
  }
  EXPECT_THAT(spans, ElementsAre("b open", "e open", "b in flight", "e in flight"));
}

TEST(ChromeWriter, NoSpanEndsThatDidNotBegin) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  Timeline timeline;
  timeline.processes.push_back(random_process(random, {.records = 3000}));
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::string>> open;
  int ends = 0;
  for (const Json& event : Json::parse(to_chrome(timeline))) {
    if (event.at("ph") != "b" && event.at("ph") != "e") continue;
    auto& names = open[{event.at("cat"), event.at("id")}];
    if (event.at("ph") == "b") {
      EXPECT_TRUE(names.empty());
      names.push_back(event.at("name"));
      continue;
    }
    ++ends;
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names.back(), event.at("name"));
    names.pop_back();
  }
  EXPECT_GT(ends, 0);
}

TEST(ChromeWriter, CountersReachTheirHighestValues) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  std::vector<TimelineRecord> records{
      {.bytes = 5000, .sequence = 1, .name = 1, .source = 1, .kind = TimelineKind::kPool}};
  std::map<std::string, std::uint64_t> most;
  TimelineRecord last;
  for (std::uint64_t i = 2; i < 5000; ++i) {
    last = {.begin = i * 700,
            .end = i * 700,
            .sequence = i,
            .allocated = random() % 1000,
            .awaiting = random() % 1000,
            .cached = random() % 1000,
            .source = 1,
            .kind = TimelineKind::kAllocate};
    const auto raise = [&most](const char* name, std::uint64_t value) {
      most[name] = std::max(most[name], value);
    };
    raise("allocated", last.allocated);
    raise("awaiting", last.awaiting);
    raise("cached", last.cached);
    raise("reserved", last.allocated + last.awaiting + last.cached);
    records.push_back(last);
  }
  most["budget"] = 5000;
  std::map<std::string, std::uint64_t> shown;
  std::map<std::string, std::uint64_t> final;
  std::size_t samples = 0;
  for (const Json& event : events(of_records(records, {{}, "device"}), "C")) {
    if (event.at("name") == "memory device") ++samples;
    for (const auto& [name, value] : event.at("args").items()) {
      shown[name] = std::max(shown[name], value.get<std::uint64_t>());
      final[name] = value;
    }
  }
  EXPECT_EQ(shown, most);
  EXPECT_EQ(final.at("allocated"), last.allocated);
  EXPECT_EQ(final.at("cached"), last.cached);
  EXPECT_LT(samples, 200U) << "3.5 ms of records: one in 100 us, and the highest";
}

TEST(ChromeWriter, PoolsOfOneNameHaveCountersOfTheirOwn) {
  const auto timeline =
      of_records({{.bytes = 1, .sequence = 1, .name = 1, .source = 1, .kind = TimelineKind::kPool},
                  {.bytes = 2, .sequence = 1, .name = 1, .source = 2, .kind = TimelineKind::kPool}},
                 {{}, "device"});
  std::set<std::string> names;
  for (const Json& event : events(timeline, "C")) names.insert(event.at("name"));
  EXPECT_THAT(names, ElementsAre("limits device", "limits device (2)", "memory device",
                                 "memory device (2)"));
}

TEST(ChromeWriter, DeviceMemoryFromTheDriverIsACounter) {
  Timeline timeline;
  timeline.processes.push_back(driver_memory_process());
  std::vector<std::uint64_t> shown;
  for (const Json& event : events(timeline, "C")) {
    ASSERT_EQ(event.at("name"), "driver memory");
    EXPECT_EQ(nanoseconds(event.at("ts")), (shown.size() + 1) * kStep);
    shown.push_back(event.at("args").at("bytes").get<std::uint64_t>());
  }
  EXPECT_THAT(shown, ElementsAre(kMiB, 9 * kMiB, 9 * kMiB, 13 * kMiB, 5 * kMiB, 4 * kMiB, 4 * kMiB))
      << "pinned memory is not of the device";
}

TEST(ChromeWriter, TheRunAheadTargetOfEachAdmissionIsACounter) {
  Timeline timeline;
  timeline.processes.push_back(target_process());
  std::map<std::int64_t, std::int64_t> shown;
  for (const Json& event : events(timeline, "C")) {
    ASSERT_EQ(event.at("name"), "run-ahead target");
    constexpr double kNsInMs = 1e6;
    shown[nanoseconds(event.at("ts"))] =
        std::llround(event.at("args").at("ms").get<double>() * kNsInMs);
  }
  const std::map<std::int64_t, std::int64_t> expected{
      {2'000'000, 2'000'000}, {3'000'000, 5'000'000}, {5'000'000, 4'500'000}};
  EXPECT_EQ(shown, expected);
}

TEST(ChromeWriter, AnAdmissionWithoutATargetDrawsNoCounter) {
  Timeline timeline;
  timeline.processes.push_back(process_without_targets());
  EXPECT_THAT(events(timeline, "C"), ElementsAre());
  EXPECT_EQ(events(timeline, "b").size(), kTargets.size());
}

TEST(ChromeWriter, LossAndCutsAreShownToWhoeverLooks) {
  Timeline timeline = of_records({});
  timeline.processes.front().lost = 12;
  timeline.processes.front().complete = false;
  std::vector<std::string> remarks;
  for (const Json& event : events(timeline, "i")) remarks.push_back(event.at("name"));
  EXPECT_THAT(remarks, ElementsAre("12 events lost", "the recording was cut"));
}

TEST(ChromeWriter, AnAnnouncedStreamNameReplacesItsNumber) {
  const auto timeline =
      of_records({{.begin = 1, .end = 1, .stream = 3, .name = 1, .kind = TimelineKind::kStream},
                  {.begin = 2, .end = 3, .stream = 3, .kind = TimelineKind::kExecute}},
                 {{}, "copy in"});
  EXPECT_THAT(to_chrome(timeline), HasSubstr(R"("args":{"name":"copy in","stream":3})"));
}

TEST(ChromeText, BytesThatAreNoTextBecomeReplacementCharacters) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(valid_utf8("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80").size(), 12U);
  EXPECT_EQ(escaped("\x01\"\\x"), R"(\u0001\"\\x)");
}

TEST(ChromeText, NoTextEndsAPageOrHidesItsOwnEnd) {
  EXPECT_EQ(escaped("kernel<4, f<int>>"), "kernel<4, f<int>>");
  EXPECT_EQ(escaped("</script><!--<"), R"(\u003c/script>\u003c!--<)");
  EXPECT_EQ(escaped(R"(C:\temp\)"), R"(C:\\temp\u005c)");
  EXPECT_EQ(escaped(R"(\\)"), R"(\\\u005c)");
}

}  // namespace
}  // namespace weir::timeline::testing
